"""The chapter on risk: who stands alone in what is published, and what attacks find beside a guess."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stirred.assess.risk import RiskMeasure
from stirred.assess.uniqueness import Uniqueness
from stirred.languages import Phrase
from stirred.report.document import Block, Note, Paragraphs, Section, shown, table
from stirred.report.texts import percent, relabelled, rounded

HEADS = ("what", "on", "records", "alone", "share")


def alone(
    found: Sequence[Uniqueness],
    cells: tuple[int, int],
    *,
    limited: bool,
    labels: Mapping[str, str] | None = None,
) -> Section | None:
    """Records that no other is like, or cells that count one record, from what is published alone.

    ``cells`` are the published cells and those that show a count of 1; ``limited`` says that the budget is finite.
    """
    if not found and not cells[0]:
        return None
    said = [Phrase("risk.alone.meaning")] if found else []
    said.append(Phrase(f"risk.alone.{'limited' if limited else 'unlimited'}"))
    said.append(Phrase("risk.alone.source"))
    blocks: list[Block] = []
    if found:
        heads = [Phrase(f"risk.alone.head.{name}") for name in HEADS]
        rows = [
            [_kind(one), _on(one, labels or {}), one.records, one.alone, f"{percent(one.share)} %"]
            for one in found
        ]
        blocks.append(table(Phrase("risk.alone.caption"), heads, rows, numeric=heads[2:]))
    blocks.append(Paragraphs(paragraphs=tuple(said)))
    return Section(
        title=Phrase("risk.alone.title"), lead=_lead(found, cells), blocks=tuple(blocks), chapter="risk"
    )


def _lead(found: Sequence[Uniqueness], cells: tuple[int, int]) -> str:
    """The first type of records, without and with its place; without records, the cells."""
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
    return _kind_of(one.record_type)


def _kind_of(record_type: str) -> str:
    name = record_type if record_type in ("household", "person") else "other"
    return Phrase(f"risk.kind.{name}", name=record_type)


def _on(one: Uniqueness, labels: Mapping[str, str]) -> str:
    """The variables in words; many of them by their number."""
    own = [name for name in one.by if name != one.place]
    words = Phrase("risk.alone.many", number=len(own)) if len(own) > MOST_NAMED else _named(own, labels)
    return Phrase("risk.alone.with", variables=words, place=one.place) if one.place else words


MOST_NAMED = 6


def _named(names: Sequence[str], labels: Mapping[str, str]) -> str:
    return ", ".join(relabelled(labels.get(name, name), {}) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What the best undo of a swap finds: shares of records, and what the exact numbers alone leave open of their places."""

    record_type: str
    share: float  # that are where they are shown, as far as can be known
    guess: float  # of places that a guess without the file finds
    best: float  # of places that the best guess finds
    sure: float  # that are where they are shown with chance 0.95 or more
    places: float  # that the exact numbers leave open for a record, as a geometric mean
    single: int  # records for which they leave one
    records: int


def undone(found: Undone) -> Section:
    """What the best undo of a swap finds, from the released file and the public law of the swap alone."""
    kind = _kind_of(found.record_type)
    lead = Phrase("risk.undone.lead", share=percent(found.share, 3), guess=percent(found.guess), kind=kind)
    said = (
        Phrase("risk.undone.given", places=rounded(found.places), single=found.single, records=found.records),
        Phrase("risk.undone.best", best=percent(found.best, 3)),
        Phrase("risk.undone.sure", sure=percent(found.sure, 3)),
        Phrase("risk.undone.absolute"),
        Phrase("risk.undone.source"),
    )
    return Section(
        title=Phrase("risk.undone.title"), lead=lead, blocks=(Paragraphs(paragraphs=said),), chapter="risk"
    )


def before_and_after(found: Sequence[Uniqueness]) -> Section | None:
    """The same counts in the census, and how many records that were alone are shown as they were. Internal."""
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
        f"{percent(share)} % alone with the same values."
    )
    return Section(
        title="Who stood alone, before and after",
        lead=lead,
        blocks=(
            table("Records that no other is like", heads, rows, numeric=heads[2:]),
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


def measured(title: str, lead: str, found: Sequence[tuple[str, RiskMeasure]]) -> Section:
    """Measures of risk, a table for each release, each beside what guesses find; what is unknown says why. Internal."""
    heads = ["measure", "about", "value", "interval", "beside it", "risk"]
    tables = [
        table(
            release,
            heads,
            [
                [
                    one.name,
                    one.about,
                    "unknown" if one.value is None else written(one.value, one.unit),
                    _interval(one),
                    _beside(one),
                    one.kind,
                ]
                for name, one in found
                if name == release
            ],
            numeric=["value"],
        )
        for release in dict.fromkeys(name for name, _ in found)
    ]
    sentences = list(dict.fromkeys(one.sentence for _, one in found))
    notes = (Note(text=one, tone="plain") for one in sentences)
    return Section(title=title, lead=lead, blocks=(*tables, *notes), chapter="risk")


def _interval(one: RiskMeasure) -> str:
    if one.low is None or one.high is None:
        return ""
    return f"{written(one.low, one.unit)} to {written(one.high, one.unit)}"


def _beside(one: RiskMeasure) -> str:
    """What guesses and ceilings find, and why a value is unknown."""
    told = [f"{guess.name} {written(guess.value, one.unit)}" for guess in one.baselines]
    return "; ".join([*([one.reason] if one.value is None else []), *told])


def written(value: float, unit: str) -> str:
    """A number of a measure: shares in per cent, the rest with few digits.

    >>> written(0.1234, "share").split(), written(12.0, "count"), written(1.69115, "epsilon")
    (['12', '%'], '12', '1.691')
    """
    return (
        f"{percent(value)}\N{NO-BREAK SPACE}%"
        if unit == "share"
        else shown(round(value) if unit == "count" else value)
    )
