"""Write plans that have a name: several products on one census, for ``plan new NAME`` and for the command NAME.

They name mechanisms, tables and the numbers that two products publish: the one place outside the mechanisms that does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from stirred.assess.contradictions import Quantity, Side
from stirred.census import Schema
from stirred.errors import PlanError, did_you_mean
from stirred.mechanisms.registry import find_mechanism
from stirred.text_formats import write_toml

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
    """A plan with a name, one sentence about it, its text, and the numbers that its products publish twice."""

    name: str
    summary: str
    text: Callable[[Choices], str]
    quantities: tuple[Quantity, ...] = ()


def find_named_plan(name: str) -> NamedPlan:
    """Return the plan of a name.

    >>> find_named_plan("das2020").name
    'das2020'
    """
    if name not in NAMED:
        raise PlanError(
            f"there is no plan called {name}",
            why="it is neither a file name, which ends in .toml, nor the name of a plan",
            fix=did_you_mean(name, NAMED),
        )
    return NAMED[name]


def list_quantities() -> tuple[Quantity, ...]:
    """Return every quantity that two tables of a named plan publish."""
    return tuple(quantity for plan in NAMED.values() for quantity in plan.quantities)


# The products of the 2020 census.


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

# The numbers that two products publish, or two tables of one product.

ALL_ITERATIONS = "*"  # the iteration code of all persons or households
NO_CONDITION: Mapping[str, tuple[str, ...]] = MappingProxyType({})


def _records(table: str, by: tuple[str, ...], where: Mapping[str, tuple[str, ...]] = NO_CONDITION) -> Side:
    """Return the sums of a table that counts released records."""
    return Side(table=table, by=by, where=where, complete=True)


def _area(kind: str, **more: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {"region_type": (kind,), **more}


def _everyone(kind: str, **more: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return _area(kind, iteration=(ALL_ITERATIONS,), **more)


def _tenure(name: str, levels: tuple[str, ...], cell: str) -> Quantity:
    return Quantity(
        name=name,
        first=_records("dhc-units-by-state", ("state",), {"tenvac": levels}),
        second=Side(table="ph8_denom", by=("region",), where=_everyone("STATE", ph8_denom_cell=(cell,))),
    )


def _age(name: str, level: str, cell: str) -> Quantity:
    where = {"gq_type": ("0",), "votingage": (level,)}
    return Quantity(
        name=name,
        first=_records("pl-persons-by-state", ("state",), where),
        second=Side(table="ph1_num", by=("region",), where=_everyone("STATE", ph1_num_cell=(cell,))),
    )


def _nation(name: str, table: str, *by: str) -> Quantity:
    """Return the quantity of the nation and the sum of the states."""
    total = {f"{table}_cell": ("0",)} if table in ("t3", "t4") else {}
    return Quantity(
        name=name,
        first=Side(table=table, by=by, where={"region_type": ("USA",), **total}),
        second=Side(table=table, by=by, where={"region_type": ("STATE",), **total}),
    )


_GROUP_COLUMNS = ("region_type", "region", "iteration")
OCCUPIED_CODES = ("0", "1", "2")  # of tenvac
_QUANTITIES = (
    Quantity(
        name="persons_by_state",
        first=_records("pl-persons-by-state", ("state",)),
        second=_records("dhc-persons-by-state", ("state",)),
    ),
    Quantity(
        name="persons_by_county_and_race",
        first=_records("pl-persons-by-county", ("county", "hispanic", "race")),
        second=_records("dhc-persons-by-county", ("county", "hispanic", "race")),
    ),
    Quantity(
        name="occupied_units_by_county",
        first=_records("pl-units-by-county", ("county",), {"h1": ("1",)}),
        second=_records("dhc-units-by-county", ("county",), {"tenvac": OCCUPIED_CODES}),
    ),
    Quantity(
        name="households_by_state",
        first=_records("dhc-units-by-state", ("state",), {"tenvac": OCCUPIED_CODES}),
        second=Side(table="ph1_denom", by=("region",), where=_everyone("STATE")),
    ),
    _tenure("owners_by_state", ("0", "1"), "2"),
    _tenure("renters_by_state", ("2",), "3"),
    _age("minors_in_households", "0", "2"),
    _age("adults_in_households", "1", "3"),
    Quantity(
        name="persons_in_households",
        first=Side(table="ph1_num", by=_GROUP_COLUMNS),
        second=Side(table="ph7", by=_GROUP_COLUMNS),
    ),
    Quantity(
        name="persons_by_couple",
        first=Side(table="ph2", by=("region_type", "region")),
        second=Side(table="ph1_num", by=("region_type", "region"), where={"iteration": (ALL_ITERATIONS,)}),
    ),
    Quantity(
        name="minors_by_relationship",
        first=Side(table="ph3", by=("region_type", "region"), where={"iteration": (ALL_ITERATIONS,)}),
        second=Side(
            table="ph1_num",
            by=("region_type", "region"),
            where={"iteration": (ALL_ITERATIONS,), "ph1_num_cell": ("2",)},
        ),
    ),
    Quantity(
        name="households_by_tenure",
        first=Side(table="ph1_denom", by=_GROUP_COLUMNS),
        second=Side(table="ph8_denom", by=_GROUP_COLUMNS),
    ),
    Quantity(
        name="household_groups",
        first=Side(table="t3", by=_GROUP_COLUMNS, where={"t3_cell": ("0",)}),
        second=Side(table="t4", by=_GROUP_COLUMNS, where={"t4_cell": ("0",)}),
    ),
    Quantity(
        name="groups_and_their_parts",
        first=Side(table="t1", by=_GROUP_COLUMNS),
        second=Side(table="t2", by=_GROUP_COLUMNS, where={"sex": ("1", "2"), "age_start": ("*",)}),
    ),
    _nation("groups_of_the_nation", "t1", "iteration"),
    _nation("household_types_of_the_nation", "t3", "iteration"),
    _nation("tenures_of_the_nation", "t4", "iteration"),
    _nation("persons_of_the_nation", "ph1_num", "iteration", "ph1_num_cell"),
)
NAMED = {
    "das2020": NamedPlan(
        name="das2020",
        summary="the products of the 2020 census on one census, as one composed release",
        text=write_das2020,
        quantities=_QUANTITIES,
    )
}
