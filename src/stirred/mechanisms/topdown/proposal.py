"""A workload that the schema of a census suggests: one axis for each variable with few listed levels."""

from collections.abc import Iterator
from math import prod

from stirred.census.codebook.schema import RecordSchema, Schema, VariableSchema
from stirred.errors import PlanError
from stirred.mechanisms.config import toml
from stirred.mechanisms.proposal import Proposal, areas, root, tabulated

FILE = "workload.toml"
MOST_CELLS, MOST_AXES = 2_000, 4


def propose(schema: Schema) -> Proposal:
    """Measure the total, each axis and all of them crossed at every level of the geography; keep the coarsest totals.

    These are exact, so they are not measured as well: that would spend budget on what is known.
    """
    home = root(schema)
    levels = areas(schema, home)
    linked = [record for record in schema.records if record.linked_to == home.name]
    record = next((one for one in (*linked, home) if _axes(schema, one)), None)
    if record is None:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why="it counts records by listed levels, and census.toml lists none",
            fix='list the levels of a variable: tenure = { levels = ["own", "rent"] }',
        )
    axes = _axes(schema, record)
    whole = [variable.name for variable in axes if _offset(variable) is not None]
    coded = [variable.name for variable in axes if variable.name not in whole]
    return Proposal(
        settings={"workload": FILE},
        reasons={
            "workload": f"{record.name} records by {', '.join(v.name for v in axes)}, the variables with few listed levels",
            "tables": f"each by {levels[-1]}, the finest area",
        },
        tables=tuple((record.name, (levels[-1], name)) for name in whole[:2]),
        undecided=tuple(_undecided(record, levels, coded)),
        files={FILE: _workload(record, levels, axes)},
    )


def _axes(schema: Schema, record: RecordSchema) -> list[VariableSchema]:
    found: list[VariableSchema] = []
    for variable in tabulated(schema, record):
        sizes = [one.level_count or 0 for one in (*found, variable)]
        fits = variable.levels is not None and variable.missing.policy != "keep" and prod(sizes) <= MOST_CELLS
        if fits and len(found) < MOST_AXES:
            found.append(variable)
    return found


def _offset(variable: VariableSchema) -> int | None:
    """The first code of a variable whose codes are whole numbers without a gap."""
    codes = [code for code in variable.all_levels or () if isinstance(code, int)]
    return (
        codes[0] if codes and codes == list(range(codes[0], codes[0] + (variable.level_count or 0))) else None
    )


def _undecided(record: RecordSchema, levels: tuple[str, ...], coded: list[str]) -> Iterator[str]:
    yield f"ρ² = 1 and its equal shares are a start: tune them, and edit {FILE}"
    yield f"the totals of {levels[0]} are exact: give a [[reason]], or take the rule out of {FILE}"
    if coded:
        yield f"published as numbers 0, 1, …, which {FILE} labels: " + ", ".join(f"{n}_level" for n in coded)
    if record.weight:
        yield f"{record.weight} is not used: the records of this mechanism have no weights"


def _workload(record: RecordSchema, levels: tuple[str, ...], axes: list[VariableSchema]) -> str:
    names = [v.name if _offset(v) is not None else f"{v.name}_level" for v in axes]
    queries = {"total": [], **{f"by-{name}": [name] for name in names}}
    if len(names) > 1:
        queries["all"] = names
    lines = [
        'name = "proposed"',
        'title = "Proposed from the schema of the census; no record was read"',
        f"record = {toml(record.name)}",
        'rho_squared = "1"',
        f"levels = {toml(list(levels))}",
    ]
    for name, variable in zip(names, axes, strict=True):
        found, offset = variable.all_levels or (), _offset(variable)
        values = toml([[code] for code in found])
        source = f"offset = {offset}" if offset is not None else f"values = {values}"
        lines += ["", "[[axis]]", f"name = {toml(name)}", f"labels = {toml([str(code) for code in found])}"]
        lines.append(f"source = {{ column = {toml(variable.name)}, {source} }}")
    for name, of in queries.items():
        lines += ["", "[[query]]", f"name = {toml(name)}", f"of = {toml(of)}"]
    lines += ["", "[level_shares]", *(f'{toml(level)} = "1/{len(levels)}"' for level in levels)]
    for level in levels:
        lines += ["", f"[query_shares.{toml(level)}]"]
        measured = [name for name in queries if name != "total" or level != levels[0]]
        lines += [f'{toml(name)} = "1/{len(measured)}"' for name in measured]
    lines += ["", "[[rule]]", f"name = {toml(f'{levels[0]} totals')}", 'kind = "exact"', 'query = "total"']
    return "\n".join([*lines, f"level = {toml(levels[0])}", ""])
