"""What the guards found, for the report and for plan check."""

from collections.abc import Sequence
from dataclasses import replace

from stirred.mechanisms.exhibits import Exhibit, Listing
from stirred.mechanisms.release import Guard
from stirred.mechanisms.swapping.guards.checks import REVERSAL

GUARDS = ("guard", "what it found", "accepted")
COLUMNS = ("held columns", "what they guess", "places guessed", "by chance")


def on_trial(guard: Guard) -> Guard:
    """The finding of a trial draw, which is thrown away; it is for the office alone."""
    if guard.name != REVERSAL:
        return guard
    return replace(guard, finding=f"internal, on a trial draw that is thrown away: {guard.finding}")


def shown_guards(guards: Sequence[Guard]) -> Exhibit:
    """A section of the report: each guard with its finding, and the held columns that guess most places.

    >>> shown_guards([Guard(name="identifying columns", finding="none is released")]).finding
    '1 guard looked before anything left; nothing that was found had to be accepted by name.'
    """
    taken = [guard.name for guard in guards if guard.accepted]
    number = f"{len(guards)} guard" + ("s" if len(guards) != 1 else "")
    outcome = (
        f"{len(taken)} of the findings had to be accepted by name in the plan: {', '.join(taken)}"
        if taken
        else "nothing that was found had to be accepted by name"
    )
    rows = [
        (guard.name, guard.finding, "yes, by name" if guard.accepted else "not needed") for guard in guards
    ]
    parts = [Listing(caption="What each guard found", columns=GUARDS, rows=rows)]
    parts += [
        Listing(caption=f"{guard.name}: the held columns that guess most", columns=COLUMNS, rows=guard.rows)
        for guard in guards
        if guard.rows
    ]
    return Exhibit(
        title="What was guarded against",
        finding=f"{number} looked before anything left; {outcome}.",
        parts=tuple(parts),
        note="Identifiers and records that cannot move are read off the schema and the invariants; the guesses are made "
        "from the released file alone. None of this costs protection loss.",
        chapter="risk",
    )
