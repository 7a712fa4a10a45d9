"""What the report shows of a run: the noise of every region type and level, and what decides which rows are shown."""

from collections.abc import Mapping as Table
from fractions import Fraction

import pyarrow as pa

from stirred.frames import frame_of
from stirred.languages import Phrase
from stirred.mechanisms.exhibits import Exhibit, Listing
from stirred.mechanisms.safetab.persons.apportionment import Apportionment, Line
from stirred.mechanisms.safetab.persons.output import CHANCE_ONE_SIDE
from stirred.spec import Budget


def make_exhibits(allotment: Apportionment, tables: Table[str, pa.Table]) -> tuple[Exhibit, ...]:
    """Return the noise with margins of error, and which rows are shown, after a run with their number."""
    return (_show_noise(allotment), _show_selection(allotment, _count_rows(tables)))


def _show_noise(allotment: Apportionment) -> Exhibit:
    columns = [
        Phrase("safetab.exhibit.type"),
        Phrase("safetab.exhibit.level"),
        Phrase("safetab.exhibit.budget"),
        Phrase("safetab.exhibit.deviation"),
        Phrase("safetab.exhibit.margin"),
        Phrase("safetab.exhibit.look"),
    ]
    rows, margins = [], []
    for line in allotment.lines:
        first, second = (
            allotment.noise(line, share) for share in (allotment.first_stage, 1 - allotment.first_stage)
        )
        margin = 0 if line.budget is None else second.cut(CHANCE_ONE_SIDE)
        margins.append((margin, line))
        deviations = [f"{float(noise.variance) ** 0.5:.4g}" for noise in (second, first)]
        paid = "∞" if line.budget is None else str(Budget.of(line.budget))
        rows.append((line.kind.name, line.level, paid, deviations[0], f"± {margin:,}", deviations[1]))
    least, most = (choose(margins, key=lambda pair: pair[0]) for choose in (min, max))
    return Exhibit(
        title=Phrase("safetab.exhibit.title"),
        finding=Phrase(
            "safetab.exhibit.finding",
            least=least[0],
            least_at=_name_line(least[1]),
            most=most[0],
            most_at=_name_line(most[1]),
        ),
        parts=(
            Listing(
                caption=Phrase("safetab.exhibit.caption"), columns=columns, rows=rows, numeric=columns[1:]
            ),
        ),
        note=Phrase("safetab.exhibit.sums"),
        chapter="accuracy",
    )


def _show_selection(allotment: Apportionment, shown: Table[tuple[str, str], int] | None) -> Exhibit:
    columns = [
        Phrase("safetab.exhibit.type"),
        Phrase("safetab.exhibit.level"),
        Phrase("safetab.exhibit.thresholds"),
        Phrase("safetab.exhibit.cut"),
    ]
    rows = []
    for line in allotment.lines:
        cut = allotment.stages(line).cut
        steps = ", ".join(f"{step:,}" for step in line.thresholds)
        hidden: object = Phrase("safetab.exhibit.all_shown") if cut is None else f"{cut:,}"
        rows.append((line.kind.name, line.level, steps, hidden))
    parts = [
        Listing(caption=Phrase("safetab.exhibit.selected"), columns=columns, rows=rows, numeric=columns[1:])
    ]
    if shown is not None:
        names = [Phrase("safetab.exhibit.type"), "t1", "t2"]
        kinds = list(dict.fromkeys(line.kind.name for line in allotment.lines))
        counted = [(kind, shown.get((kind, "t1"), 0), shown.get((kind, "t2"), 0)) for kind in kinds]
        parts.append(
            Listing(caption=Phrase("safetab.exhibit.rows"), columns=names, rows=counted, numeric=names[1:])
        )
    hides = 1 - allotment.suppression if allotment.suppression else Fraction(1)
    return Exhibit(
        title=Phrase("safetab.exhibit.shown"),
        finding=Phrase("safetab.exhibit.suppressed" if allotment.suppression else "safetab.exhibit.nothing_hidden",
                       share=f"{float(hides):g}"),
        parts=tuple(parts),
        note=Phrase("safetab.exhibit.selection"),
        chapter="accuracy",
    )  # fmt: skip


def _name_line(line: Line) -> str:
    return f"{line.kind.name}, {line.level}"


def _count_rows(tables: Table[str, pa.Table]) -> dict[tuple[str, str], int] | None:
    """Return how many rows each table has of each region type; these are published."""
    if "t1" not in tables:
        return None
    found = {}
    for name in ("t1", "t2"):
        column = frame_of(tables[name].select(["region_type"]))["region_type"]
        for kind, number in column.value_counts().iter_rows():
            found[str(kind), name] = int(number)
    return found
