"""On other processors: mode classic gives the same bytes whatever OpenBLAS and numba make of the machine.

Mode gls is not held to this: OpenBLAS chooses its routines by processor, and estimates differ in their last digits.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import hashlib, json, sys
sys.path.insert(0, sys.argv[1])
from unit.topdown.conftest import random_census
from stirred.chance import Key
from stirred.mechanisms.topdown import TopDown
release = TopDown(workload="pl94-persons", mode="classic", replicates=0).release(random_census(2), key=Key.for_tests(1))
tables = {**release.microdata, **release.tables}
text = json.dumps({name: table.to_pydict() for name, table in tables.items()}, sort_keys=True)
print(json.dumps(hashlib.sha256(text.encode()).hexdigest()))
"""
MACHINES = [
    {},
    {"OPENBLAS_CORETYPE": "Haswell"},
    {"OPENBLAS_CORETYPE": "Prescott"},
    {"OPENBLAS_NUM_THREADS": "1"},
    {"NUMBA_CPU_NAME": "generic"},
]


@pytest.mark.slow
def test_classic_gives_the_same_bytes_on_other_processors(tmp_path: Path) -> None:
    found = set()
    for machine in MACHINES:
        own = {**machine, "NUMBA_CACHE_DIR": str(tmp_path)} if "NUMBA_CPU_NAME" in machine else machine
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(Path(__file__).parents[2])],
            env={**os.environ, **own}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        found.add(json.loads(run.stdout))
    assert len(found) == 1
