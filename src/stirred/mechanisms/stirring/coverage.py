"""State what was measured of the intervals of tables of a stirred file."""

from stirred.mechanisms.coverage import MeasuredCoverage

MEASURED_COVERAGE = (
    MeasuredCoverage(
        key="stirring",
        name="stirring",
        levels={
            "tract": ((92.7, 99.4), (96.2, 99.9), (94.8, 97.1), (93.8, 96.1), (93.4, 97.6), (95.0, 98.3)),
            "block group": ((97.8, 99.3), (96.3, 99.1), (93.5, 96.9), (95.7, 96.4), (93.9, 96.9), (94.3, 95.6)),
            "block": ((99.1, 99.7), (96.3, 99.5), (94.8, 98.3), (94.1, 98.2), (93.1, 98.3), None),
        },
        source="docs/explain/topdown-uncertainty.md; python benchmarks/intervals.py --mechanism stirring",
    ),
)  # fmt: skip
