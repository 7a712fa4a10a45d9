"""What a report says about tables with noise: the error of each of them."""

from collections.abc import Sequence
from fractions import Fraction

from stirred.languages import Phrase
from stirred.mechanisms.exhibits import Exhibit, Listing
from stirred.mechanisms.gaussian_tables.cells import half_width


def make_exhibits(
    tables: Sequence[Sequence[str]], variances: Sequence[Fraction], *, continues: bool
) -> Sequence[Exhibit]:
    """Return the standard error of a cell and its interval, by table."""
    columns = tuple(
        Phrase(f"gaussian_tables.errors.{name}") for name in ("table", "rho_squared", "error", "half")
    )
    rows = [
        (
            " × ".join(by),
            str(1 / variance),
            float(f"{float(variance) ** 0.5:.3g}"),
            half_width(float(variance), 1),
        )
        for by, variance in zip(tables, variances, strict=True)
    ]
    return (
        Exhibit(
            title=Phrase("gaussian_tables.errors.title"),
            finding=Phrase(
                "gaussian_tables.errors.continues" if continues else "gaussian_tables.errors.finding"
            ),
            parts=(
                Listing(
                    caption=Phrase("gaussian_tables.errors.caption"),
                    columns=columns,
                    rows=rows,
                    numeric=columns[2:],
                ),
            ),
            note=Phrase("gaussian_tables.errors.note"),
            chapter="method",
        ),
    )
