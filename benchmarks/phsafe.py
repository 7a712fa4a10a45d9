"""PHSafe on the synthetic state: seconds by step, peak memory, and the whole command on a ten-person folder.

  python benchmarks/phsafe.py [CENSUS.toml] [--households N] [--parts N]

The floor is one scan that reads the same columns of the same records and adds up a hash of each. With --parts the counts
are made in so many parts on disk, as for a census that does not fit in memory.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stirred.census import Census, read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.census2020.phsafe.counting import CensusColumns
from stirred.mechanisms.census2020.phsafe.mechanism import PHSafe

TOY = {
    "persons.csv": "RTYPE,MAFID,QAGE,CENHISP,CENRACE,RELSHIP\n"
    + "".join(f"3,{1 + i // 2},{10 + 25 * (i % 2)},1,01,{25 - 5 * (i % 2)}\n" for i in range(10)),
    "units.csv": "RTYPE,MAFID,FINAL_POP,NPF,HHSPAN,HHRACE,TEN,HHT,HHT2,CPLT\n"
    + "".join(f"2,{1 + i},2,2,1,01,2,3,06,5\n" for i in range(5)),
    "geo.csv": "RTYPE,MAFID,TABBLKST,TABBLKCOU,TABTRACTCE,TABBLK\n"
    + "".join(f"2,{1 + i},44,001,000100,1000\n" for i in range(5)),
}


@dataclass(frozen=True)
class InParts(Local):
    """This machine, if nothing fitted its memory."""

    number: int = 4

    def fits(self, size: int) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def parts_for(self, size: int) -> int:  # noqa: ARG002
        """As asked."""
        return self.number


def main() -> None:
    """Run and print one JSON document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "census", nargs="?", help="census.toml (default: a synthetic state, made for the run)"
    )
    parser.add_argument("--households", type=int, help="of the synthetic state")
    parser.add_argument("--parts", type=int, default=0, help="how many parts, 0 for memory")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(arguments.census or folder)
        if arguments.census is None:
            write_preset("state", path, households=arguments.households)
        found = {"toy": toy(Path(folder)), "state": measured(path, arguments.parts)}
        print(json.dumps(found, indent=1))


def toy(folder: Path) -> dict[str, float]:
    """Seconds of the whole command on ten persons: the first run, and the quickest of three more."""
    place = folder / "toy"
    place.mkdir()
    for name, text in TOY.items():
        (place / name).write_text(text)
    times = []
    for number in range(4):
        words = [
            sys.executable,
            "-m",
            "stirred",
            "phsafe",
            str(place),
            "--out",
            str(folder / f"packet{number}"),
        ]
        times.append(timed(lambda words=words: subprocess.run(words, check=True, capture_output=True)))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = (used.ru_utime + used.ru_stime) / len(times)
    return {"first": times[0], "again": min(times[1:]), "processor, on average": processor}


def timed(work: Callable[[], object]) -> float:
    """Seconds of some work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measured(path: Path, parts: int) -> dict[str, object]:
    """All figures of one census."""
    mechanism, census = PHSafe(), read(path)
    checking = timed(census.check)
    checked = census.check()
    floor = timed(lambda: hashed(census))
    engine = InParts(number=parts) if parts else Local()
    work = time.process_time()
    whole = timed(lambda: mechanism.release(checked, key=Key.for_tests(1), engine=engine))
    work = time.process_time() - work
    persons = census.count("person")
    return {
        "persons": persons,
        "households": census.count("household"),
        "parts": parts or 1,
        "seconds": {
            "check": checking,
            "read columns (floor)": floor,
            "release": whole,
            "release, of both cores": work,
        },
        "ratio to the floor": whole / floor,
        "seconds per million persons": whole / persons * 1e6,
        "peak memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "cores": os.cpu_count(),
        "load at the end": os.getloadavg()[0],
    }


def hashed(census: Census) -> None:
    """Read the columns of both record types once."""
    columns = CensusColumns.of(census, {}, state="state")
    for name, wanted in (("household", columns.of_household), ("person", columns.of_person)):
        frame = census.scan(name, list(wanted), ordered=False)
        frame.select(pl.struct(pl.all()).hash().sum()).collect(engine="streaming")


if __name__ == "__main__":
    main()
