"""Check that the parts of a schema fit together: names and links exist, geographies have no cycles."""

from collections.abc import Iterator

from stirred.census.codebook.schema import RecordSchema, Schema
from stirred.errors import SchemaError, did_you_mean
from stirred.file_names import FILE_NAME_RULE, is_file_name


def check_schema(schema: Schema) -> None:
    """Raise one error that lists everything in the schema that contradicts itself."""
    mistakes = [*_check_geography(schema), *_check_records(schema), *_check_rules(schema)]
    if mistakes:
        number = f"{len(mistakes)} mistake" + ("s" if len(mistakes) > 1 else "")
        raise SchemaError(
            f"the census schema has {number}", why="; ".join(mistakes), fix="correct the keys named here"
        )


def _check_geography(schema: Schema) -> Iterator[str]:
    names = schema.spine
    if len(set(names)) < len(names):
        yield "geography.spine: a level is named twice"
    beside = {off.name: off for off in schema.geography.off_spine}
    known = [*names, *beside]
    for off in beside.values():
        where = f"geography.off_spine.{off.name}"
        if off.name in names:
            yield f"{where}: is a level of the spine too"
        if off.of and off.of not in names:
            yield f"{where}.of: {off.of} is not a level of the spine, {did_you_mean(off.of, names or ('(no spine)',))}"
        if off.nests_in and off.nests_in not in known:
            yield f"{where}.nests_in: {off.nests_in} is unknown, {did_you_mean(off.nests_in, known)}"
        if bool(off.files) != bool(off.key):
            yield f"{where}: files and key go together"
        if off.files and not off.of:
            yield f"{where}.of: say which level the key belongs to"
        if off.kind == "grid" and off.cell_metres is None:
            yield f"{where}.cell_metres: a grid needs the length of its cells"
        seen, at = {off.name}, off.nests_in
        while at in beside:
            if at in seen:
                yield f"{where}.nests_in: the geographies nest in a cycle"
                break
            seen.add(at)
            at = beside[at].nests_in


def _check_records(schema: Schema) -> Iterator[str]:
    for record in schema.records:
        where = f"record.{record.name[:40]}"
        if not is_file_name(record.name, spaced=True):
            yield f"{where}: a record type is the name of a file too, which has {FILE_NAME_RULE}, or spaces between words"
        yield from _check_link(schema, record, where)
        yield from _check_shared(schema, record, where)
        sources = [variable.source for variable in record.variables]
        if len(set(sources)) < len(sources):
            yield f"{where}.variables: two variables read the same column"
        for variable in record.variables:
            here = f"{where}.variables.{variable.name}"
            if variable.kind in ("number", "text") and variable.levels is not None:
                yield f"{here}: {variable.kind} variables have no levels"
            if variable.kind == "category" and variable.levels is None:
                yield f"{here}: a category needs levels, a range or codes_from"
            if variable.kind == "integer" and any(
                isinstance(level, str) for level in (variable.levels or ())[:1]
            ):
                yield f"{here}: an integer variable needs integer levels"
            if not {*variable.not_applicable} <= {*(variable.all_levels or variable.not_applicable)}:
                yield f"{here}.not_applicable: lists a value that is not a level of the variable"
            if variable.missing.policy == "level" and variable.kind == "number":
                yield f"{here}.missing: a number has no levels; use the policy keep"
            if variable.levels is not None:
                text = isinstance(variable.levels[0], str)
                extra = [*variable.missing.codes, variable.missing.empty_as]
                if not text and variable.missing.policy == "keep":
                    extra = []  # NA and the like mark empty fields of numbers
                if any(isinstance(code, str) != text for code in extra if code is not None):
                    yield f"{here}.missing: codes are written as the levels are, all text or all integers"
        if record.kinds is not None:
            listed = record.kinds.all_levels
            if len(set(listed)) < len(listed):
                yield f"{where}.kind: a level stands for two kinds"
        reserved = {"count"} & {*record.names, *schema.spine}
        if reserved:
            yield f"{where}.variables: the name count is taken by tables of counts"


def _check_link(schema: Schema, record: RecordSchema, where: str) -> Iterator[str]:
    if not record.household:
        if record.linked_to:
            yield f"{where}.of: needs household, the column that holds the identifier"
        return
    if not record.linked_to:
        yield f"{where}.household: no record type with an id to link to"
    elif record.linked_to not in schema.record_types:
        yield f"{where}.of: no record type {record.linked_to}, {did_you_mean(record.linked_to, schema.record_types)}"
    elif record.linked_to == record.name:
        yield f"{where}.of: a record type cannot link to itself"
    elif not schema.record(record.linked_to).id:
        yield f"record.{record.linked_to}.id: needed, because {record.name} links to it"


def _check_shared(schema: Schema, record: RecordSchema, where: str) -> Iterator[str]:
    """Yield the contradictions of a record type that shares its file with households."""
    if record.household_from and record.household:
        yield f"{where}.household_from: these records link to another record type; keep one of the two keys"
    again = sorted({*record.leave_out} & {variable.source for variable in record.variables})
    if again:
        yield f"{where}.leave_out: {again[0]} is a variable too"
    home = next((home for home in schema.records if home.name == record.linked_to), None)
    if home is None or not home.household_from or home.source != record.source:
        return
    theirs = {variable.source for variable in home.variables}
    for variable in record.variables:
        if variable.source in theirs:
            yield f"{where}.variables.{variable.name}: is a variable of {home.name}, made from the same file"


def _check_rules(schema: Schema) -> Iterator[str]:
    for rule in schema.rules:
        where = f"rule {rule.name}"
        if rule.record_type not in schema.record_types:
            yield f"{where}: no record type {rule.record_type}, {did_you_mean(rule.record_type, schema.record_types)}"
            continue
        record = schema.record(rule.record_type)
        if not record.variables:
            continue
        own = {*record.names, record.size, record.weight, record.id, *schema.spine}
        own |= {off.name for off in schema.geography.off_spine}
        if record.linked_to in schema.record_types:
            own |= set(schema.record(record.linked_to).names)
        for name in rule.variables:
            if name not in own:
                yield f"{where}: {rule.record_type} has no variable {name}, {did_you_mean(name, own - {''})}"
