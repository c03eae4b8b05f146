"""What the original Rust program prints, where its outputs are at hand: the text is not ours."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "reference" / "rust"
ORIGINALS = sorted(FOLDER.glob("ch*/trace.txt"))
original = pytest.mark.original
"""Marks a test that reads them; `conftest.py` skips it elsewhere."""
