"""Who stands alone in what is published: counted in the release, or beside the census."""

from collections.abc import Mapping, Sequence

from stirred.assess.uniqueness import Uniqueness
from stirred.languages import Phrase
from stirred.report.document import Block, Paragraphs, Section, make_table
from stirred.report.risk.words import join_labels, kind_of
from stirred.report.texts import percent

UNIQUE_HEADS = ("what", "on", "records", "alone", "share")


def write_unique(
    found: Sequence[Uniqueness],
    cells: tuple[int, int],
    *,
    limited: bool,
    labels: Mapping[str, str] | None = None,
) -> Section | None:
    """Write the section on unique records, or on cells that count one record, from public numbers alone.

    ``cells`` are the published cells and those that show a count of 1; ``limited`` says that the budget is finite.
    """
    if not found and not cells[0]:
        return None
    said = [Phrase("risk.alone.meaning")] if found else []
    said.append(Phrase(f"risk.alone.{'limited' if limited else 'unlimited'}"))
    said.append(Phrase("risk.alone.source"))
    blocks: list[Block] = []
    if found:
        heads = [Phrase(f"risk.alone.head.{name}") for name in UNIQUE_HEADS]
        rows = [
            [_kind(one), _on(one, labels or {}), one.records, one.alone, f"{percent(one.share)} %"]
            for one in found
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
        f"{percent(share)} % alone with the same values."
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
