"""State what was measured of the intervals of tables of a swapped file."""

from stirred.mechanisms.coverage import MeasuredCoverage

MEASURED_COVERAGE = (
    MeasuredCoverage(
        key="swap",
        name="swap",
        levels={
            "tract": ((99.1, 99.6), (97.4, 99.1), (97.4, 98.5), (88.4, 96.3), (94.6, 96.2), (94.5, 94.5)),
            "block group": ((99.8, 99.8), (97.8, 97.8), (96.6, 96.6), (96.6, 96.6), (94.7, 94.7), (93.5, 93.5)),
            "block": ((99.2, 99.7), (96.6, 99.5), (94.3, 98.6), (93.2, 97.5), (92.1, 95.6), (94.4, 94.4)),
        },
        source="docs/explain/topdown-uncertainty.md; python benchmarks/intervals.py",
    ),
)  # fmt: skip
