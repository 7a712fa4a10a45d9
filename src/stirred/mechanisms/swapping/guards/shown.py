"""What the guards found, for the report and for plan check."""

from collections.abc import Sequence
from dataclasses import replace

from stirred.languages import Phrase, recognised
from stirred.mechanisms.exhibits import Exhibit, Listing
from stirred.mechanisms.release import Guard
from stirred.mechanisms.swapping.guards.checks import REVERSAL

GUARDS = ("guard.head.guard", "guard.head.found", "guard.head.accepted")  # keys of the catalog
COLUMNS = ("guard.head.columns", "guard.head.place", "guard.head.guessed", "guard.head.chance")


def on_trial(guard: Guard) -> Guard:
    """The finding of a trial draw, which is thrown away; it is for the office alone."""
    if guard.name != REVERSAL:
        return guard
    return replace(guard, finding=Phrase("guard.on_trial", finding=guard.finding))


def shown_guards(guards: Sequence[Guard]) -> Exhibit:
    """A section of the report: each guard with its finding, and the held columns that guess most places.

    >>> shown_guards([Guard(name="identifying columns", finding="none is released")]).finding
    '1 guard looked before anything left; nothing that was found had to be accepted by name.'
    """
    taken = [guard.name for guard in guards if guard.accepted]
    outcome = Phrase("guard.none_accepted")
    if taken:
        names = tuple(recognised(name) for name in taken)
        outcome = Phrase("guard.some_accepted", number=len(taken), names=names)
    rows = [
        (guard.name, guard.finding, Phrase("guard.by_name" if guard.accepted else "guard.not_needed"))
        for guard in guards
    ]
    heads = [Phrase(key) for key in GUARDS]
    parts = [Listing(caption=Phrase("guard.each"), columns=heads, rows=rows)]
    parts += [
        Listing(
            caption=Phrase("guard.most", name=recognised(guard.name)),
            columns=[Phrase(key) for key in COLUMNS],
            rows=guard.rows,
        )
        for guard in guards
        if guard.rows
    ]
    return Exhibit(
        title=Phrase("guard.title"),
        finding=Phrase("guard.summary", count=len(guards), outcome=outcome),
        parts=tuple(parts),
        note=Phrase("guard.note"),
        chapter="risk",
    )
