"""plan.toml as it is written: pydantic models that refuse unknown keys and show no input in their errors."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """Unknown keys are errors; errors do not repeat what was typed."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, strict=True)


class SwapConfig(Strict):
    """[[mechanism]] name = "permutation-swapping"."""

    name: Literal["permutation-swapping"]
    match: list[str]
    swap: list[str]
    rate: str
    resolution: str = "household"
    hold: list[str] | None = None
    drop: list[str] = []
    untouched: Literal["publish", "drop", "refuse"] = "publish"


class TopDownConfig(Strict):
    """[[mechanism]] name = "topdown"."""

    name: Literal["topdown"]
    workload: str
    mode: Literal["gls", "classic"] = "gls"
    rho_squared: str | None = None
    keep_nmf: bool = False
    aian: str | None = None  # the geography that splits states into AIAN areas and the remainder
    optimized_block_groups: list[str] | None = None  # the geographies whose areas new block groups respect
    replicates: int = Field(default=20, ge=0)  # runs on its own output, for the uncertainty of tables


MechanismConfig = Annotated[SwapConfig | TopDownConfig, Field(discriminator="name")]


class TableConfig(Strict):
    """[[table]]: a table of counts to publish, made from the released microdata."""

    name: str
    by: list[str]
    record_type: str = "household"


class PublishConfig(Strict):
    """[publish]: what leaves, and in which formats."""

    microdata: bool = True
    formats: list[Literal["parquet", "csv"]] = ["parquet"]


class ReasonConfig(Strict):
    """[[reason]]: why an invariant is published exactly."""

    invariant: str
    kind: Literal["law", "operation", "utility"]
    text: str
    citation: str = ""


class BudgetConfig(Strict):
    """[budget]: who answers for the protection loss budget, and how much may be spent."""

    owner: str = ""
    limit: str | None = None


class RegressionConfig(Strict):
    """[[assess.regression]]: a least-squares fit that users would run."""

    outcome: str
    on: list[str]


class AssessConfig(Strict):
    """[assess]: what the internal report compares with the truth."""

    utility: bool = True
    relations: list[list[str]] = []  # pairs of variables
    segregation: list[list[str]] = []  # pairs (area, group)
    districts: list[str] = []  # levels whose areas should be of equal size
    regression: list[RegressionConfig] = []
    propensity: list[str] = []  # variables of the propensity score
    improbable: str = ""  # the level whose areas are searched for impossible and improbable ones


class AboutConfig(Strict):
    """[about]: what a registry of deployments asks that no specification knows."""

    data_curators: list[str] = ["to be named"]
    description: str = "to be written"
    intended_use: str = "to be written"
    data_product_region: str = "to be named"
    publication_date: str = "to be set"


class PlanConfig(Strict):
    """The whole file."""

    title: str
    census: str
    engine: Literal["local", "spark"] = "local"
    mechanism: list[MechanismConfig] = Field(min_length=1)
    table: list[TableConfig] = []
    publish: PublishConfig = PublishConfig()
    reason: list[ReasonConfig] = []
    budget: BudgetConfig = BudgetConfig()
    assess: AssessConfig = AssessConfig()
    about: AboutConfig = AboutConfig()
    alternatives: list[str] = []
