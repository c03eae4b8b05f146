"""Changed fixtures: other sizes and magnitudes, zeros of both signs, ties, repeated tokens."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Fields = dict[str, Any]

KINDS: dict[str, Callable[[random.Random], float]] = {
    "whole": lambda rng: float(rng.randint(-4, 4)),
    "halves": lambda rng: rng.randint(-8, 8) / 2,
    "short": lambda rng: round(rng.uniform(-3, 3), rng.randint(0, 3)),
    "long": lambda rng: rng.gauss(0, 1),
    "tens": lambda rng: rng.gauss(0, 30),
    "tied": lambda rng: rng.choice([0.5, -0.5, 1.0]),
    "zero": lambda rng: rng.choice([0.0, -0.0]),
    "wide": lambda rng: rng.gauss(0, 1) * 10.0 ** rng.randint(-9, 5),
    "tiny": lambda rng: rng.gauss(0, 1) * 10.0 ** rng.randint(-320, -100),
}
SHORT = {"short": KINDS["short"]}
HUGE: dict[str, Callable[[random.Random], float]] = {
    "large": lambda rng: rng.gauss(0, 1) * 10.0 ** rng.randint(5, 9),
    "huge": lambda rng: rng.gauss(0, 1) * 10.0 ** rng.randint(20, 60),
}


def array(rng: random.Random, *shape: int, kinds: Any = KINDS) -> Array:
    """One kind of numbers, or a mixture."""
    chosen = rng.choices(sorted(kinds), k=rng.choice([1, 1, 1, 3]))
    values = [kinds[rng.choice(chosen)](rng) for _ in range(math.prod(shape))]
    return np.array(values, dtype=np.float64).reshape(shape)


def size(rng: random.Random, least: int = 1) -> int:
    return rng.choice([least, 1, 2, 2, 3, 4])


def name(rng: random.Random) -> str:
    return "".join(rng.choice('abcxyz019-_=|"#') for _ in range(rng.randint(1, 9)))


def prefix(rng: random.Random) -> str:
    parts = ["".join(rng.choices("ab_09z", k=rng.randint(1, 4))) for _ in range(rng.randint(1, 3))]
    return ".".join(parts)


def linear_layers(rng: random.Random) -> Fields:
    leading = rng.choice([(1, 2), (1, 1), (1, size(rng, 0)), (size(rng, 0), size(rng, 0))])
    inputs, outputs = size(rng), size(rng)
    kinds = KINDS | HUGE
    return {
        "name": name(rng),
        "parameter_prefix": prefix(rng),
        "input": array(rng, *leading, inputs, kinds=kinds),
        "weight": array(rng, inputs, outputs, kinds=kinds),
        "bias": array(rng, outputs, kinds=kinds),
        "upstream": array(rng, *leading, outputs, kinds=kinds),
    }


def swiglu(rng: random.Random) -> Fields:
    """Two positions at least, as the original looks at the second one."""
    count, model, hidden, outputs = 1 + size(rng), size(rng), size(rng), size(rng)
    kinds = KINDS | HUGE
    return {
        "name": name(rng),
        "parameter_prefix": prefix(rng),
        "input": array(rng, count, model, kinds=kinds),
        "gate_weight": array(rng, model, hidden, kinds=kinds),
        "up_weight": array(rng, model, hidden, kinds=kinds),
        "down_weight": array(rng, hidden, outputs, kinds=kinds),
        "upstream": array(rng, count, outputs, kinds=kinds),
    }


def qkv(rng: random.Random) -> Fields:
    batch, tokens, model, head = rng.choice([1, 1, 2]), size(rng), size(rng), size(rng)
    weights = {f"{role}_weight": array(rng, model, head) for role in ("query", "key", "value")}
    upstreams = {
        f"{role}_upstream": array(rng, batch, tokens, head) for role in ("query", "key", "value")
    }
    return {
        "parameter_prefix": prefix(rng),
        "input": array(rng, batch, tokens, model),
        **weights,
        **upstreams,
        **steps(rng),
    }


def steps(rng: random.Random) -> Fields:
    return {
        "gradcheck_step": rng.choice([1e-6, 1e-5, 0.25]),
        "gradcheck_tolerance": rng.choice([2e-6, 1e-9, 1e-3]),
        "gradcheck_samples": rng.choice([1] * 17 + [2, 3, 7]),
    }


def model_ops(rng: random.Random) -> Fields:
    count, width, classes = size(rng), size(rng, 0), rng.choice([2, 2, 3])
    positions = size(rng)
    return {
        "name": name(rng),
        "embeddings": array(rng, count, width, kinds=KINDS | HUGE),
        "weights": array(rng, width, classes, kinds=KINDS | HUGE),
        "ids": tuple(rng.randrange(count) for _ in range(positions)),
        "targets": tuple(rng.randrange(classes) for _ in range(positions)),
        "exp_input": KINDS[rng.choice(["short", "tens", "zero", "tiny"])](rng),
        "log_input": abs(KINDS[rng.choice(["long", "wide"])](rng)) or 1.0,
        "silu_input": KINDS[rng.choice(sorted(KINDS))](rng),
        **steps(rng),
        **(checked_points(rng) if rng.random() < 0.4 else {}),
    }


def checked_points(rng: random.Random) -> Fields:
    rows, inner, columns = size(rng), size(rng), size(rng)
    groups, labels = size(rng), size(rng)
    gathered = tuple(rng.randrange(rows) for _ in range(size(rng)))
    return {
        "gradcheck_left": array(rng, rows, inner),
        "gradcheck_right": array(rng, inner, columns),
        "gradcheck_table": array(rng, rows, columns),
        "gradcheck_ids": gathered,
        "gradcheck_exp": array(rng, size(rng), kinds=SHORT),
        "gradcheck_log": 0.5 + abs(array(rng, size(rng))),
        "gradcheck_silu": array(rng, size(rng)),
        "gradcheck_logits": array(rng, groups, labels),
        "gradcheck_logit_weights": array(rng, groups, labels),
        "gradcheck_targets": tuple(rng.randrange(labels) for _ in range(groups)),
    }
