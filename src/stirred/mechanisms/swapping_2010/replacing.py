"""What a swap says and refuses where persons in group quarters are drawn anew."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from stirred.engine import Engine
from stirred.errors import InputError, did_you_mean
from stirred.languages import Phrase
from stirred.mechanisms.swapping.roles import Roles
from stirred.mechanisms.swapping_2010.quarters import GroupQuarters
from stirred.spec import Custom, Multiverse, Specification

if TYPE_CHECKING:
    from stirred.census import Census

MODEL_FAMILIES = ("multinomial", "poisson")


class QuartersSettings(Protocol):
    """Settings of a swap that draws persons in group quarters anew."""

    @property
    def synthetic(self) -> tuple[tuple[str, str], ...]:
        """Return the variables that are drawn anew, each with its model."""
        ...

    @property
    def synthetic_by(self) -> tuple[str, ...]:
        """Return the variables that the models depend on."""
        ...

    @property
    def untouched(self) -> str:
        """Return what happens to group quarters."""
        ...

    @property
    def resolution(self) -> str:
        """Return the record type that is swapped."""
        ...


def choose_quarters(law: QuartersSettings, census: "Census", roles: Roles) -> GroupQuarters | None:
    """Return what is drawn anew, or None; refuse settings that fit no group quarters or no persons."""
    if not law.synthetic:
        if law.synthetic_by:
            raise _setting_error("synthetic_by without synthetic", "nothing is drawn anew", _EXAMPLE_FIX)
        return None
    kinds = census.schema.record(law.resolution).kinds
    if kinds is None or not kinds.group_quarters or kinds.column not in roles.released_variables:
        why = "census.toml names no levels of group quarters, or their column is not published"
        raise _setting_error(
            "no group quarters are known", why, "group_quarters = […] in census.toml, and publish the column"
        )
    if law.untouched != "publish" or not roles.members:
        why = "persons in group quarters are not published"
        raise _setting_error(
            "nobody is there to be drawn anew", why, 'untouched = "publish" and carry = true'
        )
    wanted = [name for name, _ in law.synthetic]
    found = [(kind, names) for kind, names in roles.members if set(wanted) <= set(names)]
    if not found:
        known = {name for _, names in roles.members for name in names}
        strange = next((name for name in wanted if name not in known), wanted[0])
        raise _setting_error(
            f"persons have no published variable {strange}",
            "it cannot be drawn",
            did_you_mean(strange, known),
        )
    persons, names = found[0]
    for name, family in law.synthetic:
        if family not in MODEL_FAMILIES:
            raise _setting_error(
                f"{name} has the model {family!r}", "there are two", did_you_mean(family, MODEL_FAMILIES)
            )
    for name in law.synthetic_by:
        if name in wanted or name not in {*names, *roles.released_variables}:
            why = "models depend on variables that are published and not drawn anew themselves"
            raise _setting_error(
                f"no model depends on {name}",
                why,
                did_you_mean(name, {*names, *roles.released_variables} - {*wanted}),
            )
    return GroupQuarters(
        homes=law.resolution,
        persons=persons,
        kind=kinds.column,
        levels=tuple(map(str, kinds.group_quarters)),
        models=dict(law.synthetic),
        given=law.synthetic_by,
        check=[kind for kind, _ in roles.members].index(persons) - len(roles.members),
    )


def restate_for_quarters(found: Specification, names: Sequence[str]) -> Specification:
    """Return the promise without invariants of persons in group quarters, except their number."""
    kept = [part for part in found.multiverse.invariants if not isinstance(part, Custom)]
    along = [part for part in found.multiverse.invariants if isinstance(part, Custom)]
    determined = tuple(dict.fromkeys(margin for part in along for margin in part.determined_by))
    own = [
        Custom(name=f"quarters.{key}", determined_by=determined, description=Phrase(f"quarters.{key}"))
        for key in ("outside", "totals")
    ]
    note = Phrase("quarters.note", variables=", ".join(names))
    return replace(found, multiverse=Multiverse(frozenset([*kept, *own])), notes=(*found.notes, note))


def require_one_file(size: int, engine: Engine) -> None:
    """Refuse a census in parts: the models are fitted in the memory of one machine."""
    if not engine.fits(size):
        raise InputError(
            "persons in group quarters cannot be drawn anew here",
            why="the models are fitted in the memory of one machine, and the census is in parts",
            fix="run it with an engine whose memory holds the census, or leave synthetic out",
        )


_EXAMPLE_FIX = 'synthetic = { race = "multinomial" }'


def _setting_error(what: str, why: str, fix: str) -> InputError:
    return InputError(what, why=why, fix=fix)
