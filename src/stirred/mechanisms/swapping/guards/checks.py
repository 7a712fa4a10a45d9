"""What each guard of a swap finds, and when it refuses: a finding is accepted only where the settings name the column."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from stirred.arrow import pads
from stirred.census import Schema
from stirred.engine import Engine
from stirred.errors import InputError, PrivacyError, did_you_mean
from stirred.languages import Phrase, unit
from stirred.mechanisms.config import write_toml
from stirred.mechanisms.identifiers import IdentifyingColumn, find_identifying, find_lone_areas, refusal
from stirred.mechanisms.release import Guard
from stirred.mechanisms.swapping.guards.measured import (
    RECORDS_SAMPLED,
    ReversalFinding,
    measure_records,
    measure_tables,
)
from stirred.mechanisms.swapping.guards.reversal import REFUSED_SHARE
from stirred.mechanisms.swapping.roles import Roles

if TYPE_CHECKING:
    from stirred.census import Census

IDENTIFIER_GUARD = Phrase("guard.identifying")
REVERSAL_GUARD = Phrase("guard.reversal")
MAX_SETS_SHOWN = 5  # sets of columns in the report


class GuardSettings(Protocol):
    """Settings that decide what is released on purpose."""

    @property
    def microdata(self) -> bool:
        """Return whether records are released."""
        ...

    def released_columns(self, census: "Census") -> Mapping[str, Sequence[str]]:
        """Return the columns that leave, by record type."""
        ...

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """Return the contingency tables that are released."""
        ...

    @property
    def untouched(self) -> str:
        """Return what happens to records that never take part: publish, drop or refuse."""
        ...

    @property
    def hold(self) -> tuple[str, ...] | None:
        """Return the held variables that are named, or None for all."""
        ...

    @property
    def release_identifiers(self) -> Mapping[str, str]:
        """Return the identifying columns that are released on purpose, each with its reason."""
        ...

    @property
    def accept_reversal(self) -> tuple[str, ...]:
        """Return the columns that are released although they undo the swap."""
        ...

    def highest_rate(self) -> float:
        """Return the largest swap rate of any record."""
        ...


def require_named(law: GuardSettings, roles: Roles) -> None:
    """Raise an error if a column that is accepted by name is not released, as after a misspelling."""
    known = {*roles.released_variables, *(name for _, names in roles.members for name in names)}
    for setting, names in (
        ("release_identifiers", law.release_identifiers),
        ("accept_reversal", law.accept_reversal),
    ):
        for name in names:
            if name not in known:
                raise InputError(
                    f"{setting} names {name}",
                    why="the release has no such column",
                    fix=did_you_mean(name, known),
                )


def guard_identifiers(law: GuardSettings, census: "Census", roles: Roles, engine: Engine) -> Guard:
    """Refuse released columns that identify records, and levels of places that hold one record, unless they are named."""
    found: list[IdentifyingColumn] = []
    for record_type, names in law.released_columns(census).items():
        moves = roles.moving_variables if record_type == roles.record_type else ()
        places = [name for name in names if name in roles.spine or name in moves]
        own = [name for name in names if name not in places]
        found += find_identifying(census, record_type, own, engine=engine)
        found += find_lone_areas(census, record_type, places, engine=engine)
    refused = [one for one in found if one.column not in law.release_identifiers]
    if refused:
        columns = sorted({one.column for one in refused})
        raise refusal(
            refused,
            leave_out=f"leave it out: drop={columns}",
            accept="release it on purpose, with the reason: "
            f"release_identifiers = {write_toml(dict.fromkeys(columns, 'why'))}",
        )
    if not found:
        return Guard(name=IDENTIFIER_GUARD, finding=Phrase("guard.none_identifies"))
    # records that are left out were counted too, and no invariant covers them: then the counts are not told
    told = reduce(_join_findings, [one.column if law.untouched == "drop" else one.sentence for one in found])
    return Guard(name=IDENTIFIER_GUARD, finding=Phrase("guard.on_purpose", columns=told), accepted=True)


def _join_findings(first: str, second: str) -> str:
    return Phrase("lists.semicolon_pair", first=first, second=second)


def guard_reversal(
    law: GuardSettings,
    roles: Roles,
    schema: Schema,
    microdata: Mapping[str, "pa.Table | pads.Dataset"],
    tables: Mapping[str, pa.Table],
) -> Guard:
    """Refuse held columns that undo the swap, measured on the records that would be released; list the largest few."""
    rate = law.highest_rate()
    found = measure_records(microdata, roles, schema, rate) if law.microdata else ()
    if not law.microdata:
        found = measure_tables(tables, roles, rate)
    best = _keep_best(found)
    above = [one for one in best if one.reversal.share >= REFUSED_SHARE]
    alone = {one.columns[0] for one in above if len(one.columns) == 1} & {*law.accept_reversal}
    refused = [
        one for one in above if not {*one.columns} <= {*law.accept_reversal} and not alone & {*one.columns}
    ]
    if refused:
        columns = sorted({name for one in _keep_smallest(refused) for name in one.columns})
        raise PrivacyError(
            f"{', '.join(columns)} would undo the swap",
            why=f"on the released file alone {_write_sentence(refused[0])}; this is refused from {REFUSED_SHARE:.0%} of the way from "
            "chance to what a column that tells the place would reach",
            fix=f"change the settings: drop={columns}, or swap or match on them, or accept it: accept_reversal={columns}. "
            "Do not draw again with these settings: each draw is a release of its own",
        )
    rows = tuple(
        (
            _label_set(one),
            " × ".join(one.reversal.place),
            f"{one.reversal.guessed:.0%}",
            f"{one.reversal.chance:.0%}",
        )
        for one in best[:MAX_SETS_SHOWN]
        if one.reversal.place
    )
    partly = any(one.part for one in found)
    if above:
        told = reduce(
            _join_findings, [_write_sentence(one) for one in _keep_smallest(above)[:MAX_SETS_SHOWN]]
        )
        finding = _add_sample_note(Phrase("guard.reversal_on_purpose", columns=told), partly=partly)
        return Guard(name=REVERSAL_GUARD, finding=finding, accepted=True, rows=rows)
    none: str = Phrase("guard.none_reverses", number=len(best))
    if rows:
        none = Phrase("guard.largest", finding=none, largest=_write_sentence(best[0]))
    return Guard(name=REVERSAL_GUARD, finding=_add_sample_note(none, partly=partly), rows=rows)


def _add_sample_note(finding: str, *, partly: bool) -> str:
    return Phrase("guard.measured_on", finding=finding, number=RECORDS_SAMPLED) if partly else finding


def _keep_best(found: Sequence[ReversalFinding]) -> list[ReversalFinding]:
    """Keep each set of columns once, where it predicts best; sort the best first, and smaller sets first."""
    best: dict[tuple[str, tuple[str, ...]], ReversalFinding] = {}
    for one in found:
        key = (one.record_type, one.columns)
        if key not in best or one.reversal.share > best[key].reversal.share:
            best[key] = one
    return sorted(best.values(), key=lambda one: (-round(one.reversal.share, 1), len(one.columns)))


def _keep_smallest(found: Sequence[ReversalFinding]) -> list[ReversalFinding]:
    """Keep the sets that contain no smaller one."""
    single = {one.columns[0] for one in found if len(one.columns) == 1}
    return [one for one in found if len(one.columns) == 1 or not single & {*one.columns}]


def _label_set(one: ReversalFinding) -> str:
    return f"{' with '.join(one.columns)} ({one.record_type})"


def _write_sentence(one: ReversalFinding) -> str:
    return Phrase("guard.by_records", finding=one.reversal.words(), records=unit(one.record_type, "records"))
