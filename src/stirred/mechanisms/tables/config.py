"""Define the settings of mechanisms that publish tables of records."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from stirred.mechanisms.config import Exact, MechanismConfig, Share, Varied

# The settings that all of them have, but the one with exact margins, which makes a single table.


class RecordTablesConfig(MechanismConfig):
    """Tables of counts by variables, of a census or of the records of an earlier release."""

    tables: list[list[str]] = Field(
        description="the tables to publish, each a list of variables",
        examples=[[["county", "tenure"]]],
        json_schema_extra={"flag": "--table"},
    )
    record: str = Field(
        default="household", description="the record type that is counted", examples=["person"]
    )
    given: str | None = Field(
        default=None,
        description="a packet whose records are tabulated instead of the census, or the label of an earlier [[mechanism]]; "
        "its guarantee holds for these tables too",
        examples=["packet"],
        json_schema_extra={"path": True, "continues": True},
    )
    without_guarantee: str = Field(
        default="",
        description="why the tables are published though no protection loss budget is finite; it stands in the report",
        examples=["the method of the last census"],
    )


# The settings of tables with discrete Gaussian noise.


class GaussianTablesConfig(RecordTablesConfig):
    """Tables of counts, each cell with independent discrete Gaussian noise (zCDP), the empty cells too.

    Applied to the records of a swap (given), the swap's guarantee holds unchanged, and the noise has one of its own.
    """

    listed_where_given: ClassVar[frozenset[str]] = frozenset(["stability"])

    tables: list[list[str]] = Field(
        description="the tables to publish, each a list of variables with listed levels, or levels of the geography",
        examples=[[["county", "tenure"]]],
        json_schema_extra={"flag": "--table"},
    )
    record: str = Field(
        default="household",
        description="the record type that is counted, which is also the unit that is protected",
        examples=["person"],
    )
    rho_squared: Annotated[Exact, Varied("rho_squared")] = Field(
        description="the total ρ² (the usual zCDP ρ) of all tables, an exact text above 0, never a float",
        examples=["1/2"],
    )
    shares: list[Exact] = Field(
        default=[],
        description="the share of ρ² of each table, in their order; they add up to 1; equal shares unless given",
        examples=[["3/4", "1/4"]],
    )
    stability: Exact | None = Field(
        default=None,
        description="for how many records of the given release one changed record of the census can differ, where it is "
        "proved: 1 for permutation-swapping within its invariants; then the noise's own promise is stated too",
        examples=["1"],
    )


# The settings of the cell key method.


class CellKeyConfig(RecordTablesConfig):
    """The cell key method: tables whose cells have bounded noise, the same noise for the same records in every table.

    It has no finite protection loss budget: an empty cell always stays empty. The setting without_guarantee says why it is
    published all the same. Applied to the records of a swap (given), the swap's guarantee holds unchanged.
    """

    listed_where_given: ClassVar[frozenset[str]] = frozenset(["pstay", "record_key", "weight", "p_small"])

    ptable: str | None = Field(
        default=None,
        description="a file with the perturbation table, of ptable, tau-ARGUS or the ONS; without one it is designed from "
        "D, V, js, pstay and mono",
        examples=["ptable.csv"],
        json_schema_extra={"path": True},
    )
    D: int = Field(default=5, ge=1, description="the largest noise, up or down", examples=[5])
    V: Exact = Field(
        default="3", description="the variance of the noise, an exact text above 0", examples=["3"]
    )
    js: int = Field(default=0, ge=0, description="counts from 1 to js never appear in a table", examples=[2])
    pstay: Share | None = Field(
        default=None, description="the chance that a count stays as it is", examples=["0.5"]
    )
    pstay_rule: Literal["exact", "lowered"] = Field(
        default="exact",
        description="exact: pstay is the chance itself; lowered: it is the start of ptable's rule, which takes pstay as the "
        "least chance and lowers it by 0.05 until the variance is V",
        examples=["lowered"],
    )
    mono: bool = Field(
        default=True,
        description="whether noise nearer to 0 is never less likely, below 0",
        json_schema_extra={"flag": "--no-mono", "flag_help": "allow laws of noise that fall towards 0"},
    )
    digits: int = Field(
        default=8,
        ge=5,
        le=17,
        description="how many decimals a record key has (decimal dialect)",
        examples=[8],
    )
    ties: Literal["below", "up-to"] = Field(
        default="below",
        description="where a key belongs that equals the end of an interval: below (key < end, as the code of cellKey "
        "reads) or up-to (key ≤ end, as the handbook writes)",
        examples=["below"],
    )
    record_key: str | None = Field(
        default=None,
        description="a variable that holds permanent record keys; without one they are drawn from the run's key and the "
        "record's identifier",
        examples=["record_key"],
    )
    threshold: int = Field(
        default=0,
        ge=0,
        description="perturbed counts below this are not shown (10 at the ONS)",
        examples=[10],
    )
    period: int = Field(
        default=250,
        ge=1,
        description="counts beyond a table of the ONS repeat its last rows, this many",
        examples=[250],
    )
    weight: str | None = Field(
        default=None,
        description="a variable that weights the records: each table is published weighted too, the perturbed count times "
        "the mean weight of its cell, rounded to a multiple of weight_base",
        examples=["weight"],
    )
    weight_base: Exact = Field(
        default="10",
        description="weighted counts are rounded to multiples of this; at least D + 1 times the step of the weights (1 for "
        "whole numbers), so that they do not tell true counts",
        examples=["10"],
    )
    magnitudes: list[str] = Field(
        default=[],
        description="variables of at least 0 whose totals are published too, each in tables of its own, with noise in "
        "proportion to the largest contributors of a cell",
        examples=[["income"]],
    )
    epsilon: list[Exact] = Field(
        default=["1"],
        description="the weight of the largest, second largest, … contributor in the noise of a total; one to six",
        examples=[["1", "0.5"]],
    )
    p_large: Exact = Field(
        default="0.05",
        description="the share of a large contributor that a unit of noise is",
        examples=["0.05"],
    )
    p_small: Exact | None = Field(
        default=None,
        description="the same share of contributors below fp; p_large unless given",
        examples=["0.2"],
    )
    fp: Exact = Field(
        default="0",
        description="the flex point, from which on the share falls from p_small to p_large; 0: it is p_large everywhere",
        examples=["1000"],
    )
    q: Exact = Field(
        default="3", description="how fast the share falls beyond the flex point, at least 1", examples=["3"]
    )
    mu_c: Exact = Field(
        default="0",
        description="extra noise of totals in cells with fewer records than sensitive_below",
        examples=["1"],
    )
    sensitive_below: int = Field(
        default=0,
        ge=0,
        description="totals of fewer records than this have the extra noise mu_c",
        examples=[5],
    )
    magnitude_V: Exact = Field(  # noqa: N815 - as the literature writes it
        default="2", description="the variance of the noise of totals, in units", examples=["2"]
    )
    magnitude_ptable: str | None = Field(
        default=None,
        description="a file with the perturbation table of totals, of ptable or tau-ARGUS; without one it is designed from "
        "D and magnitude_V, in steps of a quarter",
        examples=["ptable-numbers.csv"],
        json_schema_extra={"path": True},
    )


# The settings of special tabulations.


class SpecialTabulationsConfig(RecordTablesConfig):
    """Special tabulations: small counts and small areas are left out, and counts are rounded.

    These rules have no guarantee of their own: on a census no protection loss budget is finite. Applied to the records of a
    swap (given), the swap's guarantee holds unchanged.
    """

    rounding: Literal["none", "fives", "tens", "graduated"] = Field(
        default="fives",
        description="a rule of the Census Bureau: fives (1 to 7 become 4, others the nearest 5) and tens (the nearest 10) "
        "of the 2004 rules for special tabulations, or graduated (2019: below 15 not shown, then coarser with the count)",
        examples=["fives"],
    )
    base: int = Field(
        default=0,
        ge=0,
        description="round to the nearest multiple of this number instead, halves up; 0: by the rule of rounding",
        examples=[3],
    )
    least_count: int = Field(default=0, ge=0, description="counts below this are not shown", examples=[3])
    least_area: int = Field(
        default=0,
        ge=0,
        description="areas with fewer records than this are not shown: those of the finest level in a table",
        examples=[100],
    )


# The settings of one table with exact margins.


class ExactMarginsConfig(MechanismConfig):
    """One noisy table whose margins are exact: noise only where the margins leave room."""

    rows: str = Field(description="the variable of the rows", examples=["county"])
    columns: str = Field(description="the variable of the columns", examples=["tenure"])
    rho_squared: Annotated[Exact, Varied("rho_squared")] = Field(
        description="the total ρ² (the usual zCDP ρ), an exact text above 0, never a float", examples=["1/2"]
    )
    record: str = Field(
        default="household", description="the record type that is counted", examples=["household"]
    )
    both: bool = Field(
        default=True,
        description="whether the column totals are exact too, and not the row totals alone",
        json_schema_extra={"flag": "--rows-only", "flag_help": "keep the row totals alone"},
    )
