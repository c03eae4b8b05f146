"""Byte-pair encoding beside the wheel `tokenizers` of Hugging Face, as ratios in one run.

    python benchmarks/tokenizer.py [megabytes] [merges] [file ...]

Without files the texts are those of Python's own library. The peer splits texts into words before
it merges, as its users have it do; the program merges across blanks. So the peer has fewer pairs to
look at, and its tokens are shorter. Processor time counts, of all threads.
"""

import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from llm_trace.core.text.bpe import train
from llm_trace.core.text.tokenizer import ByteBPE

T = TypeVar("T")
DOCUMENT = 20_000  # characters


def texts(megabytes: float, files: list[str]) -> list[str]:
    """Documents of one length, as many as there are or as fit."""
    library = sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py"))
    left, found = int(megabytes * 1e6), []
    for path in [Path(file) for file in files] or library:
        text = path.read_text("utf-8", errors="ignore")[:left]
        found += [text[i : i + DOCUMENT] for i in range(0, len(text), DOCUMENT)]
        left -= len(text)
    return found


def timed(function: Callable[[], T]) -> tuple[float, T]:
    clock = time.process_time()
    result = function()
    return time.process_time() - clock, result


def ours(documents: list[str], merges: int) -> Iterator[tuple[str, float, int]]:
    data = [document.encode() for document in documents]
    seconds, rules = timed(lambda: [*train(data, merges)])
    yield "train", seconds, len(rules)
    tokenizer = ByteBPE.of(rules)
    seconds, ids = timed(lambda: tokenizer.encode_all(data))
    yield "encode", seconds, sum(map(len, ids))


def peers(documents: list[str], merges: int) -> Iterator[tuple[str, float, int]]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = words
    trainer = trainers.BpeTrainer(
        vocab_size=256 + merges, show_progress=False, initial_alphabet=words.alphabet()
    )
    seconds, _ = timed(lambda: tokenizer.train_from_iterator(documents, trainer))
    yield "train", seconds, tokenizer.get_vocab_size() - 256
    seconds, ids = timed(lambda: tokenizer.encode_batch(documents))
    yield "encode", seconds, sum(len(each.ids) for each in ids)


def main() -> None:
    given = sys.argv[1:]
    megabytes, merges = (
        given[at] if len(given) > at else size for at, size in enumerate(("10", "8192"))
    )
    files = given[2:]
    documents = texts(float(megabytes), files)
    print(f"{sum(map(len, documents)) / 1e6:.1f} million characters, {merges} merges")
    found = [*ours(documents, int(merges))]
    try:
        beside = [*peers(documents, int(merges))]
    except ImportError:
        beside = []
        print("tokenizers is not installed: no ratio")
    print("          llm-trace           tokenizers          ratio")
    for (part, seconds, count), peer in zip(found, beside or [None] * 2, strict=True):
        other = f"{peer[1]:6.2f} s {peer[2]:9} {seconds / peer[1]:8.2f}" if peer else ""
        print(f"{part:8} {seconds:6.2f} s {count:9}   {other}")


if __name__ == "__main__":
    main()
