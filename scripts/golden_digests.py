"""Write the digests that `llm-trace selfcheck` compares with, in the format of sha256sum.

Run by `make golden`; a test compares them with the golden files.
"""

from pathlib import Path

import llm_trace
from llm_trace.selfcheck import SUMS, digest, produced_digests, recorded

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
digests = produced_digests()
digests |= {name: digest((GOLDEN / name).read_bytes()) for name in recorded()}
sums = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
Path(llm_trace.__path__[0], SUMS).write_text(sums, "ascii", newline="\n")
