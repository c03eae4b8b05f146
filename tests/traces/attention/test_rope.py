import numpy as np
import pytest

from llm_trace import run

GIVEN = {"base": 10.0, "positions": 7, "offset": 2}


@pytest.mark.parametrize("pairing", ["pairs", "halves"])
def test_pairs_are_complex_numbers_that_are_multiplied_by_a_phase(pairing: str) -> None:
    rng = np.random.default_rng(7)
    names = ("query", "key", "query_upstream", "key_upstream")
    given = {name: rng.normal(size=(4, 6)) for name in names}
    traced = run("rope", pairing=pairing, **GIVEN, **given)
    theta = 10.0 ** (-np.arange(3) / 3.0)
    for kind, name, first in (("TURNED", "query", 0), ("SHIFTED", "key", 2)):
        turned = traced[f"{kind}-{name.upper()}", 0].values
        phases = np.exp(1j * np.outer(np.arange(first, first + 4), theta))
        assert paired(turned, pairing) == pytest.approx(paired(given[name], pairing) * phases)


def paired(rows: np.ndarray, pairing: str) -> np.ndarray:
    if pairing == "pairs":
        return rows[:, 0::2] + 1j * rows[:, 1::2]
    return rows[:, :3] + 1j * rows[:, 3:]
