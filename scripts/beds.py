"""Run every golden trace on many beds, and demand one digest from all of them.

    python scripts/beds.py [--quick] [BED …]

A bed is a way to run the program: other processor features, C libraries, Pythons, numpys, locales,
terminals. On each one every trace is printed by a process of its own and compared with `golden/`,
and `llm-trace selfcheck` adds the other forms and thousands of inputs of every function. A bed that
cannot run here is reported as not run, with the reason. `--quick` leaves out the beds that install
something, and all forms but the trace itself from being printed. What is installed is kept in
`.beds/`.
"""

import functools
import glob
import hashlib
import itertools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from llm_trace.report.outputs import FORMS

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "golden"
BEDS = ROOT / ".beds"
OPTIONS = {form.ending: form.option for form in FORMS.values()}
OLDEST = ("numpy==1.26.0", "click==8.1.0")
NUMPY_RELEASES = ("1.26.4", "2.0.2", "2.2.6")


class NotHere(Exception):
    """Why a bed cannot run on this machine."""


class Way(NamedTuple):
    """How a bed starts Python with the program in reach."""

    python: tuple[str, ...] = (sys.executable,)
    environment: Mapping[str, str] = {}
    folder: str | None = None


class Outcome(NamedTuple):
    """What came of one bed."""

    bed: str
    digest: str
    verdict: str


# Ways to start the program ----------------------------------------------------------------------


def settings(**environment: str) -> Way:
    """This Python with other environment variables."""
    return Way(environment=environment)


def without_features(*prefixes: str) -> Way:
    """numpy's loops for some processor features switched off."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    off = [n for n in __cpu_dispatch__ if n.startswith(prefixes) and __cpu_features__[n]]
    if not off:
        raise NotHere(f"neither processor nor numpy has {' or '.join(prefixes)}")
    return settings(NPY_DISABLE_CPU_FEATURES=" ".join(off))


def without_fma() -> Way:
    """The C library's functions for processors without fused multiply-add."""
    if platform.libc_ver()[0] != "glibc" or platform.machine() != "x86_64":
        raise NotHere("no glibc on x86-64")
    return settings(GLIBC_TUNABLES="glibc.cpu.hwcaps=-FMA,-AVX2")


def without_extension() -> Way:
    """The package as it is where nothing could be compiled."""
    target = BEDS / "without-extension"
    copy_package(target)
    for built in target.rglob("_products*.so"):
        built.unlink()
    return settings(PYTHONPATH=str(target))


def comma_locale() -> Way:
    """A locale that writes 0,5."""
    target = BEDS / "locales" / "de_DE.UTF-8"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        attempt("localedef", "-i", "de_DE", "-f", "UTF-8", str(target))
    return settings(LOCPATH=str(target.parent), LC_ALL="de_DE.UTF-8", LANGUAGE="de")


def read_only() -> Way:
    """An installation that nobody may write to, run by somebody who does not own it."""
    target = BEDS / "read-only"
    for path in [target, *target.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)  # a copy of an earlier run
    copy_package(target)
    if os.geteuid() != 0:
        for path in [target, *target.rglob("*")]:
            path.chmod(path.stat().st_mode & ~0o222)
        return settings(PYTHONPATH=str(target))
    if not shutil.which("setpriv"):
        raise NotHere("root may write everywhere, and there is no setpriv")
    for path in [target, *target.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    python = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    started = [*python, "-c", "import click, numpy, llm_trace"]
    if subprocess.run(started, capture_output=True, env=environment, check=False).returncode:
        raise NotHere("another user cannot read this folder or this Python's packages")
    return Way(python, {"PYTHONPATH": str(target)})


def packages(*requirements: str) -> Way:
    """Other releases of the program's dependencies."""
    target = BEDS / "-".join(requirements).replace("==", "-")
    if not target.exists():
        install(sys.executable, target, *requirements)
    return settings(PYTHONPATH=f"{package()}:{target}")


def other_python(minor: int) -> Way:
    """Another Python 3, with the newest numpy for it."""
    name = f"python3.{minor}"
    homes = sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/{name}")))
    python = homes[-1] if homes else shutil.which(name)
    if python is None:
        raise NotHere(f"no {name} here")
    target = BEDS / f"{name}-packages"
    if not target.exists():
        install(python, target, "numpy", "click")
    return Way((python,), {"PYTHONPATH": f"{package()}:{target}"})


def aarch64() -> Way:
    """Debian for 64-bit ARM, under qemu."""
    qemu = shutil.which("qemu-aarch64-static")
    if qemu is None:
        raise NotHere("needs qemu-user-static")
    system, packages = debian("bookworm", "arm64", "aarch64", "3.11")
    python = (qemu, "-L", str(system), str(system / "usr/bin/python3.11"))
    return Way(python, {"PYTHONPATH": f"{package()}:{packages}"})


def newer_debian() -> Way:
    """Python 3.14 and a C library that is years newer than most, from Debian forky."""
    if platform.machine() != "x86_64":
        raise NotHere("no x86-64")
    system, packages = debian("forky", "amd64", "x86_64", "3.14")
    loader = system / "usr/lib64/ld-linux-x86-64.so.2"
    libraries = system / "usr/lib/x86_64-linux-gnu"
    python = (str(loader), "--library-path", str(libraries), str(system / "usr/bin/python3.14"))
    return Way(python, {"PYTHONPATH": f"{package()}:{packages}"})


def debian(suite: str, architecture: str, machine: str, python: str) -> tuple[Path, Path]:
    """Python in a Debian of its own, and the newest numpy and click for it. Raises NotHere."""
    system, packages = BEDS / f"{suite}-{architecture}", BEDS / f"{suite}-{architecture}-packages"
    if not system.exists():
        BEDS.mkdir(exist_ok=True)
        include = f"--include=python{python},libstdc++6,libgcc-s1"
        flags = ("--variant=extract", f"--architectures={architecture}", "--skip=check/qemu")
        dated = '--aptopt=Acquire::Check-Valid-Until "false"'  # a mirror may lag
        attempt("mmdebstrap", *flags, include, dated, "--mode=root", suite, str(system))
    if not packages.exists():
        platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in (17, 27, 28)]
        versions = f"--python-version={python}"
        install(sys.executable, packages, "numpy", "click", *platforms, versions)
    return system, packages


QUICK: dict[str, Callable[[], Way]] = {
    "as it is": Way,
    "without AVX-512": lambda: without_features("X86_V4", "AVX512"),
    "without AVX-512 and AVX2": lambda: without_features("X86_V3", "X86_V4", "AVX", "FMA"),
    "glibc without FMA": without_fma,
    "without the compiled product": without_extension,
    "PYTHONHASHSEED=0": lambda: settings(PYTHONHASHSEED="0"),
    "PYTHONHASHSEED=1": lambda: settings(PYTHONHASHSEED="1"),
    "PYTHONHASHSEED=random": lambda: settings(PYTHONHASHSEED="random"),
    "a comma locale": comma_locale,
    "TZ": lambda: settings(TZ="Asia/Kathmandu"),
    "COLUMNS=20": lambda: settings(COLUMNS="20"),
    "TERM=dumb": lambda: settings(TERM="dumb"),
    "NO_COLOR": lambda: settings(NO_COLOR="1"),
    "FORCE_COLOR": lambda: settings(FORCE_COLOR="1", TERM="xterm-256color"),
    "PYTHONIOENCODING=ascii": lambda: settings(PYTHONIOENCODING="ascii", PYTHONUTF8="0"),
    "PYTHONIOENCODING=cp1252": lambda: settings(PYTHONIOENCODING="cp1252", PYTHONUTF8="0"),
    "PYTHONOPTIMIZE=2": lambda: settings(PYTHONOPTIMIZE="2"),
    "another working directory": lambda: Way(folder="/"),
    "a read-only installation": read_only,
    "one thread": lambda: settings(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"),
    "many threads": lambda: settings(OMP_NUM_THREADS="16", OPENBLAS_NUM_THREADS="16"),
}
SLOW: dict[str, Callable[[], Way]] = {
    "oldest numpy and click": lambda: packages(*OLDEST),
    **{f"numpy {r}": functools.partial(packages, f"numpy=={r}", "click") for r in NUMPY_RELEASES},
    "newest numpy and click": lambda: packages("numpy", "click"),
    **{f"Python 3.{minor}": functools.partial(other_python, minor) for minor in (11, 12, 13)},
    "Python 3.14, newer glibc": newer_debian,
    "aarch64 under qemu": aarch64,
}


# What they need ---------------------------------------------------------------------------------


def package() -> Path:
    """A folder from which `llm_trace` can be imported: a link to `src`."""
    link = BEDS / "package" / "llm_trace"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(ROOT / "src")
    return link.parent


def copy_package(target: Path) -> None:
    """A fresh copy of the package below `target`."""
    shutil.rmtree(target, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", target / "llm_trace", ignore=ignored)


def install(python: str, target: Path, *arguments: str) -> None:
    """pip-install packages below `target`. Raises NotHere."""
    BEDS.mkdir(exist_ok=True)
    quiet = ("--quiet", "--disable-pip-version-check", "--only-binary=:all:")
    attempt(python, "-m", "pip", "install", *quiet, "--target", str(target), *arguments)


def attempt(*command: str) -> None:
    """Run a command. Raises NotHere with the last line that it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NotHere(f"no {command[0]} here") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["failed"]
        raise NotHere(f"{Path(command[0]).name}: {said[-1][:120]}")


# Running ----------------------------------------------------------------------------------------


def outcome(bed: str, prepare: Callable[[], Way], *, quick: bool) -> Outcome:
    """Run everything on one bed; if `quick`, leave the other forms of a trace to selfcheck."""
    try:
        way = prepare()
    except NotHere as reason:
        return Outcome(bed, "", f"not run: {reason}")
    digest = hashlib.sha256()
    for path in sorted(GOLDEN.glob("*.trace" if quick else "*")):
        if path.suffix not in OPTIONS:
            continue  # numbers that a golden file was made of
        if path.with_stem(f"{path.stem}-small").exists():
            continue  # takes minutes; the small one stands for it
        command = path.stem.removesuffix("-small")
        small = () if command == path.stem else ("--small",)
        printed = run(way, command, *small, *OPTIONS[path.suffix])
        golden = path.read_bytes()
        if printed != golden:
            return Outcome(bed, "", f"{path.name}: {first_difference(golden, printed)}")
        digest.update(printed)
    checked = run(way, "selfcheck").decode().splitlines()
    for line in checked:
        if not line.startswith("environment"):
            digest.update(line.encode())
    environment = next((line[13:] for line in checked if line.startswith("environment")), "")
    if not checked or checked[-1].split()[1:] != "the same as everywhere".split():
        return Outcome(bed, digest.hexdigest(), checked[-1] if checked else "selfcheck failed")
    return Outcome(bed, digest.hexdigest(), f"same   {environment}")


def run(way: Way, *arguments: str) -> bytes:
    """Standard output of the program, or its last words where it failed."""
    command = [*way.python, "-m", "llm_trace", *arguments]
    folder = way.folder or tempfile.gettempdir()
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(BEDS / "pycache"), **way.environment}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, capture_output=True, env=environment, cwd=folder, check=False)
    return done.stdout if done.returncode in (0, 1) and done.stdout else done.stderr[-300:]


def first_difference(golden: bytes, printed: bytes) -> str:
    """The first record that differs, both ways."""
    lines = itertools.zip_longest(golden.splitlines(), printed.splitlines(), fillvalue=b"nothing")
    number, (old, new) = next(
        (number, pair) for number, pair in enumerate(lines, 1) if pair[0] != pair[1]
    )
    at = next(
        (i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    window = slice(max(0, at - 30), at + 30)
    return f"line {number}: expected {old[window]!r}, found {new[window]!r}"


def chosen(arguments: list[str]) -> Iterator[tuple[str, Callable[[], Way]]]:
    """The beds that the command line asks for."""
    beds = QUICK if "--quick" in arguments else QUICK | SLOW
    names = [argument for argument in arguments if argument != "--quick"]
    for name in names or beds:
        yield name, (QUICK | SLOW)[name]


def main() -> int:
    """Print a line a bed; 1 if any differs."""
    beds, quick = [*chosen(sys.argv[1:])], "--quick" in sys.argv
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        outcomes = [*workers.map(lambda bed: outcome(*bed, quick=quick), beds)]
    for bed, digest, verdict in outcomes:
        print(f"{bed:28} {digest[:16]:16} {verdict}")
    ran = [result for result in outcomes if not result.verdict.startswith("not run")]
    digests = {result.digest for result in ran}
    failed = [result for result in ran if not result.verdict.startswith("same")]
    print(f"{len(ran)} beds ran, {len(outcomes) - len(ran)} not run, {len(digests)} digest(s)")
    return 1 if failed or len(digests) != 1 else 0


if __name__ == "__main__":
    sys.exit(main())
