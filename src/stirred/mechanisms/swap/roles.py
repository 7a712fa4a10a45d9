"""Decide the role of each variable (match, swap, hold, left out) and refuse settings that contradict themselves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.census.singled import MIN_RECORDS_JUDGED
from stirred.errors import InputError, PrivacyError, did_you_mean

if TYPE_CHECKING:
    from stirred.census import Census


# Refuse settings of a swap that contradict themselves, before any census is seen.


def require_output(tables: Sequence[Sequence[str]], *, microdata: bool) -> None:
    """Raise an error if nothing would be released."""
    if not microdata and not tables:
        raise InputError(
            "nothing would be released",
            why="there are no tables, and microdata is off",
            fix='give tables=[["county", "tenure"]] or microdata=True',
        )


def require_reasons(columns: Mapping[str, str]) -> None:
    """Raise an error if a column is released on purpose without a reason."""
    for name, reason in columns.items():
        if not reason.strip():
            raise InputError(
                f"{name} is released as an identifier without a reason",
                why="a column that tells who a record is, is published only with a written reason",
                fix='release_identifiers={"income": "why it is published"}',
            )


def require_tables(tables: Sequence[Sequence[str]], released: Sequence[str]) -> None:
    """Raise an error if a table asks for a variable that is not released."""
    for name in (name for by in tables for name in by):
        if name not in released:
            raise InputError(
                f"a table asks for {name}",
                why="the release does not have this variable",
                fix=did_you_mean(name, released),
            )


def find_held_in_tables(tables: Sequence[Sequence[str]], others: set[str]) -> tuple[str, ...]:
    """Return the variables of the tables that are neither matched nor swapped, in their order."""
    return tuple(dict.fromkeys(name for by in tables for name in by if name not in others))


def require_inner_rate(rate: Fraction) -> None:
    """Raise an error if a rate makes some outputs impossible."""
    if rate in (0, 1):
        raise PrivacyError(
            f"a swap rate of {rate} protects nothing",
            why="with rate 0 no record moves, with rate 1 every one does: some outputs become impossible (ε = ∞)",
            fix="choose a rate strictly between 0 and 1",
        )


# Decide the role of each variable: match, swap, hold, or left out.


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The role of every column of a record type in one swap."""

    record_type: str
    match: tuple[str, ...]
    swap: tuple[str, ...]
    along: tuple[str, ...]  # levels of geography that the swap variables determine: they move too
    hold: tuple[str, ...]  # released as they are, beside the match variables
    identifier: str
    kind: str  # the column that separates occupied homes from vacant ones and group quarters, if the schema has one
    members: tuple[tuple[str, tuple[str, ...]], ...] = ()  # linked record types with the variables they keep
    spine: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()  # read for the draw, never released
    unseen_along: tuple[tuple[str, tuple[str, ...]], ...] = ()  # the same of linked record types
    file_columns: tuple[tuple[str, tuple[str, ...]], ...] = ()  # by record type, as its files have them

    @property
    def moving_variables(self) -> tuple[str, ...]:
        """Return all variables that move together."""
        return (*self.swap, *self.along)

    @property
    def held_variables(self) -> tuple[str, ...]:
        """Return all variables that stay with the record (the paper's V_hold)."""
        return (*self.match, *self.hold)

    @property
    def columns_read(self) -> tuple[str, ...]:
        """Return the columns that a swap reads."""
        own = [name for name in (self.identifier, self.kind) if name]
        return tuple(dict.fromkeys([*self.released_variables, *self.unseen, *own]))

    @property
    def released_variables(self) -> tuple[str, ...]:
        """Return the columns of the released records."""
        return (*self.match, *self.moving_variables, *self.hold)

    def sort_columns(self, record_type: str, names: Iterable[str]) -> list[str]:
        """Return columns in the order of the files of a record type; derived areas, which no file has, come first."""
        filed = dict(self.file_columns).get(record_type, ())
        return sorted(names, key=lambda name: filed.index(name) if name in filed else -1)


def withhold(roles: Roles, names: Sequence[str]) -> Roles:
    """Return the roles with held variables that are not released, of the records and of linked ones."""
    return replace(
        roles,
        along=tuple(name for name in roles.along if name not in names),
        hold=tuple(name for name in roles.hold if name not in names),
        members=tuple(
            (record_type, tuple(name for name in variables if name not in names))
            for record_type, variables in roles.members
        ),
    )


def _refuse_repeats(match: Sequence[str], swap: Sequence[str]) -> None:
    both = sorted(set(match) & set(swap))
    if both:
        raise InputError(
            f"{both[0]} is both a match and a swap variable",
            why="records are swapped within strata of equal match variables, so a match variable cannot move",
            fix=f"take {both[0]} out of one of the two lists",
        )
    if not swap:
        raise InputError(
            "nothing is to be swapped",
            why="no swap variable is named",
            fix="name at least one swap variable, such as county",
        )
    for names in (match, swap):
        twice = sorted({name for name in names if list(names).count(name) > 1})
        if twice:
            raise InputError(
                f"{twice[0]} is named twice",
                why="a variable has one role: match, swap or hold",
                fix="name each variable once",
            )


def derive_roles(
    census: "Census",
    *,
    record_type: str,
    match: Sequence[str],
    swap: Sequence[str],
    hold: Sequence[str] | None,
    drop: Sequence[str],
    carry: bool,
) -> Roles:
    """Derive the roles from the schema, and refuse a choice that would undo the swap.

    A level of geography that a swap variable determines moves along with it. A held variable that determines a
    swap variable (a tract beside a swapped county) would show where the record came from.
    """
    _refuse_repeats(match, swap)
    record = census.schema.record(record_type)
    own = [name for name in census.columns(record_type) if name not in (record.id, record.household)]
    known = set(own) | (set(census.columns(record.linked_to)) if record.linked_to else set())
    along_with = [other for other in census.schema.records if other.linked_to == record_type]
    carried = {name for other in along_with for name in census.columns(other.name)}  # may be dropped too
    carried |= {off.name for off in census.schema.geography.off_spine}  # declared, even if no record has it
    for name in (*match, *swap, *(hold or ()), *drop):
        if name not in known and not (name in drop and name in carried):
            raise InputError(
                f"{record_type} records have no variable {name}",
                why="a role of the swap names it",
                fix=did_you_mean(name, known),
            )
    spine = [level for level in census.schema.spine if level in known]
    deepest = max((spine.index(name) for name in swap if name in spine), default=-1)
    shallowest = min((spine.index(name) for name in swap if name in spine), default=len(spine))
    along = tuple(
        level
        for level in spine[: deepest + 1]
        if level not in match and level not in swap and level not in drop and (hold is None or level in hold)
    )
    named = own if hold is None else list(hold)
    rest = tuple(name for name in named if name not in {*match, *swap, *along, *drop})
    revealing = [name for name in (*rest, *match) if name in spine[shallowest + 1 :] and name not in swap]
    revealing += [
        off.name for off in census.schema.geography.off_spine if off.name in rest and off.of in spine
    ]
    if revealing and shallowest < len(spine):
        raise InputError(
            f"{revealing[0]} is held while {spine[shallowest]} is swapped",
            why=f"{revealing[0]} reveals the true place of the record",
            fix=f"swap it too, or leave it out: drop={sorted(set(revealing))}",
        )
    areas = {*spine, *(off.name for off in census.schema.geography.off_spine if off.of in spine)}
    linked: list[tuple[str, tuple[str, ...]]] = []
    for other in along_with if carry else ():
        variables = tuple(
            name
            for name in census.columns(other.name)
            if name not in {other.id, other.household, *swap, *areas, *drop}
        )
        linked.append((other.name, variables))
    return Roles(
        record_type=record_type,
        match=tuple(match),
        swap=tuple(swap),
        along=along,
        hold=rest,
        identifier=record.id,
        kind=record.kinds.column if record.kinds else "",
        members=tuple(linked),
        spine=tuple(spine),
        file_columns=tuple(
            (kind.name, census.list_file_columns(kind.name)) for kind in (record, *along_with)
        ),
    )


def require_levels(
    census: "Census", record_type: str, named: Mapping[str, Sequence[str]], *, count: bool = True
) -> None:
    """Refuse settings that name a level which does not exist: they would silently apply to no record.

    The levels are those of the schema; where it lists none and ``count`` is on, those that occur, unless the file is so
    small that a level may be missing by chance. Which levels of a released variable occur is an invariant or part
    of the release.
    """
    for name, levels in named.items():
        declared = {v.name: v.all_levels for v in census.schema.record(record_type).variables}.get(name)
        if declared is None and (not count or name not in census.columns(record_type)):
            continue
        if declared is None:
            counts = census.counts(record_type, [name])
            if sum(counts["count"].to_pylist()) < MIN_RECORDS_JUDGED:
                continue
            declared = tuple(map(str, counts[name].to_pylist()))
        known = [str(level) for level in declared]
        strange = [level for level in levels if level not in known]
        if strange:
            raise InputError(
                f"{name} has no level {strange[0]}",
                why="the settings of the swap name it, and no record can have it",
                fix=did_you_mean(strange[0], known),
            )
