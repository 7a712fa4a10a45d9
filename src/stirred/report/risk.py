"""Write the chapter on risk: unique records, what exact numbers reveal, and what attacks find beside a guess."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING

from stirred.assess.attack.uniqueness import Uniqueness
from stirred.assess.risk import RiskMeasure
from stirred.languages import Phrase
from stirred.mechanisms.exhibits import format_value, round_digits
from stirred.report.document import Block, Note, Paragraphs, Section, make_table, percent, relabel

if TYPE_CHECKING:
    from stirred.assess.attack.inference import InferredTable, MajorityGuess
    from stirred.assess.universe.measures import Disclosure


# Names of record types and variables in the chapter on risk.


def kind_of(record_type: str) -> str:
    """Return the records of a type in words."""
    name = record_type if record_type in ("household", "person") else "other"
    return Phrase(f"risk.kind.{name}", name=record_type)


def join_labels(names: Sequence[str], labels: Mapping[str, str]) -> str:
    """Join variables by their labels, with commas."""
    return ", ".join(relabel(labels.get(name, name), {}) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRisk:
    """What anyone can find in a release, as one figure that needs no theory and a sentence."""

    figure: str
    words: str


# Who stands alone in what is published: counted in the release, or beside the census.

UNIQUE_HEADS = ("what", "on", "records", "alone", "share")


def write_unique(
    found: Sequence[Uniqueness],
    cells: tuple[int, int],
    *,
    limited: bool,
    labels: Mapping[str, str] | None = None,
    released: Mapping[str, int] | None = None,
) -> Section | None:
    """Write the section on unique records, or on cells that count one record, from public numbers alone.

    ``cells`` are the published cells and those that show a count of 1; ``limited`` says that the budget is finite;
    ``released`` are all released records of each type, some of which may take no part.
    """
    if not found and not cells[0]:
        return None
    said = [Phrase("risk.alone.meaning")] if found else []
    counted = {one.record_type: one.records for one in found}
    for name, records in counted.items():
        if (every := (released or {}).get(name, records)) > records:
            said.insert(
                0,
                Phrase(
                    "risk.alone.apart", records=every, kind=kind_of(name), count=every - records, rest=records
                ),
            )
    said.append(Phrase(f"risk.alone.{'limited' if limited else 'unlimited'}"))
    said.append(Phrase("risk.alone.source"))
    blocks: list[Block] = []
    if found:
        heads = [Phrase(f"risk.alone.head.{name}") for name in UNIQUE_HEADS]
        rows = [
            [_kind(one), _on(one, labels or {}), one.records, one.alone, _share(one.share)] for one in found
        ]
        blocks.append(make_table(Phrase("risk.alone.caption"), heads, rows, numeric=heads[2:]))
    blocks.append(Paragraphs(paragraphs=tuple(said)))
    return Section(
        title=Phrase("risk.alone.title"),
        lead=_unique_lead(found, cells),
        blocks=tuple(blocks),
        chapter="risk",
    )


def _unique_lead(found: Sequence[Uniqueness], cells: tuple[int, int]) -> str:
    """Return the first sentence: the first type of records without and with its place, or the cells."""
    if not found:
        return Phrase("risk.alone.cells", cells=cells[0], ones=cells[1])
    first = found[0]
    placed = next((one for one in found if one.record_type == first.record_type and one.place), None)
    lead = Phrase("risk.alone.lead", alone=first.alone, records=first.records, kind=_kind(first))
    if placed is None:
        return lead
    return Phrase(
        "report.two", first=lead, second=Phrase("risk.alone.placed", alone=placed.alone, place=placed.place)
    )


def _kind(one: Uniqueness) -> str:
    return kind_of(one.record_type)


def _on(one: Uniqueness, labels: Mapping[str, str]) -> str:
    """Return the variables in words; many of them by their number."""
    own = [name for name in one.by if name != one.place]
    words = (
        Phrase("risk.alone.many", number=len(own))
        if len(own) > MAX_VARIABLES_NAMED
        else join_labels(own, labels)
    )
    return Phrase("risk.alone.with", variables=words, place=one.place) if one.place else words


MAX_VARIABLES_NAMED = 6


def write_before_and_after(found: Sequence[Uniqueness]) -> Section | None:
    """Write the section that compares unique records of census and release. Internal."""
    told = [one for one in found if one.before is not None and one.as_shown is not None]
    if not told:
        return None
    worst = max(told, key=lambda one: (bool(one.place), one.before or 0))
    share = (worst.as_shown or 0) / worst.before if worst.before else 0.0
    heads = [
        "records",
        "compared on",
        "alone in the census",
        "alone in the release",
        "alone, and shown as they were",
    ]
    rows = [[_kind(one), ", ".join(one.by), one.before, one.alone, one.as_shown] for one in told]
    lead = (
        f"Of {worst.before:,} {worst.record_type} records that were alone on {', '.join(worst.by)}, the release shows "
        f"{percent(share)}% alone with the same values."
    )
    return Section(
        title="Who stood alone, before and after",
        lead=lead,
        blocks=(
            make_table("Records that no other is like", heads, rows, numeric=heads[2:]),
            Paragraphs(
                paragraphs=(
                    "A record that is shown as it was need not be the same one: another may have taken its place. "
                    "Whoever cannot tell takes it for true, so the last column is what an attacker who believes the "
                    "release gets right.",
                )
            ),
        ),
        chapter="risk",
    )


# What the exact numbers of releases give away, whatever their noise.

DISCLOSURE_HEADS = ("what", "records", "fixed", "certain", "values", "places")
MAX_VALUES_SHOWN = 1e12  # values that are left open; beyond it the number says nothing more
NO_VALUE = "–"


def write_disclosure(found: Sequence["Disclosure"], labels: Mapping[str, str] | None = None) -> Section:
    """Write the section on records that exact numbers alone reveal, and on what these leave open."""
    title = Phrase("risk.given.title")
    counted = [one for one in found if one.records is not None]
    hidden = [one for one in found if one.records is None]
    blocks: list[Block] = []
    said: list[str] = []
    if counted:
        heads = [Phrase(f"risk.given.head.{name}") for name in DISCLOSURE_HEADS]
        if all(one.places is None for one in counted):
            heads = heads[:-1]
        rows = [_row(one)[: len(heads)] for one in counted]
        blocks.append(make_table(Phrase("risk.given.caption"), heads, rows, numeric=heads[1:]))
        said.append(Phrase("risk.given.meaning"))
        if any(one.places is not None for one in counted):
            said.append(Phrase("risk.given.places"))
        said += [
            Phrase(
                "risk.given.unknown",
                kind=kind_of(one.record_type),
                records=one.records or 0,
                command=Phrase("risk.command.universe"),
            )
            for one in counted
            if one.values is None
        ]
    said += [_exact_of(one, labels or {}) for one in hidden]
    if found:
        said.append(Phrase("risk.given.budget"))
        said.append(Phrase("risk.given.source"))
    blocks += [Paragraphs(paragraphs=tuple(said))] if said else []
    return Section(title=title, lead=_disclosure_lead(counted, hidden), blocks=tuple(blocks), chapter="risk")


def _disclosure_lead(counted: Sequence["Disclosure"], hidden: Sequence["Disclosure"]) -> str:
    known = [one for one in counted if one.certain is not None]
    if known:
        first = known[0]
        told = first.fixed + (first.certain or 0)
        return Phrase(
            "risk.given.lead", told=told, records=first.records or 0, kind=kind_of(first.record_type)
        )
    if counted:
        return Phrase("risk.given.open")
    return Phrase("risk.given.unreleased" if hidden else "risk.given.none")


def _row(one: "Disclosure") -> list[object]:
    rest = (one.records or 0) - one.fixed - (one.certain or 0)
    return [
        kind_of(one.record_type),
        one.records,
        one.fixed,
        NO_VALUE if one.certain is None else one.certain,
        NO_VALUE if one.values is None or not rest else _about(one.values),
        NO_VALUE if one.places is None or not rest else _about(one.places),
    ]


def _about(number: float) -> str:
    if number > MAX_VALUES_SHOWN:
        return Phrase("risk.given.many")
    return Phrase("risk.given.about", number=round_digits(float(f"{number:.3g}"), 2))


def _exact_of(one: "Disclosure", labels: Mapping[str, str]) -> str:
    """Return the exact numbers about records that are not released one by one."""
    words = tuple(relabel(invariant.words(), labels) for invariant in one.exact)
    return Phrase("risk.given.hidden", kind=kind_of(one.record_type), what=words)


# What attacks find that need nothing but the release, beside what a guess finds.

MAX_VARIABLES_GUESSED = 8  # variables that are listed, those that the area tells most about


@dataclass(frozen=True, slots=True, kw_only=True)
class InversionShares:
    """The results of the best inversion of a swap, as shares of records."""

    record_type: str
    share: float  # that are where they are shown, as far as can be known
    guess: float  # of places that a guess without the file finds
    best: float  # of places that the best guess finds
    sure: float  # that are where they are shown with chance 0.95 or more
    known: float = 0.0  # that are where they are shown with chance 0.99 or more


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaGuesses:
    """What the area alone tells of released records of a type, by variable."""

    record_type: str
    guesses: "tuple[MajorityGuess, ...]"

    def ranked(self) -> "list[MajorityGuess]":
        """Return the guesses, those first in which the area helps most."""
        return sorted(self.guesses, key=lambda one: (-one.gain, one.variable))


def of_hundred(share: float) -> Decimal:
    """Return a share as so many of 100; near none and near all of them with one decimal, rounded inwards.

    >>> [str(of_hundred(share)) for share in (0.95, 0.9996, 0.004, 1.0)]
    ['95', '99.9', '0.4', '100']
    """
    exact = 100 * Decimal(repr(float(share)))
    if exact in (0, 100) or 1 <= exact <= 99:
        return exact.quantize(Decimal(1))
    tenth = Decimal("0.1")
    return max(tenth, exact.quantize(tenth)) if exact < 1 else min(100 - tenth, exact.quantize(tenth))


def describe_undone(found: InversionShares) -> PlainRisk:
    """Describe a swap by how many are shown where they live, and whether anyone can tell which."""
    who = found.record_type if found.record_type in ("household", "person") else "other"
    words = Phrase("risk.plain.hidden")
    if found.known:
        few = found.known < 0.01
        words = (
            Phrase("risk.plain.few") if few else Phrase("risk.plain.nearly", known=of_hundred(found.known))
        )
    return PlainRisk(figure=Phrase(f"risk.plain.in_place.{who}", share=of_hundred(found.share)), words=words)


def describe_guessed(found: AreaGuesses, labels: Mapping[str, str]) -> PlainRisk:
    """Describe synthetic records by what the area of a record adds to a guess, and by the secret that is hardest to guess.

    The gain is the largest of all variables; a variable that nearly everyone guesses anyway is no example.
    """
    gain = max(one.found - one.guess for one in found.guesses)
    hardest = min(found.guesses, key=lambda one: (one.guess, one.variable))
    who = Phrase(
        f"risk.plain.who.{found.record_type if found.record_type in ('household', 'person') else 'other'}"
    )
    figure = Phrase("risk.plain.guessed_nothing", who=who)
    if gain > 0:
        figure = Phrase("risk.plain.guessed", who=who, gain=_tenths(gain, up=True))
    return PlainRisk(
        figure=figure,
        words=Phrase(
            "risk.plain.guessed_words",
            count=len(found.guesses),
            area=hardest.area,
            variable=join_labels([hardest.variable], labels),
            found=_tenths(hardest.found),
            guess=_tenths(hardest.guess),
        ),
    )


def _tenths(share: float, *, up: bool = False) -> Decimal:
    """Return a share as so many of 100 with one decimal, so that two of them can be subtracted.

    >>> str(_tenths(0.7485)), str(_tenths(0.00495, up=True)), str(_tenths(0.00441, up=True))
    ('74.8', '0.5', '0.5')
    """
    exact = 100 * Decimal(repr(float(share)))
    return exact.quantize(Decimal("0.1"), ROUND_CEILING if up else ROUND_HALF_EVEN)


def describe_believed(found: "Sequence[InferredTable]") -> PlainRisk:
    """Describe tables with stated errors by the one in which guesses gain most, and by what they gain there."""
    worst = max(found, key=lambda one: one.found - one.guess)
    told, guess = _tenths(worst.found), _tenths(worst.guess)
    return PlainRisk(
        figure=Phrase("risk.plain.cells", gain=told - guess),
        words=Phrase("risk.plain.cells_words", table=worst.name, found=told, guess=guess),
    )


def write_inversion(found: InversionShares) -> Section:
    """Write the section on the best inversion of a swap, from the release and the public law alone."""
    kind = kind_of(found.record_type)
    guess = of_hundred(found.guess)
    lead = Phrase("risk.undone.lead", share=of_hundred(found.share), guess=guess, kind=kind)
    said = (
        Phrase("risk.undone.best", best=of_hundred(found.best)),
        Phrase("risk.undone.sure", sure=of_hundred(found.sure)),
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


def write_majority(found: AreaGuesses, labels: Mapping[str, str] | None = None) -> Section:
    """Write the section on guesses from the area alone, beside the commonest value of all records."""
    ranked = found.ranked()[:MAX_VARIABLES_GUESSED]
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
            kind=kind_of(found.record_type),
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


# Measures of risk as tables of internal reports.


def write_measures(
    title: str, lead: str, found: Sequence[tuple[str, RiskMeasure]], *, said: Sequence[str] = ()
) -> Section:
    """Write measures of risk as one table for each release, beside what guesses find. Internal.

    ``said`` are sentences before the tables.
    """
    heads = [
        Phrase(f"measure.head.{name}") for name in ("name", "about", "value", "interval", "beside", "kind")
    ]
    tables = [
        make_table(
            release,
            heads,
            [
                [
                    one.name,
                    one.about,
                    Phrase("measure.unknown") if one.value is None else write_number(one.value, one.unit),
                    _interval(one),
                    _beside(one),
                    Phrase(f"measure.kind.{one.kind}"),
                ]
                for name, one in found
                if name == release
            ],
            numeric=heads[2:3],
        )
        for release in dict.fromkeys(name for name, _ in found)
    ]
    sentences = list(dict.fromkeys(one.sentence for _, one in found))
    notes = (Note(text=one, tone="plain") for one in sentences)
    words = [Paragraphs(paragraphs=tuple(said))] if said else []
    return Section(title=title, lead=lead, blocks=(*words, *tables, *notes), chapter="risk")


def _interval(one: RiskMeasure) -> str:
    if one.low is None or one.high is None:
        return ""
    return Phrase(
        "measure.interval", low=write_number(one.low, one.unit), high=write_number(one.high, one.unit)
    )


def _beside(one: RiskMeasure) -> str:
    """Return what guesses and ceilings find, and why a value is unknown."""
    told = [f"{guess.name} {write_number(guess.value, one.unit)}" for guess in one.baselines]
    return "; ".join([*([one.reason] if one.value is None else []), *told])


def write_number(value: float, unit: str) -> str:
    """Write a number of a measure: shares in per cent, the rest with few digits.

    >>> write_number(0.1234, "share"), write_number(12.0, "count"), write_number(1.69115, "epsilon")
    ('12%', '12', '1.691')
    """
    return (
        f"{percent(value)}%" if unit == "share" else format_value(round(value) if unit == "count" else value)
    )
