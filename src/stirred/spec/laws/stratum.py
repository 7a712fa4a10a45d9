"""The statistic b that the budget of a swap is a function of: the size of the largest stratum in which anything can move."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

from stirred.languages import Phrase, unit
from stirred.spec.invariants.margins import Margin, Restriction


@dataclass(frozen=True, slots=True, init=False)
class LargestStratum:
    r"""b(U): the most records in a stratum with two different hold values and two different swap values; 0 without one.

    A stratum is a cell of ``match`` among the records of ``where`` that lie in none of ``without`` (records that take
    no part). In every other stratum the invariants fix all records, so a universe with b = 0 is one data set.

    >>> b = LargestStratum("household", match=("size",), hold=("tenure",), swap=("block",))
    >>> b.of([{"size": "1", "tenure": t, "block": s} for t, s in ("oa", "oa", "rb")])
    3
    >>> b.of([{"size": "1", "tenure": t, "block": "a"} for t in "oor"])
    0
    """

    record_type: str
    match: tuple[str, ...]
    hold: tuple[str, ...]
    swap: tuple[str, ...]
    where: Restriction | None
    without: tuple[Restriction, ...]

    def __init__(
        self,
        record_type: str,
        match: Iterable[str] = (),
        hold: Iterable[str] = (),
        swap: Iterable[str] = (),
        where: "Restriction | Mapping[str, Iterable[str]] | None" = None,
        without: "Iterable[Restriction | Mapping[str, Iterable[str]]]" = (),
    ) -> None:
        left_out = {Restriction.of(restriction) for restriction in without}
        object.__setattr__(self, "record_type", record_type)
        # the order of variables plays no part, so that equal statistics are equal objects
        object.__setattr__(self, "match", tuple(sorted({*match})))
        object.__setattr__(self, "hold", tuple(sorted({*hold})))
        object.__setattr__(self, "swap", tuple(sorted({*swap})))
        object.__setattr__(self, "where", Restriction.of(where) if where else None)
        object.__setattr__(self, "without", tuple(sorted(left_out, key=lambda r: r.conditions)))

    def of(self, records: Iterable[Mapping[str, str]]) -> int:
        """Return the statistic of a small data set, given record by record."""
        return self.evaluate_counts((record, 1) for record in records)

    def evaluate_counts(self, records: Iterable[tuple[Mapping[str, str], int]]) -> int:
        """Return the statistic of a data set that is given as distinct records with their numbers."""
        sizes: dict[tuple[str, ...], int] = {}
        held: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        swapped: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for record, number in records:
            if not self._takes_part(record):
                continue
            stratum = tuple(record[name] for name in self.match)
            sizes[stratum] = sizes.get(stratum, 0) + number
            held.setdefault(stratum, set()).add(tuple(record[name] for name in self.hold))
            swapped.setdefault(stratum, set()).add(tuple(record[name] for name in self.swap))
        return max(
            (n for stratum, n in sizes.items() if len(held[stratum]) >= 2 and len(swapped[stratum]) >= 2),
            default=0,
        )

    def _takes_part(self, record: Mapping[str, str]) -> bool:
        def lies_in(restriction: Restriction) -> bool:
            return all(record.get(name) in values for name, values in restriction.conditions)

        if self.where is not None and not lies_in(self.where):
            return False
        return not any(lies_in(restriction) for restriction in self.without)

    def needs(self) -> tuple[Margin, ...]:
        """Return the tables that determine b: match × hold and match × swap, also of records that take no part.

        >>> b = LargestStratum("household", hold=("tenure",), swap=("block",), without=[{"kind": ["vacant"]}])
        >>> [str(margin) for margin in b.needs()]
        ['households by tenure', 'households by block', 'households by tenure where kind = vacant', \
'households by block where kind = vacant']
        """
        if not (self.hold and self.swap):
            return ()  # then nothing can move, and b is 0
        taken = [self.where] if self.where is not None else []
        return tuple(
            Margin(self.record_type, (*self.match, *shown), where)
            for number in range(len(self.without) + 1)
            for chosen in combinations(self.without, number)  # inclusion and exclusion
            if (where := _intersect([*taken, *chosen])) is not None
            for shown in (self.hold, self.swap)
        )

    def never_above(self, other: "LargestStratum") -> bool:
        """Return whether b is at most the other's b in every data set, because its strata are finer.

        >>> fine = LargestStratum("household", ("size",), ("tenure",), ("block",))
        >>> coarse = LargestStratum("household", (), ("size", "tenure"), ("block",))
        >>> fine.never_above(coarse), coarse.never_above(fine)
        (True, False)
        """
        same = (self.record_type, self.where, self.without) == (other.record_type, other.where, other.without)
        return (
            same
            and {*self.match} >= {*other.match}
            and {*self.hold} <= {*other.hold}
            and {*self.swap} <= {*other.swap}
        )

    def words(self) -> str:
        """Return in words what b counts.

        >>> print(LargestStratum("household", ("size",), ("tenure",), ("block",)))
        the number of households in the largest stratum (equal size) whose records differ in held and in swapped variables
        """
        match = " × ".join(self.match)
        told = [Phrase("law.equal", variables=match) if match else Phrase("law.all_records")]
        if self.where is not None:
            told.append(Phrase("invariant.only", condition=self.where.words()))
        told += [Phrase("invariant.without", condition=restriction.words()) for restriction in self.without]
        stratum = reduce(lambda one, two: Phrase("lists.semicolon_pair", first=one, second=two), told)
        return Phrase("law.stratum", ones=unit(self.record_type, "ones"), stratum=stratum)

    def __str__(self) -> str:
        return self.words()


def _intersect(restrictions: Iterable[Restriction]) -> dict[str, tuple[str, ...]] | None:
    """Return the joint conditions of all restrictions, or None where no record can meet them."""
    found: dict[str, tuple[str, ...]] = {}
    for restriction in restrictions:
        for name, values in restriction.conditions:
            found[name] = tuple(value for value in values if value in found.get(name, values))
    return found if all(found.values()) else None
