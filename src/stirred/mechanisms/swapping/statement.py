"""State the promise of a swap at the realised universe, from invariants: sizes and types of strata."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.mechanisms.base import Check
from stirred.mechanisms.swapping.budget.claim import StratumTable, claim
from stirred.mechanisms.swapping.budget.more_types import UP_TO
from stirred.mechanisms.swapping.draw.strata import MANY, Types, texts
from stirred.mechanisms.swapping.numbers import closed_forms
from stirred.mechanisms.swapping.pipeline import verify
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.participation import Where
from stirred.spec import (
    Bound,
    Budget,
    BudgetFunction,
    Custom,
    Evidence,
    Hamming,
    Invariant,
    LargestStratum,
    Margin,
    Multiplicative,
    Multiverse,
    SizeLaw,
    Specification,
)
from stirred.spec.multiverse import plural

if TYPE_CHECKING:
    from stirred.census import Census

COUNTED = 20_000_000  # records in small strata whose margins are counted
SHOWN = 3  # the largest number of held variables listed in the name of their table; more are listed in a note


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """The strata by what the bounds use: one row per distinct shape, and the number of strata that have it."""

    n: NDArray[np.int64]
    hold_types: NDArray[np.int64]
    swap_types: NDArray[np.int64]
    hold_larger: NDArray[np.int64]
    swap_larger: NDArray[np.int64]
    strata: NDArray[np.int64]
    margins: NDArray[np.object_]  # all margins of small strata with three and more types on both sides

    @staticmethod
    def merged(rows: pl.DataFrame) -> "Shapes":
        """Join the shapes of several parts in one table with a row for each distinct shape."""
        many = (pl.col("hold_types") >= MANY) & (pl.col("swap_types") >= MANY)
        if not rows.filter(many & (pl.col("n") > UP_TO)).is_empty():
            # a large stratum decides, and only Theorem B is known for it
            rows = rows.with_columns(margins=pl.lit(""))
        by = [name for name in rows.columns if name != "strata"]
        distinct = rows.group_by(by).agg(pl.col("strata").sum()).sort(by)
        numbers = {
            name: distinct[name].to_numpy().astype(np.int64) for name in distinct.columns if name != "margins"
        }
        return Shapes(**numbers, margins=np.array(distinct["margins"].to_list(), np.object_))

    @property
    def b(self) -> int:
        """The largest stratum that holds two distinct records (the paper's b); 0 if none does."""
        alive = (self.n >= 2) & ((self.hold_types >= 2) | (self.swap_types >= 2))
        return int(self.n[alive].max()) if alive.any() else 0

    @property
    def fingerprint(self) -> str:
        """A digest of the shapes: equal for censuses whose bounds are computed from the same numbers.

        All of them are functions of the invariants, which are published, so the digest reveals nothing new.
        """
        columns = {field.name: getattr(self, field.name).tolist() for field in fields(self)}
        return hashlib.sha256(json.dumps(columns, sort_keys=True).encode()).hexdigest()

    @property
    def differing(self) -> int:
        """The largest stratum in which two data sets of one universe can differ: two hold and two swap types."""
        alive = (self.hold_types >= 2) & (self.swap_types >= 2)
        return int(self.n[alive].max()) if alive.any() else 0


def shapes(frame: Frame) -> Shapes:
    """Count the shapes of all strata; with linked members, records are assumed to differ (their persons usually do)."""
    if frame.known is not None:
        return frame.known
    sizes = frame.strata.sizes.astype(np.int64)
    swap = frame.strata.types(frame.of(frame.roles.moving))
    if frame.roles.members:
        hold = Types(types=np.where(sizes >= 2, MANY, 1).astype(np.uint8), first_counts=frame.strata.sizes)
    else:
        hold = frame.strata.types(frame.of(frame.roles.hold))
    # with more than two types margins are not used, so they do not distinguish shapes
    rows = pl.DataFrame(
        {
            "n": sizes,
            "hold_types": hold.types.astype(np.int64),
            "swap_types": swap.types.astype(np.int64),
            "hold_larger": np.where(hold.types == 2, _larger(hold, sizes), 0),
            "swap_larger": np.where(swap.types == 2, _larger(swap, sizes), 0),
            "margins": _margins(frame, sizes, (hold.types >= MANY) & (swap.types >= MANY)),
        }
    )
    return Shapes.merged(rows.with_columns(strata=pl.lit(1, pl.Int64)))


def _margins(frame: Frame, sizes: NDArray[np.int64], many: NDArray[np.bool_]) -> pl.Series:
    """All margins of strata with three and more types, if all of these are small; otherwise they have no effect."""
    found = np.full(sizes.size, "", np.object_)
    if many.any() and sizes[many].max() <= UP_TO and sizes[many].sum() <= COUNTED:
        swap = texts(frame.strata, frame.of(frame.roles.moving), many)
        hold = (
            ["*"] * len(swap)
            if frame.roles.members
            else texts(frame.strata, frame.of(frame.roles.hold), many)
        )
        found[many] = [f"{one}/{other}" for one, other in zip(hold, swap, strict=True)]
    return pl.Series(found.tolist(), dtype=pl.String)


def _larger(types: Types, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    first = types.first_counts.astype(np.int64)
    larger: NDArray[np.int64] = np.maximum(first, sizes - first)
    return larger


def specification(
    frame: Frame,
    census: "Census",
    bounding: Callable[[StratumTable], tuple[Bound, ...]],
    *,
    law: SizeLaw | None,
    depends: str,
) -> Specification:
    """The promise in full: invariants, unit, divergence, budget with all bounds, and what is never touched.

    ``law`` is the budget of other universes; ``depends`` says in words what it depends on where no law is known.
    """
    roles = frame.roles
    found = shapes(frame)
    all_bounds = bounding(
        StratumTable.columns(
            found.n,
            found.hold_types,
            found.swap_types,
            found.hold_larger,
            found.swap_larger,
            margins=found.margins,
        )
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
        notes=(*_held(frame), *_left_out(frame), *_remarks(found, claimed.budget)),
        varies=_varies(frame, found, law, depends),
    )


def _varies(frame: Frame, found: Shapes, law: SizeLaw | None, depends: str) -> BudgetFunction:
    """How the budget differs by universe: by a law of b where there is one, else in words."""
    b = found.differing
    if law is None:
        return BudgetFunction(words=depends, universe=f"the realised universe, b = {b:,}", b=b)
    return BudgetFunction(
        law=law,
        statistic=_statistic(frame),
        universe=f"the realised universe, b = {b:,}",
        b=b,
        realised=found.fingerprint,
    )


def _statistic(frame: Frame) -> LargestStratum:
    """The statistic b of this swap; with linked members every two records are assumed to differ, as in ``shapes``."""
    roles, only = frame.roles, frame.only
    without = [stay.where for stay in frame.stays]
    if only is not None and only.levels is None:
        without.append({only.column: only.left_out})
    return LargestStratum(
        roles.record_type,
        match=roles.match,
        hold=(*roles.hold, roles.identifier) if roles.members else roles.hold,
        swap=roles.moving,
        where=None if only is None or only.levels is None else {only.column: only.levels},
        without=without,
    )


def invariants(frame: Frame, census: "Census") -> list[Invariant]:
    """All invariants: match × swap, all held variables, who lives together, and the records that take no part."""
    roles = frame.roles
    subject, among = plural(roles.record_type), "" if frame.only is None else frame.only.among
    place = [*(name for name in roles.spine if name in roles.moving)]
    place += [name for name in roles.moving if name not in place]
    shown = roles.hold if len(roles.hold) <= SHOWN else (f"all {len(roles.hold)} held variables",)
    found: list[Invariant] = [
        *_tables(frame, (*roles.match, *roles.moving), f"{subject} by {' × '.join((*roles.match, *place))}"),
        *_tables(
            frame,
            roles.held,
            f"{subject} by {' × '.join((*roles.match, *shown))}" if roles.held else "",
        ),
        *(
            margin
            for stay in frame.stays
            for margin in _tables(frame, roles.released, stay.words(subject), where=stay.where)
        ),
    ]
    # variables that decide who takes part must be in the tables that determine an invariant
    telling = () if frame.only is None else (frame.only.column,)
    for record_type, names in roles.members:
        own = Margin(record_type, (census.schema.record(record_type).household, *names))
        people = plural(record_type)
        found.append(
            Custom(
                name=f"{people} within {subject}{among}",
                determined_by=(own, Margin(roles.record_type, (roles.identifier, *telling, *roles.held))),
                description=f"the {people} of every {roles.record_type}{among} together with all that is held but "
                "without its place",
            )
        )
        if frame.stays:
            found.append(
                Custom(
                    name=f"{people} of {subject} that take no part with their places{among}",
                    determined_by=(
                        own,
                        *(
                            margin
                            for stay in frame.stays
                            for margin in _tables(
                                frame, (roles.identifier, *telling, *roles.released), "", where=stay.where
                            )
                        ),
                    ),
                )
            )
    return found


def _tables(
    frame: Frame, by: tuple[str, ...], label: str, *, where: Where | None = None
) -> tuple[Margin, ...]:
    """A table of the records that are released, as invariants."""
    record_type = frame.roles.record_type
    if frame.only is None:
        return (Margin(record_type, by, where=where, label=label),)
    return frame.only.margins(record_type, by, where=where or {}, label=label)


def _held(frame: Frame) -> tuple[str, ...]:
    """The list of held variables, if the table's name only gives their number."""
    if len(frame.roles.hold) <= SHOWN:
        return ()
    return (f"held variables: {', '.join(sorted(frame.roles.hold))}",)


def _left_out(frame: Frame) -> tuple[str, ...]:
    return () if frame.only is None else (frame.only.fate(frame.roles.record_type),)


def _remarks(found: Shapes, budget: Budget) -> tuple[str, ...]:
    if found.differing:
        return ()
    return (
        "every universe is a singleton: the invariants alone determine the data, so ε = "
        f"{budget} protects nothing and nothing is left to protect",
    )


def notes(frame: Frame, rate: Fraction) -> tuple[str, ...]:
    """Warnings for the release: strata that are rarely swapped."""
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
    """Verify the invariants on swapped columns of which only tables are released."""
    found = []
    for margin, was in zip(margins, before, strict=True):
        now = Fingerprint()
        for start in range(0, frame.rows, 1 << 20):
            now += Fingerprint.of(margin.scattered(columns, slice(start, min(start + (1 << 20), frame.rows))))
        found.append(margin.check(was, now))
    return verify.all_kept(found)
