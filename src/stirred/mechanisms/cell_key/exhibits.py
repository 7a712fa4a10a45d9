"""What a report says about the cell key method: the law of its noise, and what it does not promise."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stirred.languages import Phrase
from stirred.mechanisms.cell_key.perturbation import IntervalTable, Perturbation, estimate_counts
from stirred.mechanisms.exhibits import Exhibit, Listing, Series

if TYPE_CHECKING:
    from stirred.mechanisms.release import Release


def make_exhibits(
    table: Perturbation, release: "Release | None", *, secret: bool, continues: bool
) -> Sequence[Exhibit]:
    """Return the noise by count and the limits of the method; the noise of a ``secret`` table is left out."""
    parts = (_show_law(table),) if not secret and isinstance(table, IntervalTable) else ()
    finding = Phrase("cell_key.noise.finding")
    if release is not None:
        number = sum(one.num_rows for one in release.tables.values())
        finding = Phrase("cell_key.noise.shown", number=number)
    return (
        Exhibit(
            title=Phrase("cell_key.noise.title"),
            finding=finding,
            parts=(*parts, _list_errors(table)),
            note=Phrase("cell_key.noise.note"),
            chapter="method",
        ),
        Exhibit(
            title=Phrase("cell_key.limits.title"),
            finding=Phrase("cell_key.limits.continues" if continues else "cell_key.limits.finding"),
            chapter="risk",
        ),
    )


def _show_law(table: IntervalTable) -> Series:
    chosen = [at for at in table.classes() if at in (1.0, 2.0, 3.0, table.classes()[-1])]
    last = table.classes()[-1]
    names = {
        at: Phrase("cell_key.law.from" if at == last else "cell_key.law.count", count=int(at))
        for at in chosen
    }
    rows = [
        {"noise": float(value), "chance": float(chance), "count": names[at]}
        for at in chosen
        for value, chance in zip(table.rows[float(at)].values, table.rows[float(at)].chances, strict=True)
    ]
    return Series(
        name="cell-key-noise",
        kind="line",
        title=Phrase("cell_key.law.title"),
        sentence=Phrase("cell_key.law.sentence"),
        rows=rows,
        x="noise",
        y="chance",
        group="count",
    )


def _list_errors(table: Perturbation) -> Listing:
    counts = np.array([1, 2, 3, 5, 10, 100, 1000])
    errors, _, _ = estimate_counts(table, counts)
    rows = [
        (int(count), float(f"{error:.2g}"), float(f"{100 * error / count:.2g}"))
        for count, error in zip(counts, errors, strict=True)
    ]
    columns = tuple(Phrase(f"cell_key.errors.{name}") for name in ("count", "error", "share"))
    return Listing(caption=Phrase("cell_key.errors.caption"), columns=columns, rows=rows, numeric=columns)
