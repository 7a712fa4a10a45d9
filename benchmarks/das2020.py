"""The products of the 2020 census on the synthetic state: seconds and peak memory of each, and of the swapped file.

  python benchmarks/das2020.py [CENSUS.toml] [--households 400000] [--full] [--codes DIR]

Every product runs in a process of its own, so that its peak memory is its own. The floor is reading the census once: counts
of persons by state and of households by county. ``--full`` has the DHC of the production, which takes minutes;
without it the small one (``dhc-light``). Compiled kernels are warm if the benchmark ran before. Ratios are of processor
time, so that a busy machine changes them little.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from stirred.census import read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.publish import parse, save
from stirred.publish.named_plans import Choices, find_named_plan

FLOOR = "floor"
KEY = Key.for_tests(1)


def main() -> None:
    """Run every product in a child, and print one JSON document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "census", nargs="?", help="census.toml (default: a synthetic state, made for the run)"
    )
    parser.add_argument("--households", type=int, help="of the state that is made (default: the preset's)")
    parser.add_argument("--full", action="store_true", help="the DHC of the production")
    parser.add_argument("--codes", default="", help="a folder of code lists")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(arguments)))
        return
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        if arguments.census is None:
            write_preset("state", work / "census", households=arguments.households)
            arguments.census = str(work / "census" / "census.toml")
        census = read(arguments.census)
        records = {name: census.count(name) for name in census.schema.record_types}
        found = {label: child(arguments, label, work) for label in (FLOOR, *labels(arguments), "swap")}
    floor = found[FLOOR]["processor_seconds"]
    for product in found.values():
        product["floors"] = round(product["processor_seconds"] / floor, 1)
    print(json.dumps({"records": records, "light": not arguments.full, "products": found}, indent=2))


def plan_of(arguments: argparse.Namespace, *, swapped: bool = False) -> Any:
    """The plan of the benchmark's settings."""
    path = Path(arguments.census)
    codes = "" if not arguments.codes else str(Path(arguments.codes).resolve())
    choices = Choices(census=path.name, swapped=swapped, light=not arguments.full, codes=codes)
    return parse(find_named_plan("das2020").text(choices), folder=path.parent)


def labels(arguments: argparse.Namespace) -> list[str]:
    return [step.label for step in plan_of(arguments).steps]


def child(arguments: argparse.Namespace, label: str, work: Path) -> dict[str, Any]:
    """One product in a process of its own."""
    words = [sys.executable, __file__, str(arguments.census), "--one", label, "--work", str(work)]
    words += ["--full"] if arguments.full else []
    words += ["--codes", arguments.codes] if arguments.codes else []
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Release one product, and keep it as a packet that later ones read."""
    census = read(arguments.census)
    start, used = time.perf_counter(), time.process_time()
    if arguments.one == FLOOR:
        census.counts("person", ["state"])
        census.counts("household", ["county"])
    else:
        plan = plan_of(arguments, swapped=arguments.one == "swap")
        step = next(step for step in plan.steps if step.label == arguments.one)
        mechanism = step.mechanism
        if step.earlier is not None:
            mechanism = step.after(arguments.work / plan.steps[step.earlier].label, plan.folder)
        release = mechanism.release(census, key=KEY)
        start_of_saving, used_before = time.perf_counter(), time.process_time()
        if arguments.one in ("pl", "ddhc-a"):
            save(release, arguments.work / arguments.one)
        start += time.perf_counter() - start_of_saving
        used += time.process_time() - used_before
    return {
        "seconds": round(time.perf_counter() - start, 2),
        "processor_seconds": round(time.process_time() - used, 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


if __name__ == "__main__":
    main()
