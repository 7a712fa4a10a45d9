"""What TopDown shows: where the noise fell, and what the budget means for one attribute or one level of geography."""

from decimal import Decimal
from fractions import Fraction

from stirred.mechanisms.exhibits import Exhibit, Listing, Series, shown
from stirred.mechanisms.topdown import accounting
from stirred.mechanisms.topdown.workload import Workload
from stirred.spec import Budget

QUARTERS = (
    Fraction(1),
    Fraction(6, 5),
    Fraction(7, 5),
    Fraction(5, 3),
)  # about powers of the fourth root of 2
STEPS = 32  # quarters of a doubling that tuning goes up and down


def where_noise_fell(workload: Workload) -> Exhibit:
    """The standard deviation of the noise by level and query, and what each attribute and area costs."""
    rows = [
        {"level": level, "query": query, "standard deviation": sigma}
        for (level, query), sigma in accounting.standard_deviations(workload).items()
    ]
    least = min(rows, key=lambda row: float(str(row["standard deviation"])))
    most = max(rows, key=lambda row: float(str(row["standard deviation"])))
    finding = (
        "Noise was added to every count of every query at every level; its standard deviation runs from "
        f"{shown(least['standard deviation'])} ({least['query']}, {least['level']}) to "
        f"{shown(most['standard deviation'])} ({most['query']}, {most['level']})."
    )
    series = Series(
        name=f"noise-{workload.name}",
        kind="dots",
        title="Standard deviation of the noise.",
        sentence="One row a query; the consistent numbers are better than any single measurement.",
        rows=rows,
        x="query",
        y="standard deviation",
        group="level",
    )
    return Exhibit(
        title=f"Where the noise fell ({workload.name})", finding=finding, parts=(series, costs(workload))
    )


def costs(workload: Workload) -> Listing:
    """What one person's record may change, with the part of ρ² that sees it."""
    columns = ["what one person's record may change", "ρ²", "ε at δ = 10⁻¹⁰"]
    rows = [
        (name, str(Budget.of(rho)), str(epsilon))
        for name, (rho, epsilon) in accounting.semantics(workload).items()
    ]
    return Listing(
        caption="What the budget means, by attribute and area",
        columns=columns,
        rows=rows,
        numeric=columns[1:],
    )


def document(workload: Workload, *, noiseless: bool) -> dict[str, object]:
    """The same for programs."""
    lines: dict[str, tuple[Fraction, Decimal]] = {} if noiseless else accounting.semantics(workload)
    return {
        "rho_squared": str(workload.rho_squared),
        "levels": {level: str(part) for level, part in accounting.by_level(workload).items()},
        "semantics": {name: {"rho_squared": str(r), "epsilon": str(e)} for name, (r, e) in lines.items()},
    }


def totals_to_try(start: Fraction) -> tuple[Fraction, ...]:
    """Totals of ρ² in steps of a quarter of a doubling, the largest first, as numbers that people can read."""
    return tuple(
        Fraction(f"{float(start * Fraction(2) ** (step // 4) * QUARTERS[step % 4]):.4g}")
        for step in range(STEPS, -STEPS - 1, -1)
    )
