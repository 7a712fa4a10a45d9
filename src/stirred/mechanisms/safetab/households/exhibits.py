"""What the report shows of SafeTab-H: its noise by table, region type and level, and how much detail the groups have."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

import polars as pl

from stirred.languages import Phrase
from stirred.mechanisms.exhibits import Exhibit, Listing, format_value
from stirred.mechanisms.release import Release
from stirred.mechanisms.safetab.households.cells import LEVELS
from stirred.mechanisms.safetab.households.measure import VARIABLES
from stirred.mechanisms.safetab.households.output import cell_column, half_width
from stirred.mechanisms.safetab.households.presets import TABLES, HouseholdSettings, Place
from stirred.mechanisms.safetab.noise import CellNoise


def show_noise(
    settings: HouseholdSettings, noises: Mapping[Place, CellNoise], release: Release | None = None
) -> Exhibit:
    """Return the exhibit of the noise of every count that has a budget, or that a release has."""
    there = None if release is None else _list_region_types(release)
    rows = [
        (
            table,
            name,
            level,
            write_amount(settings.budgets[table, name, level]),
            round(float(noise.variance) ** 0.5, 4),
            int(half_width(noise, 1)),
            ", ".join(f"{cut:,}" for cut in settings.thresholds.get((table, name, level), ())),
        )
        for (table, name, level), noise in noises.items()
        if there is None or (table, name) in there
    ]
    spread = [row[4] for row in rows] or [0.0]
    return Exhibit(
        title=Phrase("safetab_h.exhibit.noise"),
        finding=Phrase(
            "safetab_h.exhibit.finding", least=format_value(min(spread)), most=format_value(max(spread))
        ),
        parts=(
            Listing(
                caption=Phrase("safetab_h.exhibit.caption"),
                columns=(
                    Phrase("safetab_h.exhibit.table"),
                    Phrase("safetab_h.exhibit.region_type"),
                    Phrase("safetab_h.exhibit.level"),
                    Phrase("safetab_h.exhibit.budget"),
                    Phrase("safetab_h.exhibit.deviation"),
                    Phrase("safetab_h.exhibit.margin"),
                    Phrase("safetab_h.exhibit.thresholds"),
                ),
                rows=rows,
                numeric=(Phrase("safetab_h.exhibit.deviation"), Phrase("safetab_h.exhibit.margin")),
            ),
        ),
        note=Phrase("safetab_h.exhibit.note"),
        chapter="accuracy",
    )


def write_amount(amount: Fraction) -> str:
    """Return a budget as people write it: a decimal where it is one, else a fraction.

    >>> write_amount(Fraction("0.006915")), write_amount(Fraction(1, 3))
    ('0.006915', '1/3')
    """
    decimal = format(Decimal(amount.numerator) / Decimal(amount.denominator), "f")
    return decimal if Fraction(decimal) == amount else str(amount)


def _list_region_types(release: Release) -> set[tuple[str, str]]:
    """Return the tables of a release with the region types that each has."""
    return {
        (table, str(name))
        for table in TABLES
        if table.lower() in release.tables
        for name in release.tables[table.lower()]["region_type"].unique().to_pylist()
    }


def show_groups(release: Release) -> Exhibit:
    """Return the exhibit of groups by statistics level, with the number of negative counts."""
    rows, groups, negative = [], 0, 0
    for table in TABLES:
        grid = release.tables.get(table.lower())
        if grid is None:
            continue
        frame = pl.DataFrame(pl.from_arrow(grid))
        detail = frame.group_by(VARIABLES).agg(pl.col(cell_column(table)).len().alias("cells"))
        for level in LEVELS[table]:
            number = int((detail["cells"] == len(level.published_cells)).sum())
            rows.append((level.file, len(level.published_cells), number))
        groups = max(groups, detail.height)
        negative += int((frame["count"] < 0).sum())
    return Exhibit(
        title=Phrase("safetab_h.exhibit.groups"),
        finding=Phrase("safetab_h.exhibit.shown", groups=groups, negative=negative),
        parts=(
            Listing(
                caption=Phrase("safetab_h.exhibit.files"),
                columns=(
                    Phrase("safetab_h.exhibit.file"),
                    Phrase("safetab_h.exhibit.cells"),
                    Phrase("safetab_h.exhibit.number"),
                ),
                rows=rows,
                numeric=(Phrase("safetab_h.exhibit.cells"), Phrase("safetab_h.exhibit.number")),
            ),
        ),
        chapter="method",
    )
