"""MT19937 against the published words and numpy's legacy generator."""

import numpy as np
import pytest

from llm_trace.core.nn.mersenne import MT19937, fractions, uniform32


def test_the_word_that_the_standard_of_cpp_names() -> None:
    """Seed 5489; the ten-thousandth word is 4123659995 (ISO C++, [rand.predef])."""
    assert MT19937(5489).draw(10_000)[-1] == 4123659995
    assert MT19937(5489).draw(1)[0] == 3499211612


@pytest.mark.parametrize("seed", [0, 1, 6, 624, 2**31, 2**32 - 1])
def test_numpys_legacy_seeding_is_the_same(seed: int) -> None:
    expected = np.random.RandomState(seed).randint(0, 2**32, 1500, dtype=np.uint32)
    generator = MT19937(seed)
    found = np.concatenate([generator.draw(count) for count in (1, 623, 1, 0, 875)])
    assert found.tolist() == expected.tolist()


def test_a_seed_counts_by_its_low_32_bits() -> None:
    assert MT19937(2**32 + 6).draw(3).tolist() == MT19937(6).draw(3).tolist()


def test_only_the_low_24_bits_count() -> None:
    words = np.array([0, 0xFF000000, 0xFFFFFF, 0x01800000], dtype=np.uint32)
    assert fractions(words).tolist() == [0.0, 0.0, 1.0 - 2.0**-24, 0.5]
    assert uniform32(words, -1.0, 3.0).tolist() == [-1.0, -1.0, 3.0 - 2.0**-22, 1.0]
    assert uniform32(words, -1.0, 3.0).dtype == np.float32
