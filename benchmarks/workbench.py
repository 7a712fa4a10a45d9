"""How fast the workbench answers: the first page, and the slider on a census whose records are read.

    python benchmarks/workbench.py FOLDER                     a census of a million households is made there first
    python benchmarks/workbench.py FOLDER --households 60000

Targets on an idle machine, over the loopback interface: first page under 200 ms, an answer of the slider under 100 ms.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

RATES = [f"{number}/400" for number in range(4, 200, 8)]


def main() -> int:
    """Print one JSON document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--households", type=int, default=1_000_000)
    arguments = parser.parse_args()
    census = arguments.folder / f"census-{arguments.households}"
    if not (census / "census.toml").exists():
        from stirred.census.synthetic import write_preset

        write_preset("state", census, households=arguments.households)
    bench = arguments.folder / f"bench-{time.time_ns()}"
    words = [
        sys.executable,
        "-m",
        "stirred",
        "serve",
        str(bench),
        "--port",
        "0",
        "--data",
        str(arguments.folder),
    ]
    began = time.perf_counter()
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = [server.stdout.readline() for _ in range(2)][1].split()[1]
        print(json.dumps({"households": arguments.households, **measured(address, census, began)}, indent=2))
    finally:
        server.terminate()
        server.wait()
    return 0


def measured(address: str, census: Path, began: float) -> dict[str, object]:
    """Milliseconds of the first page, of the first promise on the records, and of the slider."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    origin = address.split("/?")[0]

    def call(path: str, form: dict[str, object] | None = None) -> tuple[str, float]:
        start = time.perf_counter()
        body = None if form is None else urllib.parse.urlencode(form, doseq=True).encode()
        text = opener.open(path if path.startswith("http") else origin + path, body).read().decode()
        return text, 1000 * (time.perf_counter() - start)

    started = 1000 * (time.perf_counter() - began)
    first, first_ms = call(address)
    found = re.search(r'data-csrf="(\w+)"', first)
    assert found
    csrf = {"csrf": found[1]}
    call("/data/folder", {**csrf, "folder": str(census)})
    call("/data/read", {**csrf, "read": "yes"})
    page, reading_ms = call(
        "/promise/start", {**csrf, "mechanism": "permutation-swapping"}
    )  # goes on to the promise
    assert "Stated on the records." in page
    times = []
    for rate in RATES:
        text, milliseconds = call("/promise/answer?part=0", {**csrf, "shown": ["rate"], "s.rate": rate})
        assert "ε = " in text
        times.append(milliseconds)
    return {
        "server_started_ms": round(started),
        "first_page_ms": round(first_ms, 1),
        "records_read_ms": round(reading_ms),
        "slider_median_ms": round(statistics.median(times), 1),
        "slider_worst_ms": round(max(times), 1),
    }


if __name__ == "__main__":
    raise SystemExit(main())
