"""What attacks find that need nothing but the release, beside what a guess finds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stirred.languages import Phrase
from stirred.report.document import Paragraphs, Section, table
from stirred.report.risk.words import kind_of, named
from stirred.report.texts import percent

if TYPE_CHECKING:
    from stirred.assess.attack.inference.majority import MajorityGuess
    from stirred.assess.attack.inference.published import BelievedTable

MOST_GUESSED = 8  # variables that are listed, those that the area tells most about


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What the best undo of a swap finds, as shares of records."""

    record_type: str
    share: float  # that are where they are shown, as far as can be known
    guess: float  # of places that a guess without the file finds
    best: float  # of places that the best guess finds
    sure: float  # that are where they are shown with chance 0.95 or more


def undone(found: Undone) -> Section:
    """What the best undo of a swap finds, from the released file and the public law of the swap alone."""
    kind = kind_of(found.record_type)
    lead = Phrase("risk.undone.lead", share=percent(found.share, 3), guess=percent(found.guess), kind=kind)
    said = (
        Phrase("risk.undone.best", best=percent(found.best, 3)),
        Phrase("risk.undone.sure", sure=percent(found.sure, 3)),
        Phrase("risk.undone.absolute"),
        Phrase("risk.undone.source"),
    )
    return Section(
        title=Phrase("risk.undone.title"), lead=lead, blocks=(Paragraphs(paragraphs=said),), chapter="risk"
    )


def noisy(found: Sequence["BelievedTable"]) -> Section | None:
    """How many cells of published tables can be guessed right by one who knows their errors, beside a guess without them."""
    if not found:
        return None
    worst = max(found, key=lambda one: one.found - one.guess)
    heads = [Phrase(f"risk.noisy.head.{name}") for name in ("table", "cells", "found", "guess", "ones")]
    rows = [[one.name, one.cells, _share(one.found), _share(one.guess), one.ones] for one in found]
    said = ("meaning", "absolute", "relative", "source")
    return Section(
        title=Phrase("risk.noisy.title"),
        lead=Phrase(
            "risk.noisy.lead",
            table=worst.name,
            found=percent(worst.found),
            guess=percent(worst.guess),
        ),
        blocks=(
            table(Phrase("risk.noisy.caption"), heads, rows, numeric=heads[1:]),
            Paragraphs(paragraphs=tuple(Phrase(f"risk.noisy.{name}") for name in said)),
        ),
        chapter="risk",
    )


def _share(share: float, digits: int = 2) -> str:
    return Phrase("risk.share", share=percent(share, digits))


def majority(
    record_type: str, found: Sequence["MajorityGuess"], labels: Mapping[str, str] | None = None
) -> Section | None:
    """What someone guesses right who knows only the area, beside the commonest value of all records."""
    if not found:
        return None
    ranked = sorted(found, key=lambda one: (-one.gain, one.variable))[:MOST_GUESSED]
    first = ranked[0]
    heads = [Phrase(f"risk.majority.head.{name}") for name in ("variable", "found", "guess")]
    rows = [
        [named([one.variable], labels or {}), _share(one.found, 3), _share(one.guess, 3)] for one in ranked
    ]
    said = ("meaning", "absolute", "source")
    return Section(
        title=Phrase("risk.majority.title"),
        lead=Phrase(
            "risk.majority.lead",
            area=first.area,
            variable=named([first.variable], labels or {}),
            found=percent(first.found, 3),
            guess=percent(first.guess, 3),
            kind=kind_of(record_type),
        ),
        blocks=(
            table(Phrase("risk.majority.caption", area=first.area), heads, rows, numeric=heads[1:]),
            Paragraphs(paragraphs=tuple(Phrase(f"risk.majority.{name}") for name in said)),
        ),
        chapter="risk",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A count or an attack that a report does without, because there are too many records for it."""

    what: str  # "alone", "undone" or "majority"
    record_type: str
    records: int
    most: int


def left_out(found: Sequence[LeftOut]) -> Section | None:
    """What was not computed for this report, why, and the command that does it."""
    if not found:
        return None
    said = [
        Phrase(f"risk.left_out.{one.what}", kind=kind_of(one.record_type), records=one.records, most=one.most)
        for one in found
    ]
    said.append(Phrase("risk.left_out.command", command=Phrase("risk.command.attack")))
    return Section(
        title=Phrase("risk.left_out.title"),
        lead=Phrase("risk.left_out.lead"),
        blocks=(Paragraphs(paragraphs=tuple(said)),),
        chapter="risk",
    )
