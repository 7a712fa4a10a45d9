"""State the promise of tables with noise: of a census, and through an earlier release."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.languages import Phrase, unit
from stirred.spec import (
    AtLeast,
    Budget,
    Evidence,
    Hamming,
    Margin,
    Multiverse,
    NormalizedRenyi,
    Specification,
)
from stirred.spec.algebra.chaining import chain

if TYPE_CHECKING:
    from stirred.census import Census


def state_noise(
    census: "Census", record: str, tables: Sequence[Sequence[str]], rho_squared: Fraction
) -> Specification:
    """Return the zCDP promise for one changed record, given which areas have records (Theorem 1)."""
    spine = census.schema.spine
    finest = {max((name for name in by if name in spine), key=spine.index, default="") for by in tables} - {
        ""
    }
    return Specification(
        domain=census.domain,
        multiverse=Multiverse.of(
            *(occupied_areas(record, level) for level in sorted(finest, key=spine.index))
        ),
        input_premetric=Hamming(record, link="free"),
        output_premetric=NormalizedRenyi(),
        budget=Budget.sqrt(rho_squared),
        evidence=Evidence(status="proved", source=Phrase("gaussian_tables.source")),
        measures=tuple(Margin(record, tuple(by)) for by in tables),
        notes=(Phrase("gaussian_tables.note.cells"), *census.notes),
    )


def occupied_areas(record: str, level: str) -> AtLeast:
    """Return the invariant that says which areas have records: only these have cells."""
    words = Phrase("gaussian_tables.areas", level=level, a_record=unit(record, "a_record"))
    return AtLeast(Margin(record, (level,)), 1, words)


def carry_promise(first: Specification, own: Specification, stability: Fraction) -> Specification | None:
    """Return the noise's promise through a stable first step, or None where no rule gives one."""
    found = chain(first, own, stability=stability)
    if found.also is not None:
        return found.also
    return found.specification if found.sharper else None


def annotate_promise(first: Specification, second: Specification | None, own: Specification) -> Specification:
    """Return the first step's promise, which the chain keeps, with a note on the bound of the noise."""
    if second is None:
        note = Phrase("gaussian_tables.note.after", rho_squared=own.rho_squared.exact)
    else:
        note = Phrase("gaussian_tables.note.both", rho_squared=second.rho_squared.exact)
    # what leaves of the first step's output are the tables with noise
    return replace(
        first, notes=(*first.notes, note), released=own.views if own.domain == first.domain else ()
    )
