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
from stirred.mechanisms.config import toml
from stirred.mechanisms.identifiers import Identifying, identifying, lone_areas, refusal
from stirred.mechanisms.release import Guard
from stirred.mechanisms.swapping.guards.measured import SAMPLE, Found, on_records, on_tables
from stirred.mechanisms.swapping.guards.reversal import LEVEL
from stirred.mechanisms.swapping.roles import Roles

if TYPE_CHECKING:
    from stirred.census import Census

IDENTIFIERS = Phrase("guard.identifying")
REVERSAL = Phrase("guard.reversal")
SHOWN = 5  # sets of columns in the report


class Accepting(Protocol):
    """The settings that decide what is released on purpose."""

    @property
    def microdata(self) -> bool:
        """Whether records are released."""
        ...

    def released_columns(self, census: "Census") -> Mapping[str, Sequence[str]]:
        """Return the columns that leave, by record type."""
        ...

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The contingency tables that are released."""
        ...

    @property
    def untouched(self) -> str:
        """What becomes of records that never take part: publish, drop or refuse."""
        ...

    @property
    def hold(self) -> tuple[str, ...] | None:
        """The held variables that are named; None: all."""
        ...

    @property
    def release_identifiers(self) -> Mapping[str, str]:
        """Identifying columns that are released on purpose, with the reason of each."""
        ...

    @property
    def accept_reversal(self) -> tuple[str, ...]:
        """Columns that are released although they undo the swap."""
        ...

    def highest_rate(self) -> float:
        """The largest swap rate of any record."""
        ...


def require_named(law: Accepting, roles: Roles) -> None:
    """The columns that are accepted by name must be released: a misspelt name would accept nothing."""
    known = {*roles.released, *(name for _, names in roles.members for name in names)}
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


def identified(law: Accepting, census: "Census", roles: Roles, engine: Engine) -> Guard:
    """Refuse released columns that identify records, and levels of places that hold one record, unless they are named."""
    found: list[Identifying] = []
    for record_type, names in law.released_columns(census).items():
        moves = roles.moving if record_type == roles.record_type else ()
        places = [name for name in names if name in roles.spine or name in moves]
        own = [name for name in names if name not in places]
        found += identifying(census, record_type, own, engine=engine)
        found += lone_areas(census, record_type, places, engine=engine)
    refused = [one for one in found if one.column not in law.release_identifiers]
    if refused:
        columns = sorted({one.column for one in refused})
        raise refusal(
            refused,
            leave_out=f"leave it out: drop={columns}",
            accept="release it on purpose, with the reason: "
            f"release_identifiers = {toml(dict.fromkeys(columns, 'why'))}",
        )
    if not found:
        return Guard(name=IDENTIFIERS, finding=Phrase("guard.none_identifies"))
    # records that are left out were counted too, and no invariant covers them: then the counts are not told
    told = reduce(_both, [one.column if law.untouched == "drop" else one.sentence for one in found])
    return Guard(name=IDENTIFIERS, finding=Phrase("guard.on_purpose", columns=told), accepted=True)


def _both(first: str, second: str) -> str:
    return Phrase("lists.semicolon_pair", first=first, second=second)


def measured(
    law: Accepting,
    roles: Roles,
    schema: Schema,
    microdata: Mapping[str, "pa.Table | pads.Dataset"],
    tables: Mapping[str, pa.Table],
) -> Guard:
    """Refuse held columns that undo the swap, measured on the records that would be released; list the largest few."""
    rate = law.highest_rate()
    found = on_records(microdata, roles, schema, rate) if law.microdata else ()
    if not law.microdata:
        found = on_tables(tables, roles, rate)
    best = _best(found)
    above = [one for one in best if one.reversal.share >= LEVEL]
    alone = {one.columns[0] for one in above if len(one.columns) == 1} & {*law.accept_reversal}
    refused = [
        one for one in above if not {*one.columns} <= {*law.accept_reversal} and not alone & {*one.columns}
    ]
    if refused:
        columns = sorted({name for one in _smallest(refused) for name in one.columns})
        raise PrivacyError(
            f"{', '.join(columns)} would undo the swap",
            why=f"on the released file alone {_sentence(refused[0])}; this is refused from {LEVEL:.0%} of the way from "
            "chance to what a column that tells the place would reach",
            fix=f"change the settings: drop={columns}, or swap or match on them, or accept it: accept_reversal={columns}. "
            "Do not draw again with these settings: each draw is a release of its own",
        )
    rows = tuple(
        (
            _label(one),
            " × ".join(one.reversal.place),
            f"{one.reversal.guessed:.0%}",
            f"{one.reversal.chance:.0%}",
        )
        for one in best[:SHOWN]
        if one.reversal.place
    )
    partly = any(one.part for one in found)
    if above:
        told = reduce(_both, [_sentence(one) for one in _smallest(above)[:SHOWN]])
        finding = _measured_on(Phrase("guard.reversal_on_purpose", columns=told), partly=partly)
        return Guard(name=REVERSAL, finding=finding, accepted=True, rows=rows)
    none: str = Phrase("guard.none_reverses", number=len(best))
    if rows:
        none = Phrase("guard.largest", finding=none, largest=_sentence(best[0]))
    return Guard(name=REVERSAL, finding=_measured_on(none, partly=partly), rows=rows)


def _measured_on(finding: str, *, partly: bool) -> str:
    return Phrase("guard.measured_on", finding=finding, number=SAMPLE) if partly else finding


def _best(found: Sequence[Found]) -> list[Found]:
    """Each set of columns once, where it predicts best; the best first, a column before the sets that contain it."""
    best: dict[tuple[str, tuple[str, ...]], Found] = {}
    for one in found:
        key = (one.record_type, one.columns)
        if key not in best or one.reversal.share > best[key].reversal.share:
            best[key] = one
    return sorted(best.values(), key=lambda one: (-round(one.reversal.share, 1), len(one.columns)))


def _smallest(found: Sequence[Found]) -> list[Found]:
    """The sets that contain no smaller one."""
    single = {one.columns[0] for one in found if len(one.columns) == 1}
    return [one for one in found if len(one.columns) == 1 or not single & {*one.columns}]


def _label(one: Found) -> str:
    return f"{' with '.join(one.columns)} ({one.record_type})"


def _sentence(one: Found) -> str:
    return Phrase("guard.by_records", finding=one.reversal.words(), records=unit(one.record_type, "records"))
