"""The constants between units of protection: persons, households, changed records, added ones, imputed copies.

Every rule is a bound d_self ≤ c·d_to between two data sets of one universe, so a budget under d_self becomes c times
that budget under d_to.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

from stirred.errors import IncompatibleError
from stirred.spec.domain import HOUSEHOLD, HOUSEHOLDS, PERSON, QUARTERS, UNIT, Domain
from stirred.spec.invariants.margins import Margin, pluralize
from stirred.spec.multiverse import Multiverse

Link = Literal["kept", "free"]


class CountsRecords(Protocol):
    """The fields that the rules read of a distance that counts records of one type."""

    @property
    def record_type(self) -> str: ...
    @property
    def link(self) -> Link: ...
    @property
    def copies(self) -> int: ...
    @property
    def keeps_number(
        self,
    ) -> bool: ...  # it counts changed records, and is infinite between files of other sizes


@dataclass(frozen=True, slots=True)
class Constant:
    """A factor with d_self ≤ factor · d_other in every universe, and the reason; budgets are multiplied by it.

    ``along_paths``: the step goes along a path of neighbours, so it holds only for output premetrics that have group
    privacy.
    """

    factor: Fraction
    because: str = ""
    along_paths: bool = False

    def __mul__(self, other: "Constant") -> "Constant":
        because = "; ".join(filter(None, (self.because, other.because)))
        return Constant(self.factor * other.factor, because, self.along_paths or other.along_paths)


ONE = Constant(Fraction(1))
FIXED_HOMES = (
    "the number of homes is the same in all data sets of a universe (without that no constant holds)"
)


def find_record_constant(
    source: CountsRecords,
    to: CountsRecords,
    domain: Domain,
    multiverse: Multiverse,
    *,
    neighbours_only: bool = False,
) -> Constant:
    """Return the constant between two record premetrics; ``neighbours_only``: at distance 1 of the other.

    >>> from stirred.spec.premetrics import Hamming
    >>> domain = Domain(name="toy")
    >>> homes = Multiverse.of(Margin("household"))
    >>> find_record_constant(Hamming("household"), Hamming("person"), domain, homes).factor
    Fraction(1, 1)
    >>> find_record_constant(Hamming("household"), Hamming("person", link="free"), domain, homes).factor
    Fraction(2, 1)
    """
    same_unit = source.record_type == to.record_type or {source.record_type, to.record_type} <= HOUSEHOLDS
    if same_unit:
        moved = _moves(source, to, domain)
        found = _kinds(source, to, domain, multiverse) * (_links(source, to) if moved is None else moved)
    elif source.record_type in HOUSEHOLDS and to.record_type == PERSON:
        found = _household_to_person(source, to, domain, multiverse, neighbours_only)
    elif source.record_type == PERSON and to.record_type in HOUSEHOLDS:
        found = _person_to_household(source, to, domain, multiverse)
    else:
        raise IncompatibleError(
            f"cannot restate {source} as {to}",
            why=f"no rule bounds how many {pluralize(source.record_type)} change with one {to.record_type}",
            fix="persons and households can be converted into each other",
        )
    return found * _copies(source, to)


def find_needed_totals(
    source: CountsRecords, to: CountsRecords, domain: Domain, multiverse: Multiverse
) -> tuple[Margin, ...]:
    """Return the totals that the universes must fix, so that the first distance is finite where the second is.

    Only a distance that counts changed records is ever infinite. The other one may reach data sets with another number
    of records: a person who founds a household of its own is two changes of persons, and one household more.

    >>> from stirred.spec.premetrics import Hamming, SymmetricDifference
    >>> toy, none = Domain(name="toy"), Multiverse.none()
    >>> [str(total) for total in find_needed_totals(Hamming("household"), Hamming("person"), toy, none)]
    ['number of households']
    >>> find_needed_totals(SymmetricDifference("household"), Hamming("person"), toy, none)
    ()
    """
    same_unit = source.record_type == to.record_type or {source.record_type, to.record_type} <= HOUSEHOLDS
    if not source.keeps_number or (same_unit and to.keeps_number):
        return ()
    totals = tuple(Margin(kind) for kind in list_counted_types(source.record_type, domain))
    if totals[0] != Margin(UNIT) or {*(domain.levels(UNIT, "occupancy") or ())} != {"occupied", "vacant"}:
        return totals
    # a household lives in each occupied unit: where households and vacant units are fixed, so are housing units
    split = (Margin(HOUSEHOLD), Margin(UNIT, (), {"occupancy": ["vacant"]}))
    known = domain.has(HOUSEHOLD) and multiverse.refines(Multiverse.of(*split), domain)
    return (*split, *totals[1:]) if known else totals


def list_counted_types(record_type: str, domain: Domain) -> tuple[str, ...]:
    """Return the record types whose records are units of a distance that is named by one of them.

    A household distance counts homes: housing units where the domain lists them (each household lives in one, and vacant
    ones count), else households; and facilities, which are homes too.
    """
    if record_type not in HOUSEHOLDS:
        return (record_type,)
    home = UNIT if domain.has(UNIT) else record_type
    return (home, QUARTERS) if domain.has(QUARTERS) else (home,)


def _copies(source: CountsRecords, to: CountsRecords) -> Constant:
    if to.copies == source.copies or to.copies == 1:
        return ONE
    return Constant(
        Fraction(to.copies),
        f"one contributor may have been imputed into {to.copies} records, so the budget is {to.copies} times as large",
    )


def _links(source: CountsRecords, to: CountsRecords) -> Constant:
    if source.link == "kept" and to.link == "free":
        return Constant(
            Fraction(2), "a person who moves between households counts twice under the first distance"
        )
    return ONE


def _moves(source: CountsRecords, to: CountsRecords, domain: Domain) -> Constant | None:
    """Return factor 2 where a move is two changes here, but one removal and one addition there; else None.

    In a file of persons alone nobody moves between households.
    """
    linked = {kind.name for kind in domain.record_types} != {PERSON}
    if source.record_type != PERSON or source.link == "free" or not linked:
        return None
    if not source.keeps_number or to.keeps_number:
        return None
    return Constant(Fraction(2), "a person who moves is two changes, but one record removed and one added")


def _kinds(source: CountsRecords, to: CountsRecords, domain: Domain, multiverse: Multiverse) -> Constant:
    if source.keeps_number == to.keeps_number:
        return ONE
    if to.keeps_number:
        return Constant(
            Fraction(2),
            "changing one record is removing one and adding one: Hamming 1 = symmetric difference 2",
        )
    _require_fixed_number(source, to, domain, multiverse)
    return Constant(Fraction(1, 2), "the number of records is invariant: Hamming 1 = symmetric difference 2")


def _require_fixed_number(
    source: CountsRecords, to: CountsRecords, domain: Domain, multiverse: Multiverse
) -> None:
    open_ones = [
        total
        for total in find_needed_totals(source, to, domain, multiverse)
        if not multiverse.refines(Multiverse.of(total), domain)
    ]
    if open_ones:
        kinds = " and ".join(pluralize(total.record_type) for total in open_ones)
        given = ", ".join(f'Margin("{total.record_type}")' for total in open_ones)
        if len(open_ones) > 1:
            given = f"Multiverse.of({given})"
        raise IncompatibleError(
            f"cannot restate {source} as {to}",
            why=f"{source} is infinite between data sets with different numbers of {kinds}, {to} is not, "
            "and no invariant fixes that number",
            fix=f"spec.given({given}) first, if that number is published exactly",
        )


def _household_to_person(
    source: CountsRecords, to: CountsRecords, domain: Domain, multiverse: Multiverse, neighbours_only: bool
) -> Constant:
    if not to.keeps_number:
        # one person more or less alters one household: its old record goes, its new one comes
        step = Constant(Fraction(2), "a person added or removed replaces one household record by another")
        if not source.keeps_number:
            return step
        _require_fixed_number(source, to, domain, multiverse)
        return step * Constant(Fraction(1, 2), "the number of households is invariant")
    if to.link == "free":
        step = Constant(
            Fraction(2), "household to person with constant 2: a person who moves alters two households"
        )
    else:
        step = Constant(
            Fraction(1),
            "household to person with constant 1: a person's change leaves the household link alone, "
            "so it alters one household (the paper passes over this; with moves it would be 2)",
        )
    if not source.keeps_number:
        return step * Constant(Fraction(2), "Hamming 1 = symmetric difference 2")
    if neighbours_only and to.link == "kept":
        return step  # one person changes inside its household, which is there before and after
    _require_fixed_number(source, to, domain, multiverse)
    return step * Constant(Fraction(1), FIXED_HOMES)


def _person_to_household(
    source: CountsRecords, to: CountsRecords, domain: Domain, multiverse: Multiverse
) -> Constant:
    largest = domain.largest_household
    if largest is None:
        raise IncompatibleError(
            f"cannot restate {source} as {to}",
            why="the domain does not say how large a household may be",
            fix="Domain(largest_household=99_999)",
        )
    words = f"one household holds up to {largest:,} persons"
    if not source.keeps_number:
        factor = 2 * largest if to.keeps_number else largest
        return Constant(Fraction(factor), words)
    _require_fixed_number(source, to, domain, multiverse)
    if to.keeps_number or source.link == "kept":
        return Constant(Fraction(largest), words)
    return Constant(Fraction(largest, 2), words + ", and adding or removing a household is half a change")
