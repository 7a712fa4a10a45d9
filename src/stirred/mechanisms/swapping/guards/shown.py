"""What the guards found, for the report and for plan check."""

from collections.abc import Sequence
from dataclasses import replace

from stirred.languages import Phrase, recognise
from stirred.mechanisms.exhibits import Exhibit, Listing
from stirred.mechanisms.release import Guard
from stirred.mechanisms.swapping.guards.checks import REVERSAL_GUARD

GUARD_HEADS = ("guard.head.guard", "guard.head.found", "guard.head.accepted")  # keys of the catalog
REVERSAL_HEADS = ("guard.head.columns", "guard.head.place", "guard.head.guessed", "guard.head.chance")


def mark_trial(guard: Guard) -> Guard:
    """Mark the finding of a trial draw, which is thrown away and is for the office alone."""
    if guard.name != REVERSAL_GUARD:
        return guard
    return replace(guard, finding=Phrase("guard.on_trial", finding=guard.finding))


def exhibit_guards(guards: Sequence[Guard]) -> Exhibit:
    """Return a section of the report: the finding of each guard, and the held columns that guess most places.

    >>> exhibit_guards([Guard(name="identifying columns", finding="none is released")]).finding
    '1 guard looked before anything left; nothing that was found had to be accepted by name.'
    """
    taken = [guard.name for guard in guards if guard.accepted]
    outcome = Phrase("guard.none_accepted")
    if taken:
        names = tuple(recognise(name) for name in taken)
        outcome = Phrase("guard.some_accepted", number=len(taken), names=names)
    rows = [
        (guard.name, guard.finding, Phrase("guard.by_name" if guard.accepted else "guard.not_needed"))
        for guard in guards
    ]
    heads = [Phrase(key) for key in GUARD_HEADS]
    parts = [Listing(caption=Phrase("guard.each"), columns=heads, rows=rows)]
    parts += [
        Listing(
            caption=Phrase("guard.most", name=recognise(guard.name)),
            columns=[Phrase(key) for key in REVERSAL_HEADS],
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
