"""Measures of risk as tables of internal reports."""

from collections.abc import Sequence

from stirred.assess.risk import RiskMeasure
from stirred.languages import Phrase
from stirred.report.document import Note, Paragraphs, Section, shown, table
from stirred.report.texts import percent


def measured(
    title: str, lead: str, found: Sequence[tuple[str, RiskMeasure]], *, said: Sequence[str] = ()
) -> Section:
    """Measures of risk, a table for each release, each beside what guesses find; what is unknown says why. Internal.

    ``said`` are sentences before the tables.
    """
    heads = [
        Phrase(f"measure.head.{name}") for name in ("name", "about", "value", "interval", "beside", "kind")
    ]
    tables = [
        table(
            release,
            heads,
            [
                [
                    one.name,
                    one.about,
                    Phrase("measure.unknown") if one.value is None else written(one.value, one.unit),
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
    return Phrase("measure.interval", low=written(one.low, one.unit), high=written(one.high, one.unit))


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
