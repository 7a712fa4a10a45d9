"""The settings of the cell key method."""

from typing import ClassVar, Literal

from pydantic import Field

from stirred.mechanisms.config import Exact, MechanismConfig, Share


class CellKeyConfig(MechanismConfig):
    """The cell key method: tables whose cells have bounded noise, the same noise for the same records in every table.

    It has no finite protection loss budget: an empty cell always stays empty. The setting without_guarantee says why it is
    published all the same. Applied to the records of a swap (given), the swap's guarantee holds unchanged.
    """

    example_table: ClassVar[tuple[str, tuple[str, ...]] | None] = None

    tables: list[list[str]] = Field(
        description="the tables to publish, each a list of variables",
        examples=[[["county", "tenure"]]],
        json_schema_extra={"flag": "--table"},
    )
    record: str = Field(
        default="household", description="the record type that is counted", examples=["person"]
    )
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
        description="where a key belongs that equals the end of an interval: below (key < end, as cellKey computes) or "
        "up-to (key ≤ end, as the handbook writes)",
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
    without_guarantee: str = Field(
        default="",
        description="why the tables are published though no protection loss budget is finite; it stands in the report",
        examples=["the method of the last census"],
    )
    given: str | None = Field(
        default=None,
        description="a packet whose records are tabulated instead of the census, or the label of an earlier [[mechanism]]; "
        "its guarantee holds for these tables too",
        examples=["packet"],
        json_schema_extra={"path": True, "continues": True},
    )
