"""Measures of risk as tables of internal reports."""

from collections.abc import Sequence

from stirred.assess.risk import RiskMeasure
from stirred.languages import Phrase
from stirred.report.document import Note, Paragraphs, Section, format_value, make_table
from stirred.report.texts import percent


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

    >>> write_number(0.1234, "share").split(), write_number(12.0, "count"), write_number(1.69115, "epsilon")
    (['12', '%'], '12', '1.691')
    """
    return (
        f"{percent(value)}\N{NO-BREAK SPACE}%"
        if unit == "share"
        else format_value(round(value) if unit == "count" else value)
    )
