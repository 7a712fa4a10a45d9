"""What a report says about the cell key method: the law of its noise, and what it does not promise."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stirred.mechanisms.cell_key.perturbation import IntervalTable, Perturbation, read_back
from stirred.mechanisms.exhibits import Exhibit, Listing, Series

if TYPE_CHECKING:
    from stirred.mechanisms.release import Release


def exhibits(
    table: Perturbation, release: "Release | None", *, secret: bool, continues: bool
) -> Sequence[Exhibit]:
    """The noise by count, and the limits of the method; the noise of a ``secret`` table stays with the office."""
    parts = (_law(table),) if not secret and isinstance(table, IntervalTable) else ()
    shown = (
        ""
        if release is None
        else f" {sum(table.num_rows for table in release.tables.values()):,} cells are shown."
    )
    return (
        Exhibit(
            title="The noise of a cell",
            finding=f"The noise of a cell follows from its records: the same cell is the same in every table.{shown}",
            parts=(*parts, _errors(table)),
            note="Perturbed counts do not add up: quote each figure from its own table, and never sum cells.",
            chapter="method",
        ),
        Exhibit(
            title="What this method does not promise",
            finding="No protection loss budget is finite: a count above 0 proves that the cell has a record, and an "
            "empty cell stays empty."
            if not continues
            else "The guarantee is that of the records that were tabulated; the noise adds no guarantee of its own.",
            chapter="risk",
        ),
    )


def _law(table: IntervalTable) -> Series:
    chosen = [at for at in table.classes() if at in (1.0, 2.0, 3.0, table.classes()[-1])]
    names = {at: f"count {int(at)}" + (" and more" if at == table.classes()[-1] else "") for at in chosen}
    rows = [
        {"noise": float(value), "chance": float(chance), "count": names[at]}
        for at in chosen
        for value, chance in zip(table.rows[float(at)].values, table.rows[float(at)].chances, strict=True)
    ]
    return Series(
        name="cell-key-noise",
        kind="line",
        title="Chance of each noise, by the count before it",
        sentence="Small counts cannot fall below 0, so their noise is lopsided; large counts have the law of the last line.",
        rows=rows,
        x="noise",
        y="chance",
        group="count",
    )


def _errors(table: Perturbation) -> Listing:
    counts = np.array([1, 2, 3, 5, 10, 100, 1000])
    errors, _, _ = read_back(table, counts)
    rows = [
        (int(count), float(f"{error:.2g}"), float(f"{100 * error / count:.2g}"))
        for count, error in zip(counts, errors, strict=True)
    ]
    return Listing(
        caption="The standard error of a count",
        columns=("count", "standard error", "in percent of the count"),
        rows=rows,
        numeric=("count", "standard error", "in percent of the count"),
    )
