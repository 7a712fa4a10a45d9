"""What a swap promises at the realised universe, from numbers that are invariants: sizes and types of strata."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.mechanisms.base import Check
from stirred.mechanisms.swapping import closed_forms, verify
from stirred.mechanisms.swapping.kernel_strata import MANY, Types
from stirred.mechanisms.swapping.release_columns import Column
from stirred.mechanisms.swapping.release_frame import Frame
from stirred.mechanisms.swapping.strata import Strata, claim
from stirred.mechanisms.swapping.verify import Fingerprint
from stirred.spec import (
    Bound,
    Budget,
    BudgetFunction,
    Custom,
    Evidence,
    Hamming,
    Invariant,
    Margin,
    Multiplicative,
    Multiverse,
    Specification,
)
from stirred.spec.multiverse import plural

if TYPE_CHECKING:
    from stirred.census import Census

SHOWN = 3  # held variables that the name of their table lists; more of them stand in a note


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """The strata as far as a bound can tell them apart: one row per distinct shape, and how many strata have it."""

    n: NDArray[np.int64]
    hold_types: NDArray[np.int64]
    swap_types: NDArray[np.int64]
    hold_larger: NDArray[np.int64]
    swap_larger: NDArray[np.int64]
    strata: NDArray[np.int64]

    @staticmethod
    def merged(rows: pl.DataFrame) -> "Shapes":
        """Shapes met in several places, in one table with a row for each distinct one."""
        by = [name for name in rows.columns if name != "strata"]
        distinct = rows.group_by(by).agg(pl.col("strata").sum()).sort(by)
        return Shapes(**{name: distinct[name].to_numpy().astype(np.int64) for name in distinct.columns})

    @property
    def b(self) -> int:
        """The largest stratum that holds two distinct records (the paper's b); 0 if none does."""
        alive = (self.n >= 2) & ((self.hold_types >= 2) | (self.swap_types >= 2))
        return int(self.n[alive].max()) if alive.any() else 0

    @property
    def differing(self) -> int:
        """The largest stratum in which two data sets of one universe can differ: two hold and two swap types."""
        alive = (self.hold_types >= 2) & (self.swap_types >= 2)
        return int(self.n[alive].max()) if alive.any() else 0


def shapes(frame: Frame) -> Shapes:
    """Meet every stratum once; with members along, records are taken to differ (their persons almost surely do)."""
    if frame.known is not None:
        return frame.known
    sizes = frame.strata.sizes.astype(np.int64)
    swap = frame.strata.types(frame.of(frame.roles.moving))
    if frame.roles.members:
        hold = Types(types=np.where(sizes >= 2, MANY, 1).astype(np.uint8), first_counts=frame.strata.sizes)
    else:
        hold = frame.strata.types(frame.of(frame.roles.hold))
    # beyond two types margins play no part, so they do not make shapes differ
    rows = pl.DataFrame(
        {
            "n": sizes,
            "hold_types": hold.types.astype(np.int64),
            "swap_types": swap.types.astype(np.int64),
            "hold_larger": np.where(hold.types == 2, _larger(hold, sizes), 0),
            "swap_larger": np.where(swap.types == 2, _larger(swap, sizes), 0),
        }
    )
    return Shapes.merged(rows.with_columns(strata=pl.lit(1, pl.Int64)))


def _larger(types: Types, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    first = types.first_counts.astype(np.int64)
    larger: NDArray[np.int64] = np.maximum(first, sizes - first)
    return larger


def specification(
    frame: Frame, census: "Census", bounding: Callable[[Strata], tuple[Bound, ...]]
) -> Specification:
    """The promise in full: invariants, unit, divergence, budget with all bounds, and what is never touched."""
    roles = frame.roles
    found = shapes(frame)
    all_bounds = bounding(
        Strata.columns(found.n, found.hold_types, found.swap_types, found.hold_larger, found.swap_larger)
    )
    proved = any(bound.status == "proved" for bound in all_bounds)
    claimed = claim(all_bounds) if proved else all_bounds[0]
    singles = int(found.strata[found.n == 1].sum())
    words = [stay.told(roles.record_type) for stay in frame.stays if stay.records]
    if singles:
        words.append(
            "1 record is alone in its stratum and published as it is"
            if singles == 1
            else f"{singles:,} records are alone in their stratum and published as they are"
        )
    return Specification(
        domain=census.domain,
        multiverse=Multiverse(frozenset(invariants(frame, census))),
        input_premetric=Hamming(roles.record_type),
        output_premetric=Multiplicative(),
        budget=claimed.budget,
        evidence=Evidence(status=claimed.status, source=claimed.source),
        bounds=all_bounds,
        untouched=tuple(words),
        notes=(*_held(frame), *_remarks(found, claimed.budget)),
        varies=BudgetFunction(words=f"a function of b, here {found.b:,}, which the invariants determine"),
    )


def invariants(frame: Frame, census: "Census") -> list[Invariant]:
    """All that is exact: match × swap, all that is held, who lives together, and the records that take no part."""
    roles = frame.roles
    subject, among = plural(roles.record_type), ""
    if frame.only:
        ((column, levels),) = frame.only.items()
        among = f" (only {column} = {' or '.join(levels)})"
    place = [*(name for name in roles.spine if name in roles.moving)]
    place += [name for name in roles.moving if name not in place]
    shown = roles.hold if len(roles.hold) <= SHOWN else (f"all {len(roles.hold)} held variables",)
    found: list[Invariant] = [
        Margin(
            roles.record_type,
            (*roles.match, *roles.moving),
            where=frame.only,
            label=f"{subject} by {' × '.join((*roles.match, *place))}{among}",
        ),
        Margin(
            roles.record_type,
            roles.held,
            where=frame.only,
            label=f"{subject} by {' × '.join((*roles.match, *shown))}{among}" if roles.held else "",
        ),
        *(
            Margin(roles.record_type, roles.released, where=stay.where, label=stay.words(subject))
            for stay in frame.stays
        ),
    ]
    for record_type, names in roles.members:
        own = Margin(record_type, (census.schema.record(record_type).household, *names))
        people = plural(record_type)
        found.append(
            Custom(
                name=f"{people} within {subject}",
                determined_by=(own, Margin(roles.record_type, (roles.identifier, *roles.held))),
                description=f"the {people} of every {roles.record_type} together with all that is held but without "
                "its place",
            )
        )
        if frame.stays:
            found.append(
                Custom(
                    name=f"{people} of {subject} that take no part with their places",
                    determined_by=(own, Margin(roles.record_type, (roles.identifier, *roles.released))),
                )
            )
    return found


def _held(frame: Frame) -> tuple[str, ...]:
    """The whole list of held variables, where the table's name only counts them."""
    if len(frame.roles.hold) <= SHOWN:
        return ()
    return (f"held variables: {', '.join(sorted(frame.roles.hold))}",)


def _remarks(found: Shapes, budget: Budget) -> tuple[str, ...]:
    if found.differing:
        return ()
    return (
        "every universe is a singleton: the invariants alone determine the data, so ε = "
        f"{budget} protects nothing and nothing is left to protect",
    )


def notes(frame: Frame, rate: Fraction) -> tuple[str, ...]:
    """Warnings for the release: strata that hardly swap."""
    found = shapes(frame)
    sizes, places = np.unique(found.n, return_inverse=True)
    counts = np.zeros(sizes.size, np.int64)
    np.add.at(counts, places.ravel(), found.strata)
    weak = closed_forms.weak_strata(sizes, rate, counts=counts)
    return () if weak is None else (str(weak),)


def checked(
    frame: Frame,
    columns: dict[str, Column],
    margins: Sequence[verify.Margin],
    before: Sequence[Fingerprint],
) -> tuple[Check, ...]:
    """The invariants held against swapped columns of which only tables are released."""
    found = []
    for margin, was in zip(margins, before, strict=True):
        now = Fingerprint()
        for start in range(0, frame.rows, 1 << 20):
            now += Fingerprint.of(margin.scattered(columns, slice(start, min(start + (1 << 20), frame.rows))))
        found.append(margin.check(was, now))
    return verify.all_kept(found)
