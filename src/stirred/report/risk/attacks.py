"""What attacks find that need nothing but the release, beside what a guess finds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stirred.languages import Phrase
from stirred.report.document import Paragraphs, Section, make_table
from stirred.report.risk.words import join_labels, kind_of
from stirred.report.texts import percent

if TYPE_CHECKING:
    from stirred.assess.attack.inference.majority import MajorityGuess
    from stirred.assess.attack.inference.published import InferredTable

MAX_VARIABLES_GUESSED = 8  # variables that are listed, those that the area tells most about


@dataclass(frozen=True, slots=True, kw_only=True)
class InversionShares:
    """The results of the best inversion of a swap, as shares of records."""

    record_type: str
    share: float  # that are where they are shown, as far as can be known
    guess: float  # of places that a guess without the file finds
    best: float  # of places that the best guess finds
    sure: float  # that are where they are shown with chance 0.95 or more


def write_inversion(found: InversionShares) -> Section:
    """Write the section on the best inversion of a swap, from the release and the public law alone."""
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


def write_noisy_tables(found: Sequence["InferredTable"]) -> Section | None:
    """Write the section on cells that can be guessed from stated errors, beside a guess without them."""
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
            make_table(Phrase("risk.noisy.caption"), heads, rows, numeric=heads[1:]),
            Paragraphs(paragraphs=tuple(Phrase(f"risk.noisy.{name}") for name in said)),
        ),
        chapter="risk",
    )


def _share(share: float, digits: int = 2) -> str:
    return Phrase("risk.share", share=percent(share, digits))


def write_majority(
    record_type: str, found: Sequence["MajorityGuess"], labels: Mapping[str, str] | None = None
) -> Section | None:
    """Write the section on guesses from the area alone, beside the commonest value of all records."""
    if not found:
        return None
    ranked = sorted(found, key=lambda one: (-one.gain, one.variable))[:MAX_VARIABLES_GUESSED]
    first = ranked[0]
    heads = [Phrase(f"risk.majority.head.{name}") for name in ("variable", "found", "guess")]
    rows = [
        [join_labels([one.variable], labels or {}), _share(one.found, 3), _share(one.guess, 3)]
        for one in ranked
    ]
    said = ("meaning", "absolute", "source")
    return Section(
        title=Phrase("risk.majority.title"),
        lead=Phrase(
            "risk.majority.lead",
            area=first.area,
            variable=join_labels([first.variable], labels or {}),
            found=percent(first.found, 3),
            guess=percent(first.guess, 3),
            kind=kind_of(record_type),
        ),
        blocks=(
            make_table(Phrase("risk.majority.caption", area=first.area), heads, rows, numeric=heads[1:]),
            Paragraphs(paragraphs=tuple(Phrase(f"risk.majority.{name}") for name in said)),
        ),
        chapter="risk",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedPart:
    """A count or an attack that a report omits, because there are too many records for it."""

    what: str  # "alone", "undone" or "majority"
    record_type: str
    records: int
    most: int


def write_skipped(found: Sequence[SkippedPart]) -> Section | None:
    """Write the section on what was not computed, why, and the command that computes it."""
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
