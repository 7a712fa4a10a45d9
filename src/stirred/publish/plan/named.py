"""Plans that have a name: several products on one census, written out for ``plan new NAME`` and for the command NAME."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stirred.census import Census, Schema
from stirred.census.codebook import parse
from stirred.errors import PlanError, did_you_mean
from stirred.mechanisms.config import write_toml
from stirred.mechanisms.registry import find_mechanism

MAX_PERSONS = 99_999  # more persons than any household has: nobody is cut off
SWAP = {"match": ["state", "size"], "swap": ["county", "tract", "block_group", "block"], "rate": "1/20"}
Table = tuple[str, str, str, tuple[str, ...]]  # label, name, record type, variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a person may choose of a named plan."""

    title: str = ""
    census: str = "census.toml"  # as the plan names it
    schema: Schema | None = None  # without one, the variables of the synthetic censuses
    swapped: bool = False  # swap once and tabulate every product from the swapped file
    light: bool = False  # a small DHC, for a rehearsal
    codes: str = ""  # the folder of code lists, as the plan names it


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPlan:
    """A plan with a name, one sentence about it, and its text."""

    name: str
    summary: str
    text: Callable[[Choices], str]


def find_named_plan(name: str) -> NamedPlan:
    """Return the plan of a name.

    >>> find_named_plan("write_das2020").name
    'das2020'
    """
    if name not in NAMED:
        raise PlanError(
            f"there is no plan called {name}",
            why="it is neither a file name, which ends in .toml, nor the name of a plan",
            fix=did_you_mean(name, NAMED),
        )
    return NAMED[name]


def read_schema(census: Path) -> Schema:
    """Return the schema of a census.toml with the variables of its files; read no record."""
    from stirred.publish.plan.proposing import complete_schema

    file = census / "census.toml" if census.is_dir() else census
    return complete_schema(Census(schema=parse.load_schema(file), folder=file.parent))


def write_das2020(choices: Choices) -> str:
    """Write TopDown (PL, then DHC), SafeTab-P, SafeTab-H and PHSafe on one census, or on one swapped file."""
    free = {"rho_squared": "inf"} if choices.swapped else {}
    inf = {"epsilon": "inf"} if choices.swapped else {}
    codes: dict[str, object] = {"codes": choices.codes} if choices.codes else {}
    more: dict[str, object] = {"tau": dict.fromkeys(_CUT, MAX_PERSONS)} if choices.swapped else {}
    dhc = "dhc-light" if choices.light else "dhc"
    products: list[tuple[str, str, str, Mapping[str, object]]] = [
        ("topdown", "pl", "2020 Redistricting Data (P.L. 94-171)", {"workload": "pl94", "replicates": 0, **free}),
        ("topdown", "dhc", "Demographic and Housing Characteristics, in agreement with PL",
         {"workload": dhc, "given": "pl", "replicates": 0, **free}),
        ("safetab-p", "ddhc-a", "Detailed DHC-A: T1 and T2", {"preset": "ddhc-a-2020", **codes, **inf}),
        ("safetab-h", "ddhc-b", "Detailed DHC-B: T3 and T4, for the groups that T1 shows",
         {"preset": "ddhc-b-2020", "totals": "ddhc-a", **codes, **inf}),
        ("phsafe", "sdhc", "Supplemental DHC: PH1 to PH8", {"preset": "sdhc-2020", **more, **inf}),
    ]  # fmt: skip
    lines = [_HEAD_SWAPPED if choices.swapped else _HEAD]
    lines.append(f"title = {write_toml(_title(choices))}\ncensus = {write_toml(choices.census)}\n\n")
    if choices.swapped:
        lines.append(_mechanism("permutation-swapping", "swap", _SWAP_WORDS, _swap(choices.schema)))
    for mechanism, label, words, settings in products:
        lines.append(
            _mechanism(mechanism, label, words, {**({"from": "swap"} if choices.swapped else {}), **settings})
        )
    lines += [_table(table) for table in _tables(choices.schema)]
    for name, source in _RETABULATED[:2] if choices.swapped else _RETABULATED:
        of = "swap" if choices.swapped else source
        lines.append(f"[[retabulation]]\nname = {write_toml(name)}\nof = {write_toml(of)}\n\n")
    return "".join(lines) + _FOOT


def _title(choices: Choices) -> str:
    if choices.title:
        return choices.title
    return "The 2020 census, swapped" if choices.swapped else "The 2020 census"


def _swap(schema: Schema | None) -> Mapping[str, object]:
    """Return what the mechanism proposes for the schema."""
    if schema is None:
        return SWAP
    found = find_mechanism("permutation-swapping").propose(schema)
    return SWAP if found is None else found.settings


def _tables(schema: Schema | None) -> Sequence[Table]:
    areas = ("state", "county") if schema is None else schema.spine
    return [table for table in _TABLES if table[3][0] in areas]


def _mechanism(name: str, label: str, words: str, settings: Mapping[str, object]) -> str:
    lines = [f"# {words}\n[[mechanism]]\nname = {write_toml(name)}\nlabel = {write_toml(label)}\n"]
    lines += [f"{key} = {write_toml(value)}\n" for key, value in settings.items()]
    return "".join(lines) + "\n"


def _table(table: Table) -> str:
    label, name, record_type, by = table
    return (
        f"[[table]]\nname = {write_toml(name)}\nof = {write_toml(label)}\n"
        f"record_type = {write_toml(record_type)}\nby = {write_toml(list(by))}\n\n"
    )


_CUT = ("PH1_num", "PH2", "PH3", "PH4", "PH6", "PH7")
_TABLES: tuple[Table, ...] = (
    ("pl", "pl-persons-by-state", "person", ("state", "gq_type", "votingage", "hispanic", "race")),
    ("pl", "pl-persons-by-county", "person", ("county", "hispanic", "race")),
    ("pl", "pl-units-by-county", "household", ("county", "h1")),
    ("dhc", "dhc-persons-by-state", "person", ("state", "sex", "hispanic", "race")),
    ("dhc", "dhc-persons-by-county", "person", ("county", "hispanic", "race")),
    ("dhc", "dhc-units-by-state", "household", ("state", "tenvac")),
    ("dhc", "dhc-units-by-county", "household", ("county", "tenvac")),
)
_RETABULATED = (
    ("Demographic Profile", "dhc"),
    ("Congressional District file", "dhc"),
    ("Privacy-Protected Microdata File", "dhc"),
    ("Noisy Measurement Files", "dhc"),
)
_SWAP_WORDS = "The Permutation Swapping Algorithm, once: all products below are tables of the swapped file"
_HEAD = """# The 2020 census in one plan: five products, whose budgets add up to one promise per person.
# Settings that are not written here are those of the 2020 production: see docs/how-to/das2020.md.
"""
_HEAD_SWAPPED = """# The 2020 census, had it been swapped: the same products, tabulated from one swapped file.
# The promise is that of the swap alone; tables of a public file cost nothing. See docs/how-to/das2020.md.
"""
_FOOT = """[publish]
microdata = true
formats = ["parquet"]

[budget]
owner = ""

[assess]
utility = false
"""
NAMED = {
    "das2020": NamedPlan(
        name="das2020",
        summary="the products of the 2020 census on one census, as one composed release",
        text=write_das2020,
    )
}
