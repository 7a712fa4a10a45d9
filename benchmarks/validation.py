"""What it costs to hold a census against its schema inside a release, beside the same release without it.

    python benchmarks/validation.py                            10 million households
    python benchmarks/validation.py --persons                  carry their persons along, 2.5 a household
    python benchmarks/validation.py --households 1000000 --repeats 5
    python benchmarks/validation.py --json

Both go from Parquet to Parquet through PermutationSwapping.release, in turn, each in a process of its own; without
validation the census is marked as checked beforehand. Every column that can be has levels, so that its codes are
compared with them. Figures are medians of the repeats; seconds of the processor beside those of the clock, because a
shared machine disturbs the clock.
"""

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path

from swapping import alone, make_files

LEVELS = {
    "household": {"tenure": "1..4", "stratum": "integer"},
    "person": {"age": "0..99", "sex": "1..2", "relationship": "0..17"},
}


def make(folder: Path, n: int, strata: int, *, persons: bool) -> dict[str, object]:
    """The files of the benchmark of swapping, with a schema that lists levels."""
    make_files(folder, n, strata, persons=persons)
    toml = folder / "census.toml"
    text = toml.read_text()
    for record, variables in LEVELS.items():
        if f"[record.{record}]" in text:
            text += f"[record.{record}.variables]\n"
            text += "".join(f'{name} = "{levels}"\n' for name, levels in variables.items())
    toml.write_text(text)
    return {}


def processor() -> float:
    """Seconds of the processor that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure_release(folder: Path, *, persons: bool, validated: bool) -> dict[str, float]:
    """One release, with its check of the records or without it."""
    from stirred.census import Census, read
    from stirred.census.census import Checkup
    from stirred.chance import Key
    from stirred.mechanisms.swap import PermutationSwapping

    psa = PermutationSwapping(match=["stratum"], swap=["block"], rate="1/20", carry=persons)
    census = read(folder)
    # a first run on a hundred records loads libraries and compiled kernels, so that they are not timed
    few = {name: census.scan(name).limit(100).collect() for name in census.schema.record_types}
    if persons:
        few["person"] = few["person"].filter(few["person"]["household_id"] <= 40)
    psa.release(Census.of(census.schema, few), key=Key.for_tests(1), out=Path(tempfile.mkdtemp(dir=folder)))
    if not validated:
        census._mark_checked(Checkup(invalid="refuse"))
        census._linkable.clear()  # without validation a release finds out by itself that identifiers are unique
    with tempfile.TemporaryDirectory(dir=folder) as out:
        used, began = processor(), time.perf_counter()
        psa.release(census, key=Key.for_tests(1), out=Path(out))
        seconds, used = time.perf_counter() - began, processor() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "processor_seconds": used, "peak_bytes": peak}


def measure(n: int, strata: int, *, persons: bool, repeats: int, folder: Path) -> dict[str, object]:
    """Both ways, in turn; medians of all repeats."""
    alone(make, folder, n, strata, persons=persons)
    found: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    for _ in range(repeats):
        for validated, results in found.items():
            results.append(alone(measure_release, folder, persons=persons, validated=validated))  # type: ignore[arg-type]
    both = {
        validated: {name: statistics.median(result[name] for result in results) for name in results[0]}
        for validated, results in found.items()
    }
    return {
        "households": n,
        "persons": persons,
        "without": both[False],
        "with": both[True],
        "ratios": {name: both[True][name] / both[False][name] for name in both[True]},
    }


def report(result: dict[str, object]) -> None:
    """A few lines for people."""
    along = " with their persons" if result["persons"] else ""
    print(f"{result['households']:,} households{along}")  # type: ignore[str-bytes-safe]
    for part in ("without", "with"):
        found: dict[str, float] = result[part]  # type: ignore[assignment]
        print(
            f"   {part + ' validation':20} {found['seconds']:6.2f} s, {found['processor_seconds']:6.2f} s of the "
            f"processor, {found['peak_bytes'] / 1e9:.2f} GB"
        )
    print("   ratios", {k: round(v, 3) for k, v in result["ratios"].items()}, flush=True)  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--households", type=int, default=10_000_000)
    parser.add_argument("--strata", type=int, default=300)
    parser.add_argument("--persons", action="store_true", help="carry persons along, 2.5 a household")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the files go (default: a temporary folder)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as place:
        result = measure(
            arguments.households,
            arguments.strata,
            persons=arguments.persons,
            repeats=arguments.repeats,
            folder=Path(place),
        )
    if arguments.json:
        print(json.dumps({"cores": os.cpu_count(), "result": result}, indent=2))
    else:
        report(result)


if __name__ == "__main__":
    main()
