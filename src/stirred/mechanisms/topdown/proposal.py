"""A workload that the schema of a census suggests: one axis for each variable with few listed levels."""

from collections.abc import Iterator
from math import prod

from stirred.census.codebook.schema import RecordSchema, Schema, VariableSchema
from stirred.errors import PlanError
from stirred.mechanisms.config import write_toml
from stirred.mechanisms.proposal import Proposal, choose_variables, find_root, list_areas

PROPOSED_FILE = "workload.toml"
MAX_CELLS, MAX_AXES = 2_000, 4


def propose(schema: Schema) -> Proposal:
    """Measure the total, each axis and all of them crossed at every level of the geography; keep the coarsest totals.

    These are exact, so they are not measured as well: that would spend budget on what is known.
    """
    home = find_root(schema)
    levels = list_areas(schema, home)
    linked = [record for record in schema.records if record.linked_to == home.name]
    record = next((one for one in (*linked, home) if _choose_axes(schema, one)), None)
    if record is None:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why="it counts records by listed levels, and census.toml lists none",
            fix='list the levels of a variable: tenure = { levels = ["own", "rent"] }',
        )
    axes = _choose_axes(schema, record)
    whole = [variable.name for variable in axes if _find_offset(variable) is not None]
    coded = [variable.name for variable in axes if variable.name not in whole]
    return Proposal(
        settings={"workload": PROPOSED_FILE},
        reasons={
            "workload": f"{record.name} records by {', '.join(v.name for v in axes)}, the variables with few listed levels",
            "tables": f"each by {levels[-1]}, the finest area",
        },
        tables=tuple((record.name, (levels[-1], name)) for name in whole[:2]),
        undecided=tuple(_list_undecided(record, levels, coded)),
        files={PROPOSED_FILE: _write_workload(record, levels, axes)},
    )


def _choose_axes(schema: Schema, record: RecordSchema) -> list[VariableSchema]:
    found: list[VariableSchema] = []
    for variable in choose_variables(schema, record):
        sizes = [one.level_count or 0 for one in (*found, variable)]
        fits = variable.levels is not None and variable.missing.policy != "keep" and prod(sizes) <= MAX_CELLS
        if fits and len(found) < MAX_AXES:
            found.append(variable)
    return found


def _find_offset(variable: VariableSchema) -> int | None:
    """Return the first code of a variable whose codes are whole numbers without a gap."""
    codes = [code for code in variable.all_levels or () if isinstance(code, int)]
    return (
        codes[0] if codes and codes == list(range(codes[0], codes[0] + (variable.level_count or 0))) else None
    )


def _list_undecided(record: RecordSchema, levels: tuple[str, ...], coded: list[str]) -> Iterator[str]:
    yield f"ρ² = 1 and its equal shares are a start: tune them, and edit {PROPOSED_FILE}"
    yield f"the totals of {levels[0]} are exact: give a [[reason]], or take the rule out of {PROPOSED_FILE}"
    if coded:
        yield f"published as numbers 0, 1, …, which {PROPOSED_FILE} labels: " + ", ".join(
            f"{n}_level" for n in coded
        )
    if record.weight:
        yield f"{record.weight} is not used: the records of this mechanism have no weights"


def _write_workload(record: RecordSchema, levels: tuple[str, ...], axes: list[VariableSchema]) -> str:
    names = [v.name if _find_offset(v) is not None else f"{v.name}_level" for v in axes]
    queries = {"total": [], **{f"by-{name}": [name] for name in names}}
    if len(names) > 1:
        queries["all"] = names
    lines = [
        'name = "proposed"',
        'title = "Proposed from the schema of the census; no record was read"',
        f"record = {write_toml(record.name)}",
        'rho_squared = "1"',
        f"levels = {write_toml(list(levels))}",
    ]
    for name, variable in zip(names, axes, strict=True):
        found, offset = variable.all_levels or (), _find_offset(variable)
        values = write_toml([[code] for code in found])
        source = f"offset = {offset}" if offset is not None else f"values = {values}"
        lines += [
            "",
            "[[axis]]",
            f"name = {write_toml(name)}",
            f"labels = {write_toml([str(code) for code in found])}",
        ]
        lines.append(f"source = {{ column = {write_toml(variable.name)}, {source} }}")
    for name, of in queries.items():
        lines += ["", "[[query]]", f"name = {write_toml(name)}", f"of = {write_toml(of)}"]
    lines += ["", "[level_shares]", *(f'{write_toml(level)} = "1/{len(levels)}"' for level in levels)]
    for level in levels:
        lines += ["", f"[query_shares.{write_toml(level)}]"]
        measured = [name for name in queries if name != "total" or level != levels[0]]
        lines += [f'{write_toml(name)} = "1/{len(measured)}"' for name in measured]
    lines += [
        "",
        "[[rule]]",
        f"name = {write_toml(f'{levels[0]} totals')}",
        'kind = "exact"',
        'query = "total"',
    ]
    return "\n".join([*lines, f"level = {write_toml(levels[0])}", ""])
