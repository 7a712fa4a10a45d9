"""Declare what plan.toml may say: pydantic models, their JSON schema and reference, and commented templates."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

from pydantic import Field
from pydantic.fields import FieldInfo

from stirred.mechanisms.config import StrictModel, read_extra
from stirred.mechanisms.registry import OWN_REGISTRATIONS, find_mechanism, list_mechanisms
from stirred.text_formats import parse_toml, write_toml

if TYPE_CHECKING:
    from stirred.mechanisms.base import Mechanism
    from stirred.mechanisms.registry import Registration


# plan.toml as it is written: pydantic models that refuse unknown keys and show no input in their errors.
#
# The keys of a [[mechanism]] are the fields of the mechanism's own ``Config``, which the registry finds by its name.


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
        default=["parquet"],
        description='formats of the records; tables are Parquet and, up to a million rows or with "csv", CSV',
        examples=[["parquet", "csv"]],
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
    """[about]: who publishes, for the card, and what a registry of deployments asks; with it a draft entry is written."""

    data_curators: list[str] = Field(default=["to be named"], description="who publishes the data")
    contact: str = Field(default="", description="where readers ask; it stands on the card")
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
    accept_open_network: str = Field(
        default="",
        description="why a cluster without authentication or encryption of its network is used; it stands in the receipt",
        examples=["the cluster has a network of its own, without other users"],
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


# The JSON schema and the reference pages of plan.toml, made from its models.


def build_schema() -> dict[str, Any]:
    """Return the JSON schema of a plan, with the settings of every installed mechanism.

    >>> "mechanism" in build_schema()["properties"]
    True
    """
    whole: dict[str, Any] = PlanConfig.model_json_schema()
    known = []
    for name in list_mechanisms():
        own: dict[str, Any] = find_mechanism(name).Config.model_json_schema()
        label = {
            "type": "string",
            "description": "what a later [[mechanism]] calls this one (default: its name)",
        }
        source = {
            "type": "string",
            "description": "the label of an earlier [[mechanism]] whose released records take the place of the census",
        }
        fixed = {"name": {"const": name}, "label": label, "from": source}
        own["properties"] = {**fixed, **own.get("properties", {})}
        own["required"] = ["name", *own.get("required", [])]
        own["title"] = name
        known.append(own)
    whole["properties"]["mechanism"]["items"] = {"oneOf": known}
    return whole


def write_pages() -> str:
    """Return the sections of all mechanisms in docs/reference/plan-toml.md."""
    return "\n".join(write_page(find_mechanism(item.name)) for item in OWN_REGISTRATIONS)


def write_page(kind: "type[Mechanism]") -> str:
    """Return the section of one mechanism: its sentence and settings, without inherited ones."""
    above = (item for item in OWN_REGISTRATIONS if item.Config in kind.Config.__mro__[1:])
    base = next(above, None)  # the mechanism whose settings it has too
    inherited = base.Config.model_fields if base is not None else {}
    lines = [f'## `name = "{kind.name}"`', "", (kind.Config.__doc__ or "").strip().splitlines()[0], ""]
    rows = []
    for key, field in kind.Config.model_fields.items():
        if key in inherited and inherited[key].description == field.description:
            continue
        usual = "required" if field.is_required() else _usual(field.get_default(call_default_factory=True))
        rows.append(f"| `{key}` | {usual} | {field.description} |")
    if base is not None:
        lines += [f"All settings of `{base.name}`" + (", and:" if rows else "."), ""]
    if rows:
        lines += ["| key | default | meaning |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _usual(value: object) -> str:
    return "none" if value is None else f"`{write_toml(value)}`"


# Commented plans to start from, written from the settings of the mechanism.

HEAD = """# {summary}
title = {title}
census = {census}            # relative to this file; see: stirred data describe

[[mechanism]]
name = "{name}"
{settings}
[publish]
microdata = true
formats = ["parquet"]         # of the records; tables have a CSV file in any case
{table}
# Each invariant is published exactly and is not protected: say why.
# [[reason]]
# invariant = "{invariant}"
# kind = "operation"            # law, operation or utility
# text = "{text}"
# citation = "{citation}"

[budget]
owner = ""                    # who answers for it
# limit = "16"                # exact text; the plan is refused above it

[assess]
utility = true                # the internal report compares with the truth
relations = []                # pairs of variables, such as [["county", "tenure"]]
"""

TABLE = """
[[table]]
name = "{name}"
record_type = "{record_type}"
by = {by}
"""


def questions(kind: "type[Mechanism] | Registration") -> dict[str, tuple[str, str]]:
    """Return what a new plan asks for: the title, the census, and the required settings."""
    asked = {
        key: (_question(PlanConfig.model_fields[key]), str(_example(PlanConfig.model_fields[key])))
        for key in ("title", "census")
    }
    for key, field in _find_required(kind).items():
        usual = _example(field)
        words = (
            usual if isinstance(usual, str) else " ".join(usual) if _is_words(usual) else write_toml(usual)
        )
        asked[key] = (_question(field), words)
    return asked


def new_plan(kind: "type[Mechanism] | Registration", answers: Mapping[str, str]) -> str:
    """Return a plan for a mechanism: settings that were asked for, then all others as comments."""
    needed = _find_required(kind)
    lines = []
    for key, field in kind.Config.model_fields.items():
        value = _value(field, answers[key]) if key in needed else _example(field)
        start = f"{'' if key in needed else '# '}{key} = {write_toml(value)}"
        lines.append(f"{start.ljust(28)}  # {field.description}\n")
    table = ""
    if kind.Config.example_table is not None:
        record_type, by = kind.Config.example_table
        table = TABLE.format(name="-by-".join(reversed(by)), record_type=record_type, by=write_toml(list(by)))
    return HEAD.format(
        summary=(kind.Config.__doc__ or kind.name).strip().splitlines()[0],
        title=write_toml(answers["title"]),
        census=write_toml(answers["census"]),
        name=kind.name,
        settings="".join(lines),
        table=table,
        **PLACEHOLDERS,
    )


def _find_required(kind: "type[Mechanism] | Registration") -> dict[str, FieldInfo]:
    """Return the settings that are required or asked for, and those before the first; else the first setting alone."""
    fields = kind.Config.model_fields
    required = [
        index
        for index, field in enumerate(fields.values())
        if field.is_required() or read_extra(field).get("asked")
    ]
    own = [key for index, key in enumerate(fields) if index in required or (required and index < required[0])]
    return {key: fields[key] for key in own or list(fields)[:1]}


def _example(field: FieldInfo) -> object:
    return field.examples[0] if field.examples else field.get_default(call_default_factory=True)


def _value(field: FieldInfo, answer: str) -> object:
    """Convert an answer to the type of the setting; a list is typed as words."""
    example = _example(field)
    if isinstance(example, str):
        return answer
    return answer.replace(",", " ").split() if _is_words(example) else parse_toml(f"v = {answer}")["v"]


def _is_words(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _question(field: FieldInfo) -> str:
    text = field.description or ""
    return text[:1].upper() + text[1:] + "?"
