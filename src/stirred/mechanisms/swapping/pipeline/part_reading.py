"""Read a census for a swap by parts: flows of records and linked records, surveyed once."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from stirred.chance import Key
from stirred.chance.words import is_text
from stirred.engine import Engine, Flow
from stirred.errors import DataError, InputError
from stirred.mechanisms.swapping.pipeline.frame import Frame, needed
from stirred.mechanisms.swapping.pipeline.part_batches import (
    PART,
    SURVEYED,
    ByValues,
    Levels,
    Named,
    Only,
    OnlyOf,
    Survey,
)
from stirred.mechanisms.swapping.pipeline.part_checks import Looker, Scatter, ValueMargin, added
from stirred.mechanisms.swapping.pipeline.part_publish import Linked
from stirred.mechanisms.swapping.pipeline.part_strata import Job
from stirred.mechanisms.swapping.pipeline.publish import HELD
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint
from stirred.mechanisms.swapping.records.digest import Digested, merged_sums, sealed
from stirred.mechanisms.swapping.records.participation import released
from stirred.mechanisms.swapping.records.size import Size
from stirred.mechanisms.swapping.roles import Roles
from stirred.mechanisms.swapping.values import is_text

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.mechanisms.swapping.mechanism import PermutationSwapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """The results of one pass over the source."""

    digest: bytes
    homes: list[Fingerprint]  # of the margins, and at the end of identifiers with all that is held
    people: list[Fingerprint]  # of each linked type, with the identifiers they belong to


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Flows of one release, and what its kernels need."""

    job: Job
    frame: Frame  # without records: the roles and words of the mechanism
    homes: Flow
    people: tuple[Flow, ...]
    linked: tuple[Linked, ...]
    looker: Looker
    scatter: Scatter  # divides records into parts

    @property
    def identifier(self) -> str:
        """The column that names records."""
        return self.job.roles.identifier

    @property
    def travelling(self) -> pa.Schema:
        """Records between two exchanges."""
        return self.homes.schema.append(pa.field(PART, pa.int32()))

    def surveyed(self, reader: Key) -> Surveyed:
        """Read all records once."""
        survey = Survey(reader, self.identifier, self.job.read, self.looker, HELD)
        homes = self.homes.map(survey, SURVEYED).gathered()
        _require_filled(
            homes,
            f"{self.identifier} is empty in some records",
            why="an identifier names one record",
            fix="fill the identifier in these records",
        )
        total = _digested(reader, self.job.roles.record_type, self.job.read, homes, self.homes.schema)
        prints = added(homes["prints"].to_pylist(), len(self.looker.margins) + 1)
        along, people = [], []
        for flow, group in zip(self.people, self.linked, strict=True):
            survey = Survey(reader, group.link, group.variables, self.looker, None)
            found = flow.map(survey, SURVEYED).gathered()
            empty = pc.sum(found["empty"]).as_py() or 0
            _require_filled(
                found,
                f"{empty:,} records belong to no household",
                why="their link is empty",
                fix="fill the link column, or remove these records",
            )
            names = (group.link, *group.variables)
            along.append(_digested(reader, group.record_type, names, found, flow.schema))
            people += added(found["prints"].to_pylist(), 1)
        return Surveyed(digest=sealed(reader, total, along), homes=prints, people=people)

    def knowing_levels(self) -> "Sources":
        """The same, with the levels that the mechanism must know of the whole census."""
        levels = []
        for name in self.job.mechanism.whole:
            schema = pa.schema([self.homes.schema.field(name)])
            found = self.homes.map(Levels((name,)), schema).gathered().column(0).unique()
            levels.append((name, found.take(pc.sort_indices(found))))
        return replace(self, job=replace(self.job, levels=tuple(levels)))


def _require_filled(found: pa.Table, what: str, *, why: str, fix: str) -> None:
    if pc.sum(found["empty"]).as_py():
        raise DataError(what, why=why, fix=fix)


def _digested(
    reader: Key, record_type: str, names: Sequence[str], found: pa.Table, schema: pa.Schema
) -> Digested:
    """The sums of all batches as one digest; its width is that of a row in words, identifier and empty bits included."""
    values = [name for name in names if name != schema.names[0]]
    width = 1 + sum(2 if is_text(schema.field(name).type) else 1 for name in values)
    width += len(range(0, max(len(values), 1), 64))
    sums = zip(found["sum"].to_pylist(), found["rows"].to_pylist(), strict=True)
    return Digested(record_type, tuple(names), merged_sums(reader, sums, width=width))


def opened(
    mechanism: "PermutationSwapping",
    census: "Census",
    engine: Engine,
    size: Size,
    held: ExitStack,
    *,
    along: bool = True,
) -> Sources:
    """Open the source; nothing is read yet. Not ``along``: without linked records."""
    roles = mechanism.roles(census)
    if not roles.identifier:
        raise InputError(
            f"{roles.record_type} records have no identifier",
            why="if a census does not fit in memory, only the identifier distinguishes records",
            fix=f'name a column of unique numbers or texts in census.toml: [record.{roles.record_type}] id = "…"',
        )
    record = census.schema.record(roles.record_type)
    only = released(record, mechanism.untouched)
    names = tuple(name for name in needed(roles) if name != roles.identifier)
    raw = engine.records(census, roles.record_type, [roles.identifier, *names])
    identity = raw.schema.field(roles.identifier).type
    job = Job(mechanism=mechanism, roles=roles, kinds=record.kinds if only is None else None, read=names)
    frame = job.frame(_named_schema(raw.schema, roles.identifier, names).empty_table())
    homes = raw.map(
        Named(roles.identifier, frame.read, identity, only),
        _named_schema(raw.schema, roles.identifier, frame.read),
    )
    frame = replace(frame, only=only)
    linked = tuple(_linked(census, roles, *member) for member in (roles.members if along else ()))
    scatter = Scatter.known(len(names) + 1)
    people = []
    for group in linked:
        own = engine.records(census, group.record_type, [group.link, *group.variables])
        schema = _named_schema(own.schema, group.link, group.variables)
        flow = own.map(Named(group.link, group.variables, identity), schema)
        people.append(_only_of(homes, flow, roles, group, engine, size, held, scatter) if only else flow)
    widest = max(len(names), *(len(group.variables) for group in linked), 1)
    looker = Looker(
        tuple(
            ValueMargin(name, columns, None if stay is None else (stay.column, stay.levels))
            for name, columns, stay in frame.kept()
        ),
        Scatter.fresh(widest + 1),
    )
    return Sources(
        job=replace(job, read=frame.read),
        frame=frame,
        homes=homes,
        people=tuple(people),
        linked=linked,
        looker=looker,
        scatter=scatter,
    )


def _named_schema(schema: pa.Schema, identifier: str, names: Sequence[str]) -> pa.Schema:
    return pa.schema([pa.field(identifier, pa.uint64()), *(schema.field(name) for name in names)])


def _linked(census: "Census", roles: Roles, record_type: str, variables: tuple[str, ...]) -> Linked:
    record, there = census.schema.record(record_type), census.columns(record_type)
    return Linked(
        record_type=record_type,
        link=record.household,
        identifier=record.id,
        variables=variables,
        refilled=tuple(name for name in roles.moving + roles.match if name in there),
    )


def _only_of(
    homes: Flow,
    people: Flow,
    roles: Roles,
    group: Linked,
    engine: Engine,
    size: Size,
    held: ExitStack,
    scatter: Scatter,
) -> Flow:
    """The linked records of households that are left: one more exchange, by identifier."""
    parts = size.parts(engine, size.homes + size.people)
    where = pa.field(PART, pa.int32())
    ids = pa.schema([homes.schema.field(roles.identifier)])
    sides = (
        homes.map(Only((roles.identifier,)), ids).map(
            ByValues((roles.identifier,), parts, scatter), ids.append(where)
        ),
        people.map(ByValues((group.link,), parts, scatter), people.schema.append(where)),
    )
    met = engine.exchange(*sides, by=PART, parts=parts)
    found = met.map(OnlyOf(roles.identifier, group.link), people.schema).kept()
    held.callback(found.drop)
    met.drop()
    return found.flow()
