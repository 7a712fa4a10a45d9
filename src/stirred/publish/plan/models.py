"""plan.toml as it is written: pydantic models that refuse unknown keys and show no input in their errors.

The keys of a [[mechanism]] are the fields of the mechanism's own ``Config``, which the registry finds by its name.
"""

from typing import Literal

from pydantic import Field

from stirred.mechanisms.config import StrictModel


class TableConfig(StrictModel):
    """[[table]]: a table of counts or weighted totals to publish, made from the released microdata."""

    name: str = Field(description="the name of the table and of its file", examples=["tenure-by-county"])
    by: list[str] = Field(description="a list of variables", examples=[["county", "tenure"]])
    record_type: str = Field(
        default="household", description="the record type that is counted", examples=["household"]
    )
    weight: str = Field(
        default="",
        description="a held variable that weights the records: the table then has weighted totals with intervals; or the "
        "column of [weights]: totals without intervals",
        examples=["weight"],
    )
    of: str = Field(
        default="",
        description="the label of the [[mechanism]] whose release is counted; the first that has the variables unless named",
        examples=["dhc"],
    )


class RetabulationConfig(StrictModel):
    """[[retabulation]]: a product that is computed from a release of the plan alone; it costs no budget."""

    name: str = Field(description="what the product is called", examples=["Demographic Profile"])
    of: str = Field(description="the label of the [[mechanism]] that it is computed from", examples=["dhc"])


class PublishConfig(StrictModel):
    """[publish]: what is published, and in which formats."""

    microdata: bool = Field(default=True, description="whether records are published", examples=[True])
    formats: list[Literal["parquet", "csv"]] = Field(
        default=["parquet"], description="formats of the tables and records", examples=[["parquet", "csv"]]
    )


# What a new plan has in the place of a reason, as comments; a plan that states it as its reason is refused.
PLACEHOLDERS = {
    "invariant": "the invariant, in the words of stirred plan check",
    "text": "why this must be exact",
    "citation": "the law, if it is one",
}


class ReasonConfig(StrictModel):
    """[[reason]]: why an invariant is published exactly."""

    invariant: str = Field(description="the invariant in words", examples=["state population"])
    kind: Literal["law", "operation", "utility"] = Field(
        description="law, operation or utility", examples=["law"]
    )
    text: str = Field(description="why it must be exact", examples=["apportionment"])
    citation: str = Field(default="", description="the law, if it is one", examples=["Article I, Section 2"])


class BudgetConfig(StrictModel):
    """[budget]: who answers for the protection loss budget, and how much may be spent."""

    owner: str = Field(
        default="", description="who answers for the budget", examples=["the chief statistician"]
    )
    limit: str | None = Field(
        default=None,
        description="the largest ε (ρ² for zCDP) that the plan may spend, an exact text, never a float",
        examples=["16"],
    )


class RegressionConfig(StrictModel):
    """[[assess.regression]]: a least-squares fit that users would run."""

    outcome: str = Field(description="the variable that is explained", examples=["size"])
    on: list[str] = Field(description="a list of variables that explain it", examples=[["tenure", "county"]])


class QuestionsConfig(StrictModel):
    """[[assess.of]]: questions about records of another type."""

    record_type: str = Field(
        default="",
        description="the record type that these questions are about; the one that the mechanism protects unless named",
        examples=["person"],
    )
    relations: list[list[str]] = Field(
        default=[], description="pairs of variables", examples=[[["county", "tenure"]]]
    )
    segregation: list[list[str]] = Field(
        default=[], description="pairs of an area and a group", examples=[[["tract", "race"]]]
    )
    districts: list[str] = Field(
        default=[], description="levels whose areas should be of equal size", examples=[["county"]]
    )
    regression: list[RegressionConfig] = Field(default=[], description="fits that users would run")
    propensity: list[str] = Field(
        default=[], description="variables of the propensity score", examples=[["county", "tenure"]]
    )


class AssessConfig(QuestionsConfig):
    """[assess]: what the internal report compares with the truth."""

    utility: bool = Field(default=True, description="whether the internal report is made", examples=[True])
    improbable: str = Field(
        default="",
        description="the level whose areas are searched for impossible and improbable ones",
        examples=["block"],
    )
    of: list[QuestionsConfig] = Field(default=[], description="questions about other record types")


class WeightsConfig(StrictModel):
    """[weights]: new weights for the released records from public totals; post-processing, which costs no budget."""

    recalibrate_to: list[str] = Field(
        default=[],
        description="a list of CSV files of public totals, relative to the plan: a column for each variable, and total",
        examples=[["region.csv"]],
    )
    column: str = Field(
        default="calibrated_weight",
        min_length=1,
        description="what the new column is called",
        examples=["calibrated_weight"],
    )
    record_type: str = Field(
        default="household", description="the records that get weights", examples=["household"]
    )


class AboutConfig(StrictModel):
    """[about]: what a registry of deployments asks beyond the specification."""

    data_curators: list[str] = Field(default=["to be named"], description="who publishes the data")
    description: str = "to be written"
    intended_use: str = "to be written"
    data_product_region: str = "to be named"
    publication_date: str = "to be set"


class PlanConfig(StrictModel):
    """plan.toml."""

    title: str = Field(description="what the release is called", examples=["Households by county"])
    census: str = Field(description="the path of census.toml, relative to the plan", examples=["census.toml"])
    language: Literal["en", "de", "fr", "es"] = Field(
        default="en",
        description="the language of the card and of the reports; files for programs stay as they are",
        examples=["de"],
    )
    engine: Literal["local", "spark"] = Field(
        default="local", description="this machine, or a cluster", examples=["local"]
    )
    invalid: Literal["refuse", "drop"] = Field(
        default="refuse",
        description="what is done with records that break the schema: refuse the run, or drop their households",
        examples=["refuse"],
    )
    accept_small_effect: str = Field(
        default="",
        description="why the release is published though it is expected to be nearly the truth; it stands on the first line "
        "of the card",
        examples=["a rehearsal on invented records"],
    )
    mechanism: list[dict[str, object]] = Field(
        min_length=1, description="one or more mechanisms, each with its name and its settings"
    )
    table: list[TableConfig] = Field(default=[], description="tables to publish")
    retabulation: list[RetabulationConfig] = Field(
        default=[], description="products that are computed from what is released"
    )
    weights: WeightsConfig = WeightsConfig()
    publish: PublishConfig = PublishConfig()
    reason: list[ReasonConfig] = Field(default=[], description="why numbers are exact")
    budget: BudgetConfig = BudgetConfig()
    assess: AssessConfig = AssessConfig()
    about: AboutConfig = AboutConfig()
    alternatives: list[str] = Field(
        default=[], description="what else was considered", examples=[["a higher rate"]]
    )
