"""Compile the kernels that most tests call, by small runs of every kind; numba keeps them beside the sources.

``make test`` does this while mypy works, since two processes that run tests would compile each kernel twice.
"""

import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
PRESET_HOUSEHOLDS = 20


def main() -> int:
    """Run every mechanism in memory on a small census, and one preset on a synthetic one; return 0."""
    sys.path.insert(0, str(TESTS))
    from golden.packets.make import CASES, engine_of, make_packet, synthesise
    from stirred.kernels import compile_slowest

    compile_slowest()
    with tempfile.TemporaryDirectory() as place:
        synthesise(Path(place) / "synthetic", PRESET_HOUSEHOLDS)
        for name in CASES:
            make_packet(name, engine_of("memory"), Path(place) / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
