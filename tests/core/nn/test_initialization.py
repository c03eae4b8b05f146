"""SplitMix64, Xavier-uniform weights, names, and generators that a refusal leaves alone."""

import math
import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_trace.core.autodiff import Tensor
from llm_trace.core.autodiff.errors import NonFiniteLeaf
from llm_trace.core.errors import CoreError, PartFailed
from llm_trace.core.nn import errors
from llm_trace.core.nn.errors import DuplicateName, InvalidName, MatrixTooLarge, ZeroFan
from llm_trace.core.nn.linear import Linear
from llm_trace.core.nn.parameters import named_parameter, require_unique, xavier_uniform
from llm_trace.core.nn.qkv import QKV
from llm_trace.core.nn.splitmix64 import SplitMix64
from llm_trace.core.nn.swiglu import SwiGLU

WORD = 1 << 64


# SplitMix64 -------------------------------------------------------------------------------------


def next_word(state: int) -> tuple[int, int]:
    """One draw in plain integers: the word and the state after it."""
    state = (state + 0x9E3779B97F4A7C15) % WORD
    z = state
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31), state


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        (0, "e220a8397b1dcdaf 6e789e6aa1b965f4 06c45d188009454f f88bb8a8724c81ec"),
        (17, "808475f02ee37363 6434ff62b4e8edd1 540d6c3702d41b8c 395142ca8efaf003"),
    ],
)
def test_the_first_words_of_a_seed_are_the_published_ones(seed: int, words: str) -> None:
    assert [f"{word:016x}" for word in SplitMix64(seed).draw(4).tolist()] == words.split()


@given(seed=st.integers(0, WORD - 1), counts=st.lists(st.integers(0, 5), max_size=4))
def test_drawing_in_pieces_gives_the_words_of_the_scalar_loop(seed: int, counts: list[int]) -> None:
    rng, state = SplitMix64(seed), seed
    for count in counts:
        drawn = rng.draw(count).tolist()
        for word in drawn:
            expected, state = next_word(state)
            assert word == expected
        assert len(drawn) == count
        assert rng.state == state


def test_a_uniform_real_is_the_top_53_bits() -> None:
    words = SplitMix64(5).draw(100).tolist()
    assert SplitMix64(5).uniform(100).tolist() == [(word >> 11) * 2.0**-53 for word in words]


def test_a_seed_beyond_64_bits_wraps() -> None:
    assert SplitMix64(WORD + 3) == SplitMix64(3)


def test_a_trial_is_taken_over_only_if_it_ends_well() -> None:
    rng = SplitMix64(3)
    with pytest.raises(ZeroDivisionError), rng.trial() as trial:
        trial.draw(2 // (trial.draw(2).size - 2))
    assert rng == SplitMix64(3)
    with rng.trial() as trial:
        trial.draw(2)
        assert rng == SplitMix64(3)
    expected = SplitMix64(3)
    expected.draw(2)
    assert rng == expected


# Xavier -----------------------------------------------------------------------------------------


def bits(tensor: Tensor) -> list[str]:
    return [struct.pack(">d", value).hex() for value in tensor.value.ravel().tolist()]


def test_seed_17_draws_the_known_square() -> None:
    rng = SplitMix64(17)
    weight = xavier_uniform("w", 2, 2, rng).tensor
    assert weight.shape == (2, 2)
    assert bits(weight) == [
        "3f744760bbbfc4e2",
        "bfd10508068942ad",
        "bfdae98b1d44f6ae",
        "bfe5a45c1710f8d8",
    ]
    assert rng.state == 0x78DDE6E5FD29F065


def test_seed_19_draws_the_known_linear_layer() -> None:
    rng = SplitMix64(19)
    layer = Linear.initialize("token_projection", 2, 3, bias=True, rng=rng)
    assert layer.weight.tensor.value.ravel().tolist() == [
        0.5156448415302132,
        -0.8399266670660637,
        -0.29882718884514436,
        -0.9142738096167563,
        0.6223134434221278,
        1.004242645311349,
    ]
    assert layer.bias is not None
    assert layer.bias.tensor.value.tobytes() == np.zeros(3).tobytes()
    assert [name for name, _ in layer.parameters] == [
        "token_projection.weight",
        "token_projection.bias",
    ]
    assert rng.state == 0xB54CDA58FBBEE891


def test_a_bias_costs_no_draw() -> None:
    with_bias, without = SplitMix64(19), SplitMix64(19)
    Linear.initialize("a", 2, 3, bias=True, rng=with_bias)
    assert Linear.initialize("a", 2, 3, bias=False, rng=without).bias is None
    assert with_bias == without


def test_seed_20_draws_the_known_swiglu() -> None:
    rng = SplitMix64(20)
    layer = SwiGLU.initialize("ffn", 2, 3, 2, rng)
    firsts = [linear.weight.tensor.value[0, 0] for linear in (layer.gate, layer.up, layer.down)]
    assert firsts == [-0.6321558799686842, 0.7168370992227021, -0.28826294867557956]
    assert [(name, tensor.shape) for name, tensor in layer.parameters] == [
        ("ffn.gate.weight", (2, 3)),
        ("ffn.up.weight", (2, 3)),
        ("ffn.down.weight", (3, 2)),
    ]
    assert rng.state == 0x1FE68F0AF33CB98E


def test_seed_26_draws_the_known_projections() -> None:
    rng = SplitMix64(26)
    layer = QKV.initialize("decoder.block.0.attention", 3, 2, rng)
    firsts = [linear.weight.tensor.value[0, 0] for linear in layer.projections.values()]
    assert firsts == [0.5795467847823793, -0.8888475826803939, 0.6620083707407143]
    assert [name for name, _ in layer.parameters] == [
        f"decoder.block.0.attention.{role}.weight" for role in ("query", "key", "value")
    ]
    assert rng.state == 0x1FE68F0AF33CB994


@given(seed=st.integers(0, WORD - 1), fan_in=st.integers(1, 5), fan_out=st.integers(1, 5))
def test_values_are_drawn_row_by_row_within_the_limit(seed: int, fan_in: int, fan_out: int) -> None:
    limit = math.sqrt(6 / (fan_in + fan_out))
    rng, state, expected = SplitMix64(seed), seed, []
    for _ in range(fan_in * fan_out):
        word, state = next_word(state)
        expected.append(limit * (2.0 * ((word >> 11) * 2.0**-53) - 1.0))
    values = xavier_uniform("w", fan_in, fan_out, rng).tensor.value
    assert values.shape == (fan_in, fan_out)
    assert values.ravel().tolist() == expected
    assert ((-limit <= values) & (values < limit)).all()
    assert rng.state == state


def test_an_initialised_weight_is_a_parameter_without_gradient_yet() -> None:
    weight = xavier_uniform("w", 2, 2, SplitMix64(1)).tensor
    assert weight.is_parameter
    assert weight.tracked
    assert weight.gradient is not None
    assert not weight.gradient.any()


# Refusals ---------------------------------------------------------------------------------------

INITIALIZATIONS: dict[str, tuple[Callable[[SplitMix64], object], CoreError, str]] = {
    "name before fans": (
        lambda rng: xavier_uniform("", 0, 0, rng),
        InvalidName(byte=0, found="nothing"),
        "parameter name: expected dotted words of a-z, 0-9 and _, found nothing at byte 0",
    ),
    "fan-in before fan-out": (
        lambda rng: xavier_uniform("w", 0, 0, rng),
        ZeroFan(fan="fan-in"),
        "fan-in: expected at least 1, found 0",
    ),
    "fan-out before overflow": (
        lambda rng: xavier_uniform("w", WORD, 0, rng),
        ZeroFan(fan="fan-out"),
        "fan-out: expected at least 1, found 0",
    ),
    "sum before product": (
        lambda rng: xavier_uniform("w", WORD - 1, 2, rng),
        MatrixTooLarge(fan_in=WORD - 1, fan_out=2),
        "initial values: expected a matrix that fits into memory, found 18446744073709551615 x 2",
    ),
    "product": (
        lambda rng: xavier_uniform("w", 2**32, 2**32, rng),
        MatrixTooLarge(fan_in=2**32, fan_out=2**32),
        "initial values: expected a matrix that fits into memory, found 4294967296 x 4294967296",
    ),
    "memory": (
        lambda rng: xavier_uniform("w", 2**31, 2**31, rng),
        MatrixTooLarge(fan_in=2147483648, fan_out=2147483648),
        "initial values: expected a matrix that fits into memory, found 2147483648 x 2147483648",
    ),
    "memory beyond the index range": (
        lambda rng: xavier_uniform("w", 2**32, 2**31, rng),
        MatrixTooLarge(fan_in=4294967296, fan_out=2147483648),
        "initial values: expected a matrix that fits into memory, found 4294967296 x 2147483648",
    ),
    "linear name before width": (
        lambda rng: Linear.initialize("A", 0, 0, bias=True, rng=rng),
        InvalidName(byte=0, found="0x41"),
        "parameter name: expected dotted words of a-z, 0-9 and _, found 0x41 at byte 0",
    ),
    "linear empty prefix": (
        lambda rng: Linear.initialize("", 0, 0, bias=True, rng=rng),
        InvalidName(byte=0, found="an empty word"),
        "parameter name: expected dotted words of a-z, 0-9 and _, found an empty word at byte 0",
    ),
    "linear input width": (
        lambda rng: Linear.initialize("a", 0, 0, bias=True, rng=rng),
        ZeroFan(fan="fan-in"),
        "fan-in: expected at least 1, found 0",
    ),
    "linear output width": (
        lambda rng: Linear.initialize("a", 2, 0, bias=False, rng=rng),
        ZeroFan(fan="fan-out"),
        "fan-out: expected at least 1, found 0",
    ),
    "swiglu input width": (
        lambda rng: SwiGLU.initialize("ffn", 0, 3, 2, rng),
        PartFailed(layer="SwiGLU", part="gate", source=ZeroFan(fan="fan-in")),
        "SwiGLU gate: fan-in: expected at least 1, found 0",
    ),
    "swiglu hidden width": (
        lambda rng: SwiGLU.initialize("ffn", 2, 0, 2, rng),
        PartFailed(layer="SwiGLU", part="gate", source=ZeroFan(fan="fan-out")),
        "SwiGLU gate: fan-out: expected at least 1, found 0",
    ),
    "swiglu output width, after two branches were drawn": (
        lambda rng: SwiGLU.initialize("ffn", 2, 3, 0, rng),
        PartFailed(layer="SwiGLU", part="down", source=ZeroFan(fan="fan-out")),
        "SwiGLU down: fan-out: expected at least 1, found 0",
    ),
    "projections' head width": (
        lambda rng: QKV.initialize("attention", 3, 0, rng),
        PartFailed(layer="Q/K/V", part="query", source=ZeroFan(fan="fan-out")),
        "Q/K/V query: fan-out: expected at least 1, found 0",
    ),
}


@pytest.mark.parametrize("name", INITIALIZATIONS)
def test_a_refused_initialisation_leaves_the_generator_where_it_was(name: str) -> None:
    action, expected, text = INITIALIZATIONS[name]
    rng = SplitMix64(26)
    with pytest.raises(CoreError) as refused:
        action(rng)
    assert refused.value == expected
    assert str(refused.value) == text
    assert rng == SplitMix64(26)


@pytest.mark.parametrize(
    "build",
    [
        lambda rng: SwiGLU.initialize("a", 3, 2, 3, rng),
        lambda rng: QKV.initialize("a", 3, 2, rng),
    ],
)
@pytest.mark.parametrize("failing", [1, 2])
def test_a_refusal_in_a_later_branch_takes_back_every_draw(
    build: Callable[[SplitMix64], object], failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    original = Linear.initialize

    def initialize(
        prefix: str, input_width: int, output_width: int, *, bias: bool, rng: SplitMix64
    ) -> Linear:
        calls.append(prefix)
        layer = original(prefix, input_width, output_width, bias=bias, rng=rng)
        if len(calls) > failing:
            raise MatrixTooLarge(fan_in=2, fan_out=3)
        return layer

    monkeypatch.setattr(Linear, "initialize", initialize)
    rng = SplitMix64(26)
    with pytest.raises(CoreError, match="fits into memory, found 2 x 3"):
        build(rng)
    assert len(calls) == failing + 1
    assert rng == SplitMix64(26)


def test_a_later_layer_continues_the_stream() -> None:
    rng = SplitMix64(7)
    xavier_uniform("a", 2, 2, rng)
    with pytest.raises(ZeroFan):
        xavier_uniform("b", 0, 2, rng)
    second = xavier_uniform("c", 2, 2, rng)
    words = SplitMix64(7)
    words.draw(4)
    assert second.tensor.value.tobytes() == xavier_uniform("d", 2, 2, words).tensor.value.tobytes()


# Names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "0", "_", "a.b", "0.1.2", "decoder.block_12.attention.w"])
def test_a_name_is_dotted_segments_of_lowercase_digits_and_underscores(name: str) -> None:
    assert named_parameter(name, [1.0]).name == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", InvalidName(byte=0, found="nothing")),
        (".", InvalidName(byte=0, found="an empty word")),
        (".a", InvalidName(byte=0, found="an empty word")),
        ("a.", InvalidName(byte=2, found="an empty word")),
        ("a..b", InvalidName(byte=2, found="an empty word")),
        ("a.b..C", InvalidName(byte=4, found="an empty word")),
        ("aB", InvalidName(byte=1, found="0x42")),
        ("a b", InvalidName(byte=1, found="0x20")),
        ("a-b..c", InvalidName(byte=1, found="0x2d")),
        ("a.\n", InvalidName(byte=2, found="0x0a")),
        ("a\n", InvalidName(byte=1, found="0x0a")),
        ("na\u00efve", InvalidName(byte=2, found="0xc3")),
        ("\u0661", InvalidName(byte=0, found="0xd9")),
        ("\0", InvalidName(byte=0, found="0x00")),
    ],
)
def test_the_first_problem_of_a_name_is_the_one_refused(name: str, expected: CoreError) -> None:
    with pytest.raises(errors.InitializationError) as refused:
        named_parameter(name, [1.0])
    assert refused.value == expected


@given(name=st.text(alphabet="ab0_.A\u00e9-", max_size=6))
def test_a_name_is_accepted_exactly_if_it_keeps_the_grammar(name: str) -> None:
    well_formed = all(
        segment and set(segment) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")
        for segment in name.split(".")
    )
    try:
        named_parameter(name, 0.0)
    except errors.InitializationError:
        assert not well_formed
    else:
        assert well_formed


def test_a_name_is_refused_before_its_values() -> None:
    with pytest.raises(InvalidName):
        named_parameter("", [math.nan])
    with pytest.raises(NonFiniteLeaf) as refused:
        named_parameter("a", [0.0, math.inf])
    assert refused.value == NonFiniteLeaf(operation="parameter", index=1, value=math.inf)


def test_the_first_repetition_is_reported_with_its_earliest_twin() -> None:
    a, b = named_parameter("a", 0.0), named_parameter("b", 0.0)
    with pytest.raises(DuplicateName) as refused:
        require_unique([a, b, a, b, a])
    assert refused.value == DuplicateName(name="a", first=0, repeated=2)
    assert (
        str(refused.value)
        == "parameter 2: expected a name of its own, found a, the name of parameter 0"
    )
    with pytest.raises(DuplicateName) as refused:
        require_unique([a, b, b, a])
    assert refused.value == DuplicateName(name="b", first=1, repeated=2)


def test_unique_parameters_keep_their_order() -> None:
    b, a = named_parameter("b", 0.0), named_parameter("a", 0.0)
    assert require_unique([b, a]) == (b, a)
    assert require_unique([]) == ()
