"""Declare the settings of TopDown, and what was measured of its intervals: by replicates, and of the unbiased estimates."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, PlainSerializer, ValidatorFunctionWrapHandler, WrapValidator

from stirred.mechanisms.config import ExactOrInfinite, MechanismConfig, Varied
from stirred.mechanisms.effect import MAJORITY, OTHER, TWICE, Held, KindCoverage, MeasuredCoverage

if TYPE_CHECKING:
    from stirred.mechanisms.topdown.workload import Workload


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


def _keep_workload(value: object, check: ValidatorFunctionWrapHandler) -> object:
    """Return a workload that was made in Python as it is; all else has to be a text."""
    if not isinstance(value, str):
        from stirred.mechanisms.topdown.workload import Workload  # heavy, and a plan has texts alone

        if isinstance(value, Workload):
            return value
    return check(value)


def _name_workload(value: "str | Workload") -> str:
    return value if isinstance(value, str) else value.name


if TYPE_CHECKING:
    WorkloadOrName = str | Workload
else:  # a plan names a workload; Python may also make one, of which settings() knows the name alone
    WorkloadOrName = Annotated[str, WrapValidator(_keep_workload), PlainSerializer(_name_workload)]


class TopDownConfig(MechanismConfig):
    """TopDown: noisy measurements of a workload, then microdata that keep the invariants.

    A run keeps every level that it finished: an interrupted run is taken up by the same command and gives the same packet,
    with the same noise.
    """

    workload: WorkloadOrName = Field(
        default="pl94-persons",
        description="a preset (small, pl94-persons, pl94-units, dhc-persons, dhc-units), pl94, pl94-pr, pl94-stirred, dhc "
        "or dhc-pr for persons and units together (both dhc need given), or a TOML file",
        examples=["pl94-persons"],
        json_schema_extra={"path": ".toml"},
    )
    mode: Literal["gls", "guided", "classic", "workload"] = Field(
        default="workload",
        description="the estimate: gls is more accurate at the same noise, guided adds to it the exact counts of units as "
        "knowledge of how many persons live in a block and sums that are fitted first, classic is that of the 2020 "
        "production, workload is the one that the workload names",
        examples=["gls"],
    )
    rho_squared: Annotated[ExactOrInfinite | None, Varied("rho_squared")] = Field(
        default=None,
        description="the total ρ² (the usual zCDP ρ) instead of the workload's, an exact text, never a float; "
        "inf adds no noise",
        examples=["2.5562"],
    )
    replicates: int = Field(
        default=20,
        ge=0,
        description="how often the mechanism is run again on its own output for the intervals of tables (0 for none; no "
        "privacy cost)",
        examples=[20],
    )
    keep_nmf: bool = Field(default=False, description="also publish the noisy measurement file")
    given: str | None = Field(
        default=None,
        description="a packet whose microdata this release must agree with, or the label of an earlier [[mechanism]]",
        examples=["packet"],
        json_schema_extra={"path": True, "continues": True},
    )
    names: Literal["own", "bureau"] = Field(
        default="own",
        description="the columns of the microdata: Stirred's own, or those of the Bureau's files",
        examples=["own"],
    )
    emphasis: int = Field(
        default=1,
        ge=1,
        description="how often the totals of the lowest level count in the solve (gls): less bias, more error; 30 to 100",
        examples=[1],
    )
    aian: str | None = Field(
        default=None,
        description="the off-spine geography that splits states into AIAN areas and the remainder; pl94, dhc and "
        "pl94-stirred use aiannh where the census has it, and none asks for whole states",
        examples=["aiannh"],
    )
    part_bounds: bool = Field(
        default=False,
        description="whether the population of each part (aian) bounds its persons by type of quarters, as in the code of "
        "the 2020 production; the populations of parts are then stated as an invariant",
    )
    optimized_block_groups: list[str] | None = Field(
        default=None,
        description="a list of off-spine geographies that block groups made anew respect, at most √n + 13 in a tract of n",
        examples=[["place"]],
        json_schema_extra={"nargs": "*"},
    )
    areas_of_interest: list[str] | None = Field(
        default=None,
        description="a list of off-spine geographies that matter (places, school districts, tribal areas): block groups are "
        "made anew so that few measured areas build each of their areas, aiannh among them splits states as aian does, and "
        "the check states the predicted error of each",
        examples=[["place"]],
        json_schema_extra={"nargs": "*"},
    )
    strong_mcd: str | None = Field(
        default=None,
        description="the off-spine geography of county subdivisions that block groups made anew respect instead of place in "
        "the twelve states where these are strong",
        examples=["mcd"],
    )
    group_quarters_bits: bool = Field(
        default=False,
        description="whether block groups made anew also keep blocks with other types of group quarters apart, where these "
        "are an invariant (persons)",
    )
    primitives: list[str] | None = Field(
        default=None,
        description="a list of off-spine geographies whose pieces of a county (prims) are measured between county and "
        "tract; tracts are cut by them, as in the spine of DHC",
        examples=[["mcd", "place"]],
        json_schema_extra={"nargs": "*"},
    )
    bypass: bool = Field(
        default=True,
        description="whether a geounit with one child is measured once, with both parts of ρ²",
        json_schema_extra={"flag_help": "measure geounits with one child twice"},
    )
