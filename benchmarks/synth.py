"""Time, peak memory and bytes of the synthetic censuses.

.venv/bin/python benchmarks/synth.py [--preset demo state massachusetts-1940] [--households N] [--out DIR] [--json]

Each preset is written in a process of its own (compiled kernels come from numba's cache, or are compiled first and
reported as such). The nation needs about 4 GB of disk and runs only when asked for: --preset nation --out DIR keeps it.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def measure(preset: str, out: Path, households: int | None) -> dict[str, object]:
    """Write one preset here and now."""
    from stirred.census.synthetic import synthesise, write_preset

    begin = time.perf_counter()
    synthesise("demo", households=500)
    compiled = time.perf_counter()
    made = write_preset(preset, out, households=households)
    end = time.perf_counter()
    return {
        **made,
        "census": "",
        "compile_seconds": round(compiled - begin, 2),
        "seconds": round(end - compiled, 2),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = ["demo", "state", "massachusetts-1940"]
    parser.add_argument("--preset", nargs="+", action="extend", help="presets to write (all but the nation)")
    parser.add_argument("--households", type=int)
    parser.add_argument("--out", type=Path, help="keep the censuses in this folder")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measure(arguments.child, arguments.out, arguments.households)))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for preset in arguments.preset or default:
            out = (arguments.out or Path(folder)) / preset
            command = [sys.executable, __file__, "--child", preset, "--out", str(out)]
            if arguments.households:
                command += ["--households", str(arguments.households)]
            rows.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    if arguments.json:
        print(json.dumps(rows))
        return
    print(f"{'preset':20} {'units':>12} {'persons':>12} {'seconds':>8} {'peak RSS':>9} {'bytes':>14}")
    for row in rows:
        count = row["rows"]
        print(
            f"{row['preset']:20} {count['household']:12,} {count.get('person', 0):12,} {row['seconds']:8.1f} "
            f"{row['peak_rss_bytes'] / 1e9:6.2f} GB {row['bytes']:14,}"
        )


if __name__ == "__main__":
    main()
