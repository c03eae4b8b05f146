"""Write the digests that `llm-trace selfcheck` compares with, in the format of sha256sum.

Run by `make golden`; a test compares them with the golden files.
"""

from pathlib import Path

import llm_trace
from llm_trace.selfcheck import SUMS, produced_digests

sums = "".join(f"{digest}  {name}\n" for name, digest in sorted(produced_digests().items()))
Path(llm_trace.__path__[0], SUMS).write_text(sums, "ascii", newline="\n")
