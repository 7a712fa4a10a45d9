"""Define input premetrics: the distance of data sets, its protection unit, and the constants between units."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Protocol

from stirred.errors import IncompatibleError, SpecificationError, require_kind
from stirred.spec.domain import HOUSEHOLD, HOUSEHOLDS, PERSON, QUARTERS, UNIT, Domain
from stirred.spec.invariants import Custom, Invariant, Margin, pluralize
from stirred.spec.multiverse import Multiverse
from stirred.spec.refinement import refines
from stirred.spec.verdict import Answer, Derivation, Verdict

# The constants between units of protection: persons, households, changed records, added ones, imputed copies.
#
# Every rule is a bound d_self ≤ c·d_to between two data sets of one universe, so a budget under d_self becomes c times
# that budget under d_to.

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

    >>> from stirred.spec.input_premetrics import Hamming
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

    >>> from stirred.spec.input_premetrics import Hamming, SymmetricDifference
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


# Input premetrics: the distance of data sets, and with it the unit that is protected.
#
# Distances are taken on the joint file: a person's record carries its household's variables, and a unit that differs
# without any person differing (a vacant unit, an empty facility) counts as one record. Otherwise two censuses that
# differ only in tenure or vacancy would be at person distance 0, and no constant would relate persons and households.


class InputPremetric:
    """A distance of data sets whose unit is what differs at distance 1; subclass it (frozen) for one of your own."""

    __slots__ = ()

    whole: ClassVar[bool] = False  # every distance is 0, 1, 2, … or ∞, which (ε, δ) needs
    neighbours_only: ClassVar[bool] = False  # every distance is 0, 1 or ∞

    @property
    def unrestricted(self) -> "InputPremetric":
        """Return the premetric without a restriction to neighbours."""
        return self

    @property
    def unit(self) -> str:
        raise NotImplementedError

    @property
    def smallest_distance(self) -> str:
        """Return in words what differs at distance 1."""
        return f"one {self.unit}"

    def derive_multiverse(self) -> Multiverse | None:
        """Return the invariants that data sets share exactly where their distance is finite, or None if unstated."""
        return None

    def join(self, other: "InputPremetric") -> "InputPremetric":
        """Return the premetric in which specifications under both are accounted together."""
        if self == other:
            return self
        if other.neighbours_only or isinstance(other, Exchanges):
            return other.join(self)
        raise IncompatibleError(
            "cannot compose these specifications",
            why=f"no rule relates {self} and {other}",
            fix="state both under one input premetric first: spec.per(unit)",
        )

    def constant(self, to: "InputPremetric", domain: Domain, multiverse: Multiverse) -> Constant:
        """Return the smallest known c with d_self ≤ c·d_to in every universe; raise where none is known."""
        if self == to:
            return Constant(Fraction(1))
        if to.neighbours_only:  # neighbours are at distance 1, and the rest is infinitely far apart
            return self.constant(to.unrestricted, domain, multiverse)
        if isinstance(to, Exchanges):
            return self.constant(to.hamming, domain, multiverse) * TWO_RECORDS
        raise IncompatibleError(
            f"cannot restate {self} as {to}",
            why="no rule relates the two",
            fix="write constant() in your input premetric, or state the specification under the other one",
        )


@dataclass(frozen=True, slots=True)
class RecordPremetric(InputPremetric):
    """A distance that counts records of one type.

    ``link`` matters for persons only. "kept": a person's change touches one household, and a move from one household
    to another counts as two changes. "free": a move is one change, and touches two households. ``copies`` > 1 counts
    contributors before imputation, each copied into at most that many records.
    """

    record_type: str
    link: Link = "kept"
    copies: int = 1
    symbol: ClassVar[str] = "d"
    whole: ClassVar[bool] = True
    keeps_number: ClassVar[bool] = (
        False  # data sets with different numbers of records are infinitely far apart
    )

    def __post_init__(self) -> None:
        require_kind(
            "the unit",
            self.record_type,
            str,
            wanted="a record type",
            fix=f'{type(self).__name__}("household")',
            error=SpecificationError,
        )
        if self.copies < 1:
            raise SpecificationError(
                f"copies={self.copies} is too small",
                why="every contributor has at least one record",
                fix="give copies=1 or more",
            )
        if self.link not in ("kept", "free"):
            raise SpecificationError(
                f"unknown link {self.link!r}",
                why="a person either stays in one household or may move to another",
                fix='give link="kept" or link="free"',
            )
        if self.record_type != PERSON:
            object.__setattr__(self, "link", "kept")

    @property
    def unit(self) -> str:
        return self.record_type

    @property
    def smallest_distance(self) -> str:
        whose = f" with up to {self.copies} imputed copies" if self.copies > 1 else ""
        return f"one {self.record_type}{whose}: {self.change}"

    @property
    def change(self) -> str:
        raise NotImplementedError

    def join(self, other: InputPremetric) -> InputPremetric:
        if not isinstance(other, RecordPremetric):
            return InputPremetric.join(self, other)
        units = {self.record_type, other.record_type}
        if (
            len(units) > 1
            and not (PERSON in units and units <= HOUSEHOLDS | {PERSON})
            and not units <= HOUSEHOLDS
        ):
            return InputPremetric.join(self, other)
        unit = PERSON if PERSON in units else min(units)
        people = [p for p in (self, other) if p.record_type == PERSON]
        link: Link = "kept" if not people or any(p.link == "kept" for p in people) else "free"
        kind = Hamming if Hamming in (type(self), type(other)) else type(self)
        return kind(unit, link=link, copies=max(self.copies, other.copies))

    def constant(self, to: InputPremetric, domain: Domain, multiverse: Multiverse) -> Constant:
        near = to.unrestricted
        if not isinstance(near, RecordPremetric):
            return InputPremetric.constant(self, to, domain, multiverse)
        return find_record_constant(self, near, domain, multiverse, neighbours_only=to.neighbours_only)

    def __str__(self) -> str:
        more = ", may move" if self.link == "free" else ""
        copied = f", {self.copies} copies" if self.copies > 1 else ""
        return f"{self.symbol}({self.record_type}{more}{copied})"


@dataclass(frozen=True, slots=True)
class Hamming(RecordPremetric):
    r"""Change one record: $d(x, x') = |x \ominus x'|/2$ if $|x| = |x'|$, else ∞ (Equation 5; order ignored).

    >>> print(Hamming("household"), "-", Hamming("household").smallest_distance)
    d_Ham(household) - one household: its record changed
    """

    symbol: ClassVar[str] = "d_Ham"
    keeps_number: ClassVar[bool] = True

    @property
    def change(self) -> str:
        return "its record changed"

    def derive_multiverse(self) -> Multiverse:
        """Return the number of records: data sets of different size are infinitely far apart."""
        return Multiverse.of(Margin(self.record_type))

    __str__ = RecordPremetric.__str__


@dataclass(frozen=True, slots=True)
class SymmetricDifference(RecordPremetric):
    r"""Add or remove one record: $d(x, x') = |x \ominus x'|$. One changed record is at distance 2.

    >>> print(SymmetricDifference("person"))
    d_Sym(person)
    """

    symbol: ClassVar[str] = "d_Sym"

    def derive_multiverse(self) -> Multiverse:
        return Multiverse.none()

    @property
    def change(self) -> str:
        return f"added to or removed from the {pluralize(self.record_type)}"

    __str__ = RecordPremetric.__str__


# Exchanges: the smallest changes that universes with exact tables allow, where no record can change alone.

TWO_RECORDS = Constant(Fraction(2), "an exchange changes two records: Hamming distance ≤ 2 · exchanges")


@dataclass(frozen=True, slots=True)
class Exchanges(InputPremetric):
    r"""Count exchanges: the least number of steps inside the universe, each of which changes at most two records.

    Where the exact tables are match × swap and match × held, a step lets two records of a stratum trade their swap
    values: no other change of two records keeps the tables. Data sets that no such steps connect, those of two universes
    among them, are infinitely far apart. With $h$ changed records and $t$ exchanges, $h/2 \le t$ always, and
    $t \le h - 1$ (added up over strata) where the universes are those of exchanges: see `find_exchanges`. Identifiers
    are labels of a file and count as no change.

    More invariants leave fewer steps, so the distance only grows: a promise under it survives ``given``.

    >>> print(Exchanges("household"), "-", Exchanges("household").smallest_distance)
    d_Exch(household) - one exchange: two household records trade values
    """

    record_type: str
    whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_kind(
            "the unit",
            self.record_type,
            str,
            wanted="a record type",
            fix='Exchanges("household")',
            error=SpecificationError,
        )

    @property
    def unit(self) -> str:
        return self.record_type

    @property
    def hamming(self) -> Hamming:
        """Return the distance that counts changed records of the same type."""
        return Hamming(self.record_type)

    @property
    def smallest_distance(self) -> str:
        return f"one exchange: two {self.record_type} records trade values"

    def join(self, other: InputPremetric) -> InputPremetric:
        """Return this distance for two of its kind, else the one that counts changed records."""
        if self == other:
            return self
        if other.neighbours_only:
            return other.join(self)
        return self.hamming.join(other.hamming if isinstance(other, Exchanges) else other)

    def constant(self, to: InputPremetric, domain: Domain, multiverse: Multiverse) -> Constant:
        """Return 1 to a distance of changed records where exchanges connect the universes, and on from there."""
        if to.unrestricted == self:
            return ONE
        shape = find_exchanges(domain, multiverse, self.record_type)
        if isinstance(shape, str):
            raise IncompatibleError(
                f"cannot restate {self} as {to}",
                why=f"nothing shows that exchanges connect the data sets of a universe: {shape}",
                fix=f"state the other promise per exchange: spec.per({type(self).__name__}({self.record_type!r}))",
            )
        step = Constant(
            Fraction(1),
            "h changed records are at most h − 1 exchanges within strata apart: exchanges ≤ Hamming",
        )
        return step * self.hamming.constant(to, domain, multiverse)

    def __str__(self) -> str:
        return f"d_Exch({self.record_type})"


@dataclass(frozen=True, slots=True)
class ExchangeShape:
    """The tables that make universes of exchanges: match × swap and match × held, both exact."""

    places: Margin  # match × swap
    held: Margin  # match × held

    @property
    def swap(self) -> frozenset[str]:
        """Return the variables that two records trade."""
        return frozenset(self.places.by) - frozenset(self.held.by)


def find_exchanges(domain: Domain, multiverse: Multiverse, record_type: str) -> ExchangeShape | str:
    """Return the two tables that make every two data sets of a universe exchanges apart, or why none are known.

    Let h records differ. Both tables agree, so the h old and the h new records have the same match × held values and the
    same match × swap values. Pair them by match × held (and what lives with the record): their swap values are permuted
    within strata, and a permutation of h records is at most h − 1 exchanges, each of which sets one record right; values
    that no table shows are set on the way. On the way the other invariants hold too: those that one of the two tables
    determines; whole tables of records that stay, because these are paired among themselves; and what keeps members with
    their record.

    >>> both = Multiverse.of(Margin("household", ("size", "block")), Margin("household", ("size", "tenure")))
    >>> shape = find_exchanges(Domain(name="toy"), both, "household")
    >>> sorted(shape.swap | {*shape.held.by})
    ['block', 'size', 'tenure']
    >>> find_exchanges(Domain(name="toy"), Multiverse.of(Margin("household", ("block",))), "household")
    'no two of the exact tables are match × swap and match × held'
    """
    tables = [table for table in multiverse if isinstance(table, Margin) and table.record_type == record_type]
    said = "no two of the exact tables are match × swap and match × held"
    for places in tables:
        for held in tables:
            if places.where != held.where or not {*places.by} - {*held.by} or not {*held.by} - {*places.by}:
                continue
            shape = ExchangeShape(places, held)
            fault = _find_obstacle(domain, multiverse, shape)
            if not fault:
                return shape
            said = fault
    return said


def _find_obstacle(domain: Domain, multiverse: Multiverse, shape: ExchangeShape) -> str:
    """Return why exchanges of these swap variables may leave a universe; empty where they cannot."""
    unit, swap = shape.held.record_type, shape.swap
    conditions = {*(shape.held.conditions())}
    rules = [rule for rule in domain.constraints if rule.kind != "size" or swap & {*rule.variables}]
    if conditions & swap or any(not rule.variables or swap & {*rule.variables} for rule in rules):
        return "a rule of the domain or a condition speaks of a swap variable"
    if not _keeps_dependencies(domain, shape):
        return "a variable depends on what is held and on what moves, so a record on the way may not exist"
    both = Multiverse.of(shape.places, shape.held)
    staying: list[Margin] = []
    for invariant in multiverse:
        if isinstance(invariant, Custom) and invariant.keeps_with == unit:
            continue
        if refines(both, Multiverse.of(invariant), domain).answer is Answer.YES and _reads_one(
            invariant, shape, domain
        ):
            continue
        if isinstance(invariant, Margin) and _is_whole_table(invariant, shape):
            staying.append(invariant)
            continue
        return f"{invariant.words()} may change on the way"
    return "" if _are_apart(staying) else "the tables of records that stay may overlap"


def _keeps_dependencies(domain: Domain, shape: ExchangeShape) -> bool:
    """Return whether each dependency is one of held variables or one of places; identifiers are only labels."""
    unit, labels = shape.held.record_type, domain.identifiers(shape.held.record_type)
    sides = ({*shape.places.by}, {*shape.held.by})
    shown = sides[0] | sides[1]
    unshown: tuple[set[str], set[str]] = (set(), set())  # variables of no table that depend on each side
    among: list[set[str]] = []  # dependencies between variables of no table
    for rule in (*domain.rules(unit), *domain.keys(unit)):
        if {*rule.of} & labels:
            continue
        names = {*rule.of, *rule.determines} - labels
        fits = [(names & shown) <= side for side in sides]
        if not any(fits):
            return False
        if not all(fits):
            unshown[fits.index(True)].update(names - shown)
        elif not names & shown:
            among.append(names)
    for found in unshown:
        while more := [names for names in among if names & found and not names <= found]:
            found.update(*more)
    return not unshown[0] & unshown[1]


def _reads_one(invariant: Invariant, shape: ExchangeShape, domain: Domain) -> bool:
    """Return whether one of the two tables determines the invariant by itself."""
    return any(
        refines(Multiverse.of(table), Multiverse.of(invariant), domain).answer is Answer.YES
        for table in (shape.places, shape.held)
    )


def _is_whole_table(table: Margin, shape: ExchangeShape) -> bool:
    """Return whether it shows all variables of some records, which are chosen by variables that stay."""
    conditions = {*table.conditions()}
    shown = {*shape.places.by, *shape.held.by}
    return (
        table.record_type == shape.held.record_type
        and len(conditions) == 1
        and not conditions & shape.swap
        and shown - conditions <= {*table.by}
    )


def _are_apart(tables: list[Margin]) -> bool:
    """Return whether the conditions of these tables are about one variable and name no level twice."""
    found = [pair for table in tables for pair in table.conditions().items()]
    levels = [level for _, some in found for level in some]
    return len({name for name, _ in found}) <= 1 and len(levels) == len({*levels})


# Promises for neighbours only, and when they hold at every distance.
#
# The usual definition of differential privacy speaks of neighbours. A specification speaks of every pair of a
# universe. The two say the same where each pair of a universe is joined by a path of neighbours inside it that is as
# long as its distance; under invariants this often fails (no two swapped censuses of one universe are neighbours).


@dataclass(frozen=True, slots=True)
class Neighbours(InputPremetric):
    """0 between equal data sets, 1 between neighbours (distance 1 of the inner premetric), ∞ between all others.

    With it a promise that is known for neighbours only is stated as what it is, under any output premetric.

    >>> print(Neighbours(Hamming("household")))
    d_Ham(household), neighbours only
    """

    inner: InputPremetric
    whole: ClassVar[bool] = True
    neighbours_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        inner: object = self.inner
        if not isinstance(inner, InputPremetric) or isinstance(inner, Neighbours):
            raise SpecificationError(
                "Neighbours needs an input premetric",
                why="neighbours are the data sets at distance 1 under it",
                fix='Neighbours(Hamming("household"))',
            )

    @property
    def unrestricted(self) -> InputPremetric:
        return self.inner

    @property
    def unit(self) -> str:
        return self.inner.unit

    @property
    def smallest_distance(self) -> str:
        return f"{self.inner.smallest_distance} (neighbours only)"

    def derive_multiverse(self) -> Multiverse | None:
        """Return None: data sets may agree on all that neighbours agree on without being neighbours."""
        return None

    def join(self, other: InputPremetric) -> InputPremetric:
        """Return the neighbours of the joint unit, for which both promises hold."""
        return Neighbours(self.inner.join(other.unrestricted))

    def constant(self, to: InputPremetric, domain: Domain, multiverse: Multiverse) -> Constant:
        """Return 1 where neighbours there are neighbours here, else the constant along paths of neighbours."""
        if self == to:
            return Constant(Fraction(1))
        step = self.inner.constant(to, domain, multiverse)
        if isinstance(to, Neighbours) and self.inner.whole and step.factor <= 1:
            return Constant(Fraction(1), step.because)  # distance 1 there is distance 0 or 1 here
        connected = neighbours_connect(domain, multiverse, self.inner)
        if not connected:
            raise IncompatibleError(
                f"cannot restate {self} as {to}",
                why=f"between data sets that are no neighbours it promises nothing, and {connected.because}",
                fix=f"prove the promise at every distance and state it under {self.inner}",
            )
        return Constant(Fraction(1), connected.because, along_paths=True) * step

    def __str__(self) -> str:
        return f"{self.inner}, neighbours only"


def neighbours_connect(domain: Domain, multiverse: Multiverse, premetric: InputPremetric) -> Verdict:
    """Decide whether k steps between neighbours join any two data sets at distance k inside their universe.

    Proved here for records of one kind: k records are changed (or added, or removed) one after the other, which keeps
    their number where only changes are counted, and their number in each part where the invariants are one table.

    >>> from stirred.spec.domain import Domain
    >>> neighbours_connect(Domain(name="toy"), Multiverse.none(), Hamming("household")).answer.value
    'yes'
    """
    if not isinstance(premetric, RecordPremetric) or premetric.copies > 1:
        return Verdict.unknown(
            f"no rule says that neighbours under {premetric} connect the data sets of a universe"
        )
    unit = premetric.record_type
    others = {kind.name for kind in domain.record_types} - {unit}
    if others and not (unit in HOUSEHOLDS and others <= {PERSON}):
        return Verdict.unknown(
            f"the domain holds other records than {pluralize(unit)}, and a change of one may be no step between neighbours"
        )
    if domain.keys(unit) or not all(rule.variables for rule in domain.constraints):
        return Verdict.unknown(
            f"the rules of the domain may forbid the data sets on the way, where only some {pluralize(unit)} have changed"
        )
    free = frozenset({Margin(unit)}) if isinstance(premetric, Hamming) else frozenset[Margin]()
    if not multiverse.invariants <= free and not _is_one_partition(domain, multiverse, premetric):
        return Verdict.unknown(
            f"the invariants may not hold on the way, where only some {pluralize(unit)} have changed"
        )
    return Verdict.yes(
        f"{pluralize(unit)} can be changed one after the other, so neighbours reach every distance"
    )


def _is_one_partition(domain: Domain, multiverse: Multiverse, premetric: RecordPremetric) -> bool:
    """Return whether the invariants fix the number of records in each part of one partition, and no more.

    Then two data sets of a universe agree part by part, and records are changed inside their parts one after the other.
    A table of persons is no partition of the households they live in: one household alone may not be able to change.
    """
    if not isinstance(premetric, Hamming):
        return False  # one record more or less changes the number in its part
    total = Margin(premetric.record_type)
    tables = [invariant for invariant in multiverse if isinstance(invariant, Margin)]
    return len(tables) == len(multiverse) and any(
        table.record_type == premetric.record_type and Multiverse.of(table, total).refines(multiverse, domain)
        for table in tables
    )


# Refinement among data sets at finite distance, the only ones that a specification bounds.


def refines_within_reach(
    finer: Multiverse, coarser: Multiverse, domain: Domain, premetric: InputPremetric
) -> Verdict:
    """Decide whether ``finer`` determines ``coarser`` among data sets at finite distance.

    A yes is weaker here (Hamming distances fix the number of records by themselves), a no is stronger: it names data
    sets at finite distance, as the second half of Proposition 1 asks.

    >>> from stirred.spec.input_premetrics import Hamming
    >>> total = Multiverse.of(Margin("household"))
    >>> refines_within_reach(Multiverse.none(), total, Domain(name="toy"), Hamming("household")).because
    'd_Ham(household) is infinite unless number of households agree'
    """
    if premetric.neighbours_only:
        # neighbours are at finite distance; for a no the two data sets have to be neighbours, which the caller asks
        return refines_within_reach(finer, coarser, domain, premetric.unrestricted)
    plain = refines(finer, coarser, domain)
    fixed = premetric.derive_multiverse()
    if plain or (fixed is not None and fixed.is_vacuous):
        return plain
    if fixed is None:
        return Verdict.unknown(
            f"{premetric} does not say which data sets are at finite distance: {plain.because}"
        )
    reached = refines(finer & fixed, coarser, domain)
    if not reached:
        return _decide_at_finite_distance(finer & fixed, coarser, domain, reached)
    if counts_only_its_own(premetric, domain):
        words = ", ".join(invariant.words() for invariant in fixed)
        because = f"{premetric} is infinite unless {words} agree"
        premises = () if reached.derivation is None else (reached.derivation,)
        step = Derivation(
            rule="finite distance", claim=because, premises=premises, facts={"fixed": tuple(fixed)}
        )
        return Verdict.yes(because, step)
    return Verdict.unknown(
        f"{premetric} fixes the number of its records in the joint file, where vacant units and empty facilities count "
        f"too: {plain.because}"
    )


def _decide_at_finite_distance(
    finer: Multiverse, coarser: Multiverse, domain: Domain, found: Verdict
) -> Verdict:
    """Turn a no into one whose pair has equally many records of every type, or into unknown."""
    if found.answer is not Answer.NO or _is_even(found.derivation):
        return found
    totals = {Margin(need.record_type) for invariant in coarser for need in invariant.needs()}
    again = refines(Multiverse(finer.invariants | totals), coarser, domain)
    if again.answer is Answer.NO:
        return again
    return Verdict.unknown(f"no pair of data sets with equal numbers of records is known: {found.because}")


def _is_even(step: Derivation | None) -> bool:
    """Return whether both data sets of every witness have equally many records of each type."""
    if step is None:
        return False
    pair = step.witness
    if pair is not None:
        kinds = {kind for data in (pair.first, pair.second) for kind, _, _ in data.rows}
        return all(pair.distance(kind) is not None for kind in kinds)
    return bool(step.premises) and all(_is_even(premise) for premise in step.premises)


def counts_only_its_own(premetric: InputPremetric, domain: Domain) -> bool:
    """Return whether no record of another type counts as a unit of this distance."""
    others = {kind.name for kind in domain.record_types} - {premetric.unit}
    return not others or (premetric.unit in HOUSEHOLDS and others <= {PERSON})
