"""What the exact numbers of releases give away, whatever their noise."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stirred.languages import Phrase
from stirred.report.document import Block, Paragraphs, Section, make_table
from stirred.report.risk.words import kind_of
from stirred.report.texts import relabel, round_digits

if TYPE_CHECKING:
    from stirred.assess.universe.released import Disclosure

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
