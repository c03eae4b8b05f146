"""Seconds an epoch of the cue-recall practicum, beside PyTorch's for the same models and batches.

    python benchmarks/cue_recall.py [--epochs N]

Needs PyTorch for the second column, and prints the first alone without it. Both start from the same
parameters in float64, and the script refuses to compare if their losses differ. Each time is the
best of several epochs of training: forward, backward, clipping and Adam, without validation.
"""

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from llm_trace.core.autodiff import backward
from llm_trace.core.nn.adam import AdamState
from llm_trace.core.nn.splitmix64 import SplitMix64
from llm_trace.cue_recall.episodes import batch_order
from llm_trace.cue_recall.models import MODELS, Model, Transformer
from llm_trace.cue_recall.training import (
    Plan,
    assign,
    clipped,
    data_of,
    flat,
    flat_gradient,
    train_loss,
)

try:
    import torch
except ImportError:
    torch = None

PLAN = Plan()
SEED = 6206
Step = Callable[[Any, Any], float]  # from inputs and targets to the loss before the step


def own_step(name: str) -> Step:
    model = MODELS[name].initialize(PLAN.widths, SEED)
    values = flat(model)
    state = AdamState.zero(values.size)

    def step(inputs: Any, targets: Any) -> float:
        nonlocal values, state
        assign(model, values)
        loss = train_loss(model, inputs, targets)
        for _, tensor in model.parameters:
            tensor.zero_gradient()
        backward(loss)
        gradient, _ = clipped(flat_gradient(model), PLAN.clip)
        values, state = PLAN.adam.step(values, gradient, state)
        return float(loss.value)

    return step


def torch_step(name: str) -> Step:
    module = {"rnn": recurrent, "gru": recurrent, "transformer": transformer}[name](
        MODELS[name].initialize(PLAN.widths, SEED)
    )
    parameters = [*module.parameters()]
    adam = torch.optim.Adam(parameters, lr=PLAN.rate)

    def step(inputs: Any, targets: Any) -> float:
        logits = module(torch.from_numpy(inputs))
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), torch.from_numpy(targets).flatten()
        )
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, PLAN.clip)
        adam.step()
        return float(loss.item())

    return step


def filled(module: Any, model: Model, names: dict[str, str]) -> None:
    """Give the module's parameters the model's values, by name."""
    for own, theirs in names.items():
        parameter = module.get_parameter(theirs)
        parameter.data = torch.from_numpy(model.tensors[own].value.copy())


def recurrent(model: Model) -> Any:
    cell = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU}[model.name]
    width = PLAN.widths.rnn if model.name == "rnn" else PLAN.widths.gru

    class Recurrent(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(7, PLAN.widths.embedding)
            self.cell = cell(PLAN.widths.embedding, width, batch_first=True)
            self.head = torch.nn.Linear(width, 7)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.cell(self.embedding(tokens))[0])

    module = Recurrent()
    cell_names = {
        "cell.input.weight": "cell.weight_ih_l0",
        "cell.input.bias": "cell.bias_ih_l0",
        "cell.state.weight": "cell.weight_hh_l0",
        "cell.state.bias": "cell.bias_hh_l0",
    }
    rest = {"embedding": "embedding.weight", "head.weight": "head.weight", "head.bias": "head.bias"}
    filled(module, model, rest | cell_names)
    return module


def transformer(model: Model) -> Any:
    assert isinstance(model, Transformer)
    width, heads, epsilon = model.norm.width, PLAN.widths.heads, model.norm.epsilon
    names = {name: name.replace(".", "_") for name in model.tensors}

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, tensor in model.tensors.items():
                value = torch.nn.Parameter(torch.from_numpy(tensor.value.copy()))
                self.register_parameter(names[name], value)

        def affine(self, x: Any, name: str) -> Any:
            weight, bias = getattr(self, f"{name}_weight"), getattr(self, f"{name}_bias")
            return torch.nn.functional.linear(x, weight, bias)

        def norm(self, x: Any, name: str) -> Any:
            gain, shift = getattr(self, f"{name}_gain"), getattr(self, f"{name}_shift")
            return torch.nn.functional.layer_norm(x, (width,), gain, shift, epsilon)

        def forward(self, tokens: Any) -> Any:
            count, steps = tokens.shape
            x = self.embedding[tokens] + self.positions[:steps]
            qkv = self.affine(self.norm(x, "attention_norm"), "attention_qkv")
            query, key, value = (
                part.view(count, steps, heads, width // heads).transpose(1, 2)
                for part in qkv.chunk(3, dim=-1)
            )
            mixed = torch.nn.functional.scaled_dot_product_attention(
                query, key, value, is_causal=True
            )
            x = x + self.affine(mixed.transpose(1, 2).flatten(2), "attention_output")
            hidden = torch.relu(self.affine(self.norm(x, "mlp_norm"), "mlp_up"))
            x = x + self.affine(hidden, "mlp_down")
            return self.affine(self.norm(x, "norm"), "head")

    return Module()


def seconds(step: Step, delay: int, epochs: int) -> tuple[float, list[float]]:
    """The best epoch's time, and the losses of the first epoch."""
    data = data_of(PLAN.train, delay, PLAN.train_seed)
    times, losses = [], []
    for epoch in range(epochs):
        order = batch_order(PLAN.train, SplitMix64(epoch))
        started = time.perf_counter()
        for first in range(0, PLAN.train, PLAN.batch):
            rows = order[first : first + PLAN.batch]
            losses.append(step(data.inputs[rows], data.targets[rows].copy()))
        times.append(time.perf_counter() - started)
    return min(times), losses[: PLAN.train // PLAN.batch]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3, help="epochs to take the best of")
    epochs = parser.parse_args().epochs
    if torch:
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(1)
        print(f"PyTorch {torch.__version__}, float64, one thread; numpy {np.__version__}")
    print("model        delay  seconds an epoch  PyTorch  ratio")
    for delay in (8, 16, 32):
        for name in MODELS:
            own, losses = seconds(own_step(name), delay, epochs)
            line = f"{name:11}  {delay:5}  {own:16.2f}"
            if torch:
                other, other_losses = seconds(torch_step(name), delay, epochs)
                pairs = zip(losses, other_losses, strict=True)
                if not all(math.isclose(a, b, rel_tol=1e-7) for a, b in pairs):
                    raise SystemExit(f"{name}: the two losses differ")
                line += f"  {other:7.2f}  {own / other:5.1f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
