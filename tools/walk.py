"""Count the files and functions of Stirred that a task passes: what a reader has to open to follow it.

    python tools/walk.py              the numbers of files and of functions of four tasks
    python tools/walk.py --files      the files too, each with its number of functions

The tasks, on one small census of invented households:

1. a release of the Permutation Swapping Algorithm in Python, from the census to the ``Release``;
2. its ε, ``specification(census)``;
3. one TopDown parent: a release of one state with two counties, so that the tree has one parent;
4. a number into the report: from a ``Release`` to the packet with its report, ``st.save``.

A function is passed if the interpreter calls it (``sys.setprofile``, in all threads). All modules are imported before, so
that what an import runs is not counted. Kernels that numba compiled are not seen: they run outside the interpreter.
"""

import argparse
import importlib
import pkgutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import polars as pl

import stirred as st

SOURCE = Path(st.__file__).resolve().parent
ONLY_FUNCTIONS = 0x1  # CO_OPTIMIZED: set for functions, not for modules and bodies of classes
HOUSEHOLDS = 120
CENSUS: dict[str, Any] = {
    "name": "walk",
    "geography": {"spine": ["state", "county"]},
    "record": {"household": {"id": "hid"}, "person": {"household": "hid", "of": "household"}},
}
WORKLOAD = """name = "walk"
title = "Sex"
source = "made for this count"
record = "person"
rho_squared = "2"
levels = ["state", "county"]
[[axis]]
name = "sex"
labels = ["f", "m"]
[axis.source]
cases = [{ sex = ["f"] }, {}]
[[query]]
name = "total"
[[query]]
name = "detailed"
of = ["sex"]
[level_shares]
state = "1/2"
county = "1/2"
[query_shares.state]
total = "1/2"
detailed = "1/2"
[query_shares.county]
total = "1/2"
detailed = "1/2"
[passes]
state = [["*"]]
county = [["*"]]
[[rule]]
name = "state population"
kind = "exact"
query = "total"
level = "state"
"""


def make_census() -> Any:
    """Return the census: one state, two counties, households of three sizes."""
    numbers = range(HOUSEHOLDS)
    homes = {
        "hid": list(numbers),
        "state": ["0" for _ in numbers],
        "county": [f"0{i % 2}" for i in numbers],
        "size": [1 + i // 2 % 3 for i in numbers],
        "tenure": ["own" if i * 7919 % 11 < 6 else "rent" for i in numbers],
    }
    owners = [i for i in numbers for _ in range(1 + i // 2 % 3)]
    people = {"hid": owners, "sex": ["fm"[n * 31 % 7 < 3] for n, _ in enumerate(owners)]}
    return st.Census.of(CENSUS, {"household": pl.DataFrame(homes), "person": pl.DataFrame(people)})


def import_all() -> None:
    """Import every module of Stirred, so that no task does it."""
    for module in pkgutil.walk_packages([str(SOURCE)], "stirred."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def trace(task: Callable[[], object]) -> Counter[str]:
    """Run a task and return the files that it passes, each with the number of its functions that were called."""
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        task()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files: Counter[str] = Counter()
    for code in seen:
        path = Path(code.co_filename)
        own = code.co_flags & ONLY_FUNCTIONS and not code.co_name.startswith("<")
        if own and path.is_relative_to(SOURCE):
            files[path.relative_to(SOURCE).as_posix()] += 1
    return files


def main() -> int:
    """Print the numbers of files and functions of each task."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", action="store_true", help="list the files, with their functions passed")
    asked = parser.parse_args()
    import_all()
    key, engine = st.Key.for_tests(1), st.Local(workers=1, memory="4 GB")
    swap = st.PermutationSwapping(match=["state", "size"], swap=["county"], rate="1/3")
    topdown = st.TopDown(workload=st.Workload.parse(WORKLOAD), replicates=0)
    first, second, third = (make_census() for _ in range(3))  # a census remembers what it counted
    made: list[Any] = []

    def save() -> None:
        with tempfile.TemporaryDirectory() as place:
            st.save(made[0], Path(place) / "packet", engine=engine)

    tasks: dict[str, Callable[[], object]] = {
        "a PSA release in Python": lambda: made.append(swap.release(first, key=key, engine=engine)),
        "ε of the PSA": lambda: swap.specification(second),
        "one TopDown parent": lambda: topdown.release(third, key=key, engine=engine),
        "a number into the report": save,
    }
    for name, task in tasks.items():
        files = trace(task)
        own = sum("topdown" in path for path in files)
        of = f" (of TopDown: {own} files)" if own else ""
        print(f"{name:28} {len(files):>4} files {files.total():>5} functions{of}")
        for path, number in sorted(files.items()) if asked.files else ():
            print(f"    {number:>4} {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
