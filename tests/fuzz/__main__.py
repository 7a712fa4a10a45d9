"""Many cases by hand: ``python -m fuzz SEED FACTOR [TARGET …]``, with ``tests`` on the path; prints every finding."""

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fuzz.targets import Targets
from fuzz.test_fuzz import MANY

seed, factor = int(sys.argv[1]), float(sys.argv[2])
with tempfile.TemporaryDirectory() as place:
    targets = Targets(Path(place) / "outer")
    for target in sys.argv[3:] or MANY:
        start, kinds = time.process_time(), Counter[str]()
        cases = round(MANY[target] * factor)
        for finding in targets.explore(target, seed, cases):
            kinds[finding.what] += 1
            if kinds[finding.what] == 1:
                print(finding, flush=True)
        seconds = time.process_time() - start
        print(
            f"{target}: seed {seed}, {cases:,} cases, {sum(kinds.values())} findings, {seconds:.0f} s",
            flush=True,
        )
