"""Build sdist and wheel, check them, install the wheel in an empty environment, and run README's first program there.

python tools/check_dist.py [FOLDER]: ``make dist`` builds into build/dist. It fetches twine and what the wheel needs.
"""

import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_WHEEL_BYTES = 3_000_000
# what a wheel must hold, one of each kind that is no module
NEEDED = (
    "stirred/py.typed",
    "stirred/languages/en.toml",
    "stirred/languages/fr.toml",
    "stirred/report/templates/report.css",
    "stirred/spec/card/template_cache.py",
    "stirred/web/templates/base.html.j2",
    "stirred/web/static/workbench.js",
    "stirred/mechanisms/swap/proof.md",
)
FOREIGN = re.compile(r"(^|/)(tests?|benchmarks?|docs|formal|tools)/|\.(pyc|nbi|nbc|parquet|csv|png)$")


def list_faults(wheel: Path) -> list[str]:
    """Return what a wheel lacks or should not hold."""
    names = zipfile.ZipFile(wheel).namelist()
    sources = ROOT / "src"
    kept = {
        str(path.relative_to(sources))
        for path in sources.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.suffix in (".py", ".toml", ".j2", ".css", ".js", ".svg", ".json")
    }
    faults = [f"it lacks {name}" for name in sorted({*NEEDED, *kept} - {*names})]
    faults += [f"it holds {name}" for name in names if FOREIGN.search(name)]
    if wheel.stat().st_size > MAX_WHEEL_BYTES:
        faults.append(f"it has {wheel.stat().st_size:,} bytes, more than {MAX_WHEEL_BYTES:,}")
    return faults


def read_first_program(page: str) -> str:
    """Return the first Python block of a page."""
    found = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    if found is None:
        raise SystemExit("README.md has no Python block")
    return found[1]


def run(*words: object, folder: Path = ROOT) -> float:
    """Run a command, end where it fails, and return its seconds."""
    began = time.monotonic()
    done = subprocess.run([*map(str, words)], cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return time.monotonic() - began


def main(out: Path) -> int:
    """Build, check, install and run; print sizes and seconds."""
    out = out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    uv = Path(sys.executable).with_name("uv")
    built = run(uv, "build", "--no-build-isolation", "--python", sys.executable, "--out-dir", out)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    if faults := list_faults(wheel):
        raise SystemExit("\n".join([f"{wheel.name} is not whole", *faults]))
    print(
        f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {len(zipfile.ZipFile(wheel).namelist())} files"
    )
    with tarfile.open(sdist) as archive:
        number = len(archive.getmembers())
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB, {number} files")
    print(f"built in {built:.0f} s")
    run(uv, "tool", "run", "twine", "check", "--strict", wheel, sdist)
    print("twine check: passed")
    place = out / "empty"
    run(uv, "venv", "--python", sys.executable, place)
    python = place / "bin" / "python"
    seconds = run(uv, "pip", "install", "--python", python, wheel)
    size = sum(path.lstat().st_size for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    print(f"installed in {seconds:.0f} s, {size / 1e9:.2f} GB with what it needs")
    program = place / "first.py"
    program.write_text(read_first_program((ROOT / "README.md").read_text(encoding="utf-8")), encoding="utf-8")
    seconds = run(python, "-I", program, folder=place)
    if not (place / "out" / "public" / "spec.json").is_file():
        raise SystemExit("README's first program left no packet")
    again = run(python, "-I", program, folder=place / "bin")
    print(f"README's first program: {seconds:.0f} s, with kernels to compile; {again:.0f} s again")
    shutil.rmtree(place)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "dist"))
