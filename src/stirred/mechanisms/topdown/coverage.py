"""State what was measured of TopDown's intervals: those by replicates, and those of the unbiased estimates."""

from stirred.mechanisms.coverage import MAJORITY, OTHER, TWICE, Held, KindCoverage, MeasuredCoverage

_SOURCE = "docs/explain/topdown-uncertainty.md; python benchmarks/topdown_accuracy.py, python benchmarks/intervals.py"

_Settings = dict[str, tuple[str, ...]]
_DEFAULT_TOTAL: _Settings = {"rho_squared": ("None",)}
_STIRRED, _PRODUCTION = ("pl94-stirred", "pl94-stirred-persons"), ("pl94", "pl94-persons")
_GLS: _Settings = {"workload": _STIRRED, "mode": ("workload", "gls")} | _DEFAULT_TOTAL
_GUIDED: _Settings = {"workload": _STIRRED, "mode": ("guided",)} | _DEFAULT_TOTAL
_CLASSIC: _Settings = {"workload": _PRODUCTION, "mode": ("workload", "classic")} | _DEFAULT_TOTAL
_KINDS: tuple[tuple[_Settings, str, tuple[Held | None, ...]], ...] = (
    (_GLS, TWICE, (None, (100.0, 100.0), (88.9, 93.1), (93.6, 94.0), None, None)),
    (_GLS, MAJORITY, (None, (100.0, 100.0), (94.6, 95.9), (94.9, 95.8), (95.1, 97.4), None)),
    (_GLS, OTHER, ((99.7, 99.8), (99.4, 99.8), (94.4, 96.1), (94.9, 96.4), (96.0, 96.0), None)),
    (_GUIDED, TWICE, (None, (99.9, 100.0), (89.1, 92.6), (91.3, 94.9), None, None)),
    (_GUIDED, MAJORITY, (None, (100.0, 100.0), (95.5, 96.2), (94.9, 95.4), (95.1, 96.7), None)),
    (_GUIDED, OTHER, ((99.7, 99.8), (99.4, 99.8), (95.1, 95.9), (95.0, 95.8), (95.2, 95.2), None)),
    (_CLASSIC, TWICE, (None, (99.7, 100.0), (88.3, 92.3), (88.7, 92.4), None, None)),
    (_CLASSIC, MAJORITY, (None, (96.5, 96.9), (92.7, 95.8), (94.5, 95.1), (90.4, 94.8), None)),
    (_CLASSIC, OTHER, ((99.5, 99.7), (98.7, 99.2), (93.6, 96.2), (93.7, 95.5), (95.3, 95.3), None)),
)  # docs/benchmarks/who-pays.md, by published kind

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
        kinds=tuple(
            KindCoverage(level="block", above="block_group", kind=kind, settings=settings, classes=classes)
            for settings, kind, classes in _KINDS
        ),
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
