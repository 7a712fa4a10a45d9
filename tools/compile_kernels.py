"""Compile the kernels that most tests call, by small runs of every kind; numba keeps them beside the sources.

``make test`` does this while mypy works, since two processes that run tests would compile each kernel twice. Here two
processes share the work: one takes TopDown and the synthetic censuses, whose kernels take longest, the other all the rest.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
PRESET_HOUSEHOLDS = 20
TOPDOWN = "topdown"


def main() -> int:
    """Run every mechanism in memory on a small census, and one preset on a synthetic one; return 0 where both halves ran."""
    other = subprocess.Popen([sys.executable, __file__, TOPDOWN])
    run_half(topdown=False)
    return other.wait()


def run_half(*, topdown: bool) -> None:
    """Run the cases of TopDown, after its slowest kernels, or the others."""
    sys.path.insert(0, str(TESTS))
    from golden.packets.make import CASES, engine_of, make_packet, synthesise
    from stirred.kernels import compile_slowest

    with tempfile.TemporaryDirectory() as place:
        if topdown:
            compile_slowest()
            synthesise(Path(place) / "synthetic", PRESET_HOUSEHOLDS)
        for name, case in CASES.items():
            if (case.mechanism == TOPDOWN) == topdown:
                make_packet(name, engine_of("memory"), Path(place) / name)


if __name__ == "__main__":
    if sys.argv[1:] == [TOPDOWN]:
        run_half(topdown=True)
    else:
        sys.exit(main())
