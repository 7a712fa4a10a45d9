"""State what was measured of TopDown's intervals: those by replicates, and those of the unbiased estimates."""

from stirred.mechanisms.coverage import MeasuredCoverage

_SOURCE = "docs/explain/topdown-uncertainty.md; python benchmarks/topdown_accuracy.py, python benchmarks/intervals.py"

MEASURED_COVERAGE = (
    MeasuredCoverage(  # of the tables, in every mode; by block also by the unbiased estimate
        key="topdown",
        name="TopDown, by replicates",
        levels={
            "tract": ((98.7, 99.8), (97.5, 99.0), (95.5, 97.2), (94.5, 100.0), (94.1, 100.0), (96.0, 98.4)),
            "block group": ((98.4, 99.2), (97.2, 98.8), (94.5, 100.0), (91.2, 100.0), (93.1, 99.0), (94.7, 96.3)),
            "block": ((97.0, 100.0), (95.0, 100.0), (93.3, 98.1), (92.9, 98.2), (91.9, 100.0), (93.5, 93.8)),
        },
        source=_SOURCE,
    ),
    MeasuredCoverage(  # around the unbiased estimates, whose variance is exact
        key="unbiased",
        name="TopDown, unbiased",
        levels={
            "tract": ((95.5, 95.5), (92.0, 92.0), (94.4, 94.4), (92.5, 96.2), (92.2, 97.6), None),
            "block group": ((95.2, 95.2), (94.2, 94.2), (95.2, 95.2), (93.0, 96.4), (93.5, 97.7), None),
            "block": ((86.5, 86.5), (96.3, 96.3), (95.5, 95.5), (94.7, 94.9), (94.1, 94.8), None),
        },
        source=_SOURCE,
    ),
)  # fmt: skip
