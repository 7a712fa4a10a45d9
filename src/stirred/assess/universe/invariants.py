"""Check which invariants a release kept, and compute the budget at which a noisy count acts as an invariant."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import polars as pl
import pyarrow as pa

from stirred.errors import InputError
from stirred.frames import arrow_of, frame_of
from stirred.spec import Budget
from stirred.spec.invariants import Invariant, SupportsCounts

# Which of a list of candidate invariants hold between two files or tables: what a release kept, and what it broke.

COUNT_COLUMN = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One candidate: whether all its numbers agree, how many differ, and by how much altogether (None: not numbers)."""

    invariant: Invariant
    numbers: int
    differ: int
    total: int | None

    @property
    def holds(self) -> bool:
        """Return whether every number agrees, as an invariant must in each release."""
        return self.differ == 0


def check_candidates(
    candidates: Iterable[Invariant], truth: SupportsCounts, released: SupportsCounts
) -> tuple[Candidate, ...]:
    """Hold each candidate against the truth and a release: a difference shows that it is no invariant of the release.

    >>> from stirred.spec import Margin
    >>> truth = CountTables.of(("person", {"block": ["a", "b"], "count": [3, 2]}))
    >>> other = CountTables.of(("person", {"block": ["a", "b"], "count": [4, 1]}))
    >>> [found.differ for found in check_candidates([Margin("person"), Margin("person", ("block",))], truth, other)]
    [0, 2]
    """
    return tuple(_check_candidate(candidate, truth, released) for candidate in candidates)


def _check_candidate(candidate: Invariant, truth: SupportsCounts, released: SupportsCounts) -> Candidate:
    first, second = (_as_text(candidate.tabulate(source)) for source in (truth, released))
    by = [name for name in first.columns if name != COUNT_COLUMN]
    if COUNT_COLUMN not in first.columns:  # a list of areas for which an inequality holds
        differ = first.join(second, on=by, how="anti", nulls_equal=True).height
        differ += second.join(first, on=by, how="anti", nulls_equal=True).height
        listed = pl.concat([first.select(by), second.select(by)]).unique().height
        return Candidate(invariant=candidate, numbers=listed, differ=differ, total=None)
    if not by:
        gap = int(first[COUNT_COLUMN].sum()) - int(second[COUNT_COLUMN].sum())
        return Candidate(invariant=candidate, numbers=1, differ=int(gap != 0), total=abs(gap))
    both = first.join(second, on=by, how="full", coalesce=True, nulls_equal=True, suffix="_released")
    gaps = both.select(
        (pl.col(COUNT_COLUMN).fill_null(0) - pl.col(f"{COUNT_COLUMN}_released").fill_null(0))
        .abs()
        .alias("gap")
    )["gap"]
    return Candidate(
        invariant=candidate, numbers=both.height, differ=int((gaps != 0).sum()), total=int(gaps.sum())
    )


def _as_text(table: pa.Table) -> pl.DataFrame:
    """Return values as text, because two files may code the same areas differently."""
    frame = frame_of(table)
    return frame.with_columns(
        pl.col(COUNT_COLUMN).cast(pl.Int64) if name == COUNT_COLUMN else pl.col(name).cast(pl.String)
        for name in frame.columns
    )


@dataclass(frozen=True, slots=True)
class CountTables:
    """Published tables of counts that answer for every margin they contain, as a census does.

    Areas that a finer area determines are given as columns of the table, as in a file of blocks with their county.
    """

    tables: tuple[tuple[str, pl.DataFrame], ...]  # the record type, and columns with their count

    @staticmethod
    def of(*tables: "tuple[str, pl.DataFrame | Mapping[str, Sequence[object]]]") -> "CountTables":
        """Build count tables, each with the record type that it counts."""
        found = []
        for record_type, given in tables:
            frame = given if isinstance(given, pl.DataFrame) else pl.DataFrame(dict(given))
            if COUNT_COLUMN not in frame.columns:
                raise InputError(
                    "a table of counts has no column count",
                    why=f"its columns are {', '.join(frame.columns)}",
                    fix='rename the column of numbers: frame.rename({"P0010001": "count"})',
                )
            found.append((record_type, frame))
        return CountTables(tuple(found))

    def counts(
        self, record_type: str, by: Sequence[str], where: Mapping[str, Sequence[str]] | None = None
    ) -> pa.Table:
        """Return the counts by variables, from the smallest table that has them, without cells of zero."""
        needed = {*by, *(where or {})}
        for kind, frame in sorted(self.tables, key=lambda item: item[1].width):
            if kind == record_type and needed <= {*frame.columns}:
                break
        else:
            raise InputError(
                f"no published table counts {record_type} records by {', '.join(sorted(needed)) or 'nothing'}",
                why="each question is answered from one table",
                fix="give a table that has all these variables",
            )
        for name, values in (where or {}).items():
            frame = frame.filter(pl.col(name).cast(pl.String).is_in([str(value) for value in values]))
        total = pl.col(COUNT_COLUMN).sum().cast(pl.Int64)
        if not by:
            return arrow_of(frame.select(total))
        found = frame.group_by(list(by)).agg(total).filter(pl.col(COUNT_COLUMN) != 0).sort(list(by))
        return arrow_of(found)


# The budget at which a noisy count rounds to the truth with probability $1 - \beta$, so that it behaves as an invariant.
#
# Noise on the integers changes nothing exactly where it is 0. The chance of 0 rises with the budget; at the smallest
# budget where it reaches $1 - \beta$ the count is, for most who read it, as good as published exactly.

BISECTION_DIGITS = 40  # binary digits of the bisection


@dataclass(frozen=True, slots=True, kw_only=True)
class NearInvariant:
    """The smallest budget, rounded up, at which noise leaves counts as they are with probability 1 − β."""

    noise: str
    beta: Fraction
    counts: int  # that are all unchanged together
    budget: Budget  # ε of the geometric law, ρ² of the discrete Gaussian law
    exact: bool  # whether it is the smallest such budget, or an upper bound of it


def geometric(beta: "Fraction | str", *, counts: int = 1, sensitivity: int = 1) -> NearInvariant:
    r"""$\Pr(0) = (1 - a)/(1 + a)$, $a = e^{-\varepsilon/\Delta}$, so $\varepsilon = \Delta \ln((2 - \beta)/\beta)$; exactly.

    For several counts β is shared among them (a union bound).

    >>> print(geometric("1/20").budget)
    3.6636
    """
    share = _share(beta, counts)
    return NearInvariant(
        noise="geometric",
        beta=Fraction(beta),
        counts=counts,
        budget=Budget.log((2 - share) / share) * sensitivity,
        exact=counts == 1,
    )


def gaussian(beta: "Fraction | str", *, counts: int = 1, sensitivity: int = 1) -> NearInvariant:
    r"""$1/\Pr(0) = 1 + 2\sum_k x^{k^2}$ with $x = e^{-1/2\sigma^2}$ and $\rho^2 = \Delta^2/2\sigma^2$.

    The bisection is exact rational arithmetic with a bound of the tail, so the budget is never too small.

    >>> print(gaussian("1/20").budget)  # at σ² = 0.137
    3.6377
    """
    share = _share(beta, counts)
    most = 1 / (1 - share)
    low, high = Fraction(0), Fraction(1)
    for _ in range(BISECTION_DIGITS):
        middle = (low + high) / 2
        low, high = (middle, high) if _sum_above(middle) <= most else (low, middle)
    return NearInvariant(
        noise="discrete Gaussian",
        beta=Fraction(beta),
        counts=counts,
        budget=Budget.log(1 / low) * sensitivity**2,
        exact=False,
    )


def _sum_above(x: Fraction) -> Fraction:
    """Bound the sum over all integers from above: four terms, and a geometric series for the rest."""
    if x >= 1:
        return Fraction(10**9)
    terms = 1 + 2 * (x + x**4 + x**9)
    # k² ≥ 16 + 9 (k − 4) for k ≥ 4
    return terms + 2 * x**16 / (1 - x**9)


def _share(beta: "Fraction | str", counts: int) -> Fraction:
    value = Fraction(beta)
    if not 0 < value < 1 or counts < 1:
        raise InputError(
            f"beta = {value} for {counts} counts",
            why="beta is the chance that some count is changed, between 0 and 1, and there is at least one count",
            fix='give beta="1/20" and counts=1 or more',
        )
    return value / counts
