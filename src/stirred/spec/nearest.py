"""Find the smallest distance between two data sets of one universe that a release can tell apart."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, groupby

from stirred.languages import Phrase, spell_number
from stirred.languages import unit as noun
from stirred.spec.domain import HOUSEHOLDS, Domain, RecordType, Variable
from stirred.spec.domain import PERSON as DOMAIN_PERSON
from stirred.spec.finite_model import (
    Model,
    SignedTable,
    Span,
    UndecidedError,
    build_models,
    build_rows,
    find_keys,
    generate_pairs,
)
from stirred.spec.input_premetrics import Exchanges, Hamming, InputPremetric, RecordPremetric
from stirred.spec.invariants import AtLeast, Custom, Invariant, Margin, Views, largest_views
from stirred.spec.multiverse import Multiverse
from stirred.spec.verdict import Witness

# The lightest signed table that every exact table sums to zero: the smallest change inside a universe.
#
# A data set is a table of counts, so two data sets of one universe differ by an integer table $z \ne 0$ that every
# exact table sums to zero. On a model (see `axes`) a table of cells times plain parts, the smallest norm is $\min_J
# 2^{|J|}\, m(J)$: alternate in the plain parts $J$, and let $m(J)$ be the smallest norm on the cells of what the
# tables that show all of $J$ sum to zero. *Proof.* Such a product is a kernel vector. Conversely take a plain part
# $p$. If the sum of $z$ over $p$ is not zero, it is a kernel vector without $p$ and no heavier. Else two slices along
# $p$ are nonzero, and the tables that show $p$ sum both to zero: at least twice $m$ with $p$ in $J$. Repeat for the
# other parts. Without restrictions there is one cell, and this is $2^{|F|}$ for the smallest set $F$ contained in no
# margin. Two levels of a class stand for all: adding up the others of the class keeps a kernel vector, makes it no
# heavier, and not zero for some choice.

MAX_TABLE_SETS = 20_000
MAX_CELLS = 400
MAX_STEPS = 40_000


@dataclass(frozen=True, slots=True)
class TableKeys:
    """An exact table on a model: the key of each cell (None: not counted), and the plain parts it shows."""

    keys: tuple[tuple[str, ...] | None, ...]
    shown: frozenset[str]

    @staticmethod
    def of(margin: Margin, model: Model, cells: Sequence[Mapping[str, str]]) -> "TableKeys":
        return TableKeys(tuple(find_keys(margin, model, cells)), model.find_shown_parts(margin.by))

    def on(self, places: Sequence[int]) -> "TableKeys":
        """Return the table restricted to these cells."""
        return TableKeys(tuple(self.keys[place] for place in places), self.shown)


@dataclass(frozen=True, slots=True)
class LightestVector:
    """A vector on cells and the plain parts to alternate in; ``proved`` where no lighter one exists."""

    vector: Mapping[int, int]
    alternating: frozenset[str]
    proved: bool

    @property
    def norm(self) -> int:
        return int(sum(map(abs, self.vector.values()))) << len(self.alternating)


def find_lightest(
    tables: Sequence[TableKeys],
    parts: Iterable[str],
    group: Iterable[int],
    size: int,
    view: Sequence[tuple[str, ...] | None] | None = None,
) -> LightestVector | None:
    """Return the lightest signed table on ``size`` cells that every table sums to zero and the group does not.

    With a ``view``, the keys under which a released table counts the cells, the view does not sum it to zero. Then ``parts``
    are the plain parts that the view shows. *Proof* that no other part has to alternate: the sum over a part that the view
    does not show is a kernel vector with the same view, and no heavier. For a part that it shows the argument above holds
    with "the view is not zero" for "is not zero".

    >>> pairs = [TableKeys(((),), frozenset(names)) for names in ("uv", "vw", "uw")]
    >>> found = find_lightest(pairs, "uvw", [0], 1)
    >>> sorted(found.alternating), found.norm
    (['u', 'v', 'w'], 8)
    >>> find_lightest([TableKeys(((),), frozenset("uvw"))], "uvw", [0], 1) is None
    True
    """
    if size > MAX_CELLS:
        raise UndecidedError(f"more than {MAX_CELLS} kinds of records would have to be weighed")
    chosen = sorted(group)
    best: LightestVector | None = None
    proved = True
    for seeing, alternating in _find_hidden_parts(tables, parts).items():
        below = None if best is None else -(-best.norm >> len(alternating))
        if best is not None and below is not None and below <= 1:
            # of two equally light ones, the one that keeps to one kind of records is easier to read
            free = _find_uncounted_cell([tables[place].keys for place in seeing], chosen)
            if free is not None and len(best.vector) > 1 and best.norm == 1 << len(alternating):
                best = LightestVector({free: 1}, alternating, proved)
            continue
        found, sure = find_shortest(
            [tables[place].keys for place in sorted(seeing)], chosen, size, below, view
        )
        proved &= sure
        if found is not None:
            best = LightestVector(found, alternating, proved)
    return best and LightestVector(best.vector, best.alternating, proved)


def _find_hidden_parts(
    tables: Sequence[TableKeys], parts: Iterable[str]
) -> dict[frozenset[int], frozenset[str]]:
    """Return for each set of tables left over the fewest plain parts that the others do not show together.

    Parts that the same tables show can stand for one another, so one of each kind is enough.
    """
    kinds: dict[frozenset[int], str] = {}
    for part in sorted(parts):
        kinds.setdefault(frozenset(i for i, table in enumerate(tables) if part in table.shown), part)
    found = {frozenset(range(len(tables))): frozenset[str]()}
    layer = list(found)
    while layer:
        following = []
        for seeing in layer:
            for kind, part in kinds.items():
                less = seeing & kind
                if less not in found:
                    found[less] = found[seeing] | {part}
                    following.append(less)
        if len(found) > MAX_TABLE_SETS:
            raise UndecidedError("too many combinations of exact tables would have to be weighed")
        layer = following
    return found


def find_shortest(
    tables: Sequence[Sequence[tuple[str, ...] | None]],
    group: Sequence[int],
    size: int,
    below: int | None = None,
    view: Sequence[tuple[str, ...] | None] | None = None,
) -> tuple[dict[int, int] | None, bool]:
    """Return the integer vector of smallest norm below ``below`` that all tables sum to zero, the group not.

    With a ``view`` (the key of each cell; None: not in it), the view does not sum it to zero; the group are its cells.

    The second answer says whether this is proved. A depth-first search with growing limits: each further record changes
    each table in one cell at most, so what a table still shows bounds how many are missing.

    >>> rows = [[("a",), ("a",), ("b",), ("b",)], [("c",), ("d",), ("c",), ("d",)]]
    >>> found, proved = find_shortest(rows, [0], 4)
    >>> sorted(found.items()), proved
    ([(0, 1), (1, -1), (2, -1), (3, 1)], True)
    """
    free = _find_uncounted_cell(tables, group)
    if free is not None:
        return {free: 1}, True
    known = _find_kernel_vector(tables, group, size, view)
    if known is None:
        return None, True
    weight = sum(map(abs, known.values()))
    light = known if below is None or weight < below else None
    search = _Search(tables, size, view)
    for limit in range(2, weight if below is None else min(weight, below)):
        for start in group:
            found = search.find_within({start: 1}, limit)
            if found is not None:
                return found, True
            if search.steps > MAX_STEPS:
                return light, False
    return light, True


def _find_uncounted_cell(
    tables: Sequence[Sequence[tuple[str, ...] | None]], group: Sequence[int]
) -> int | None:
    """Return a cell of the group that no table counts, or None."""
    return next((place for place in group if all(table[place] is None for table in tables)), None)


def _find_kernel_vector(
    tables: Sequence[Sequence[tuple[str, ...] | None]],
    group: Sequence[int],
    size: int,
    view: Sequence[tuple[str, ...] | None] | None = None,
) -> dict[int, int] | None:
    """Return the lightest kernel vector at hand that the group or the view shows, or None."""
    span = Span()
    for number, table in enumerate(tables):
        for key, row in build_rows(table[:size]).items():
            span.add((number, key), row)
    found: dict[int, int] | None = None
    wanted = (
        [{place: Fraction(1)} for place in group] if view is None else [*build_rows(view[:size]).values()]
    )
    for row in wanted:
        if span.find_combination(row) is None:
            vector = span.find_kernel_vector(row)
            if sum(vector.get(place, 0) for place in row) and (
                found is None or sum(map(abs, vector.values())) < sum(map(abs, found.values()))
            ):
                found = vector
    return found


class _Search:
    """The state of a search: which cells each row of a table counts, and how many steps were made."""

    def __init__(
        self,
        tables: Sequence[Sequence[tuple[str, ...] | None]],
        size: int,
        view: Sequence[tuple[str, ...] | None] | None = None,
    ) -> None:
        self.view = view
        self.keys = [table[:size] for table in tables]
        self.members: dict[tuple[int, tuple[str, ...]], list[int]] = {}
        for number, table in enumerate(self.keys):
            for place, key in enumerate(table):
                if key is not None:
                    self.members.setdefault((number, key), []).append(place)
        self.steps = 0

    def find_within(self, vector: dict[int, int], limit: int) -> dict[int, int] | None:
        """Return a kernel vector of at most this norm that extends the given one, or None."""
        return self._extend(vector, limit - sum(map(abs, vector.values())), set())

    def _extend(
        self, vector: dict[int, int], left: int, met: set[frozenset[tuple[int, int]]]
    ) -> dict[int, int] | None:
        state = frozenset(vector.items())
        if state in met or self.steps > MAX_STEPS:
            return None
        met.add(state)
        self.steps += 1
        sums = self._sums(vector)
        if not sums:
            # a vector that the view does not show is part of no lightest one: the rest would be lighter
            return vector if self._is_noticed(vector) else None
        weight: dict[int, int] = {}
        for (number, _), value in sums.items():
            weight[number] = weight.get(number, 0) + abs(value)
        if max(weight.values()) > left:
            return None
        row = min(sums, key=lambda at: (len(self.members[at]), at))
        sign = -1 if sums[row] > 0 else 1
        for place in self.members[row]:
            if vector.get(place, 0) * sign >= 0:
                found = self._extend({**vector, place: vector.get(place, 0) + sign}, left - 1, met)
                if found is not None:
                    return found
        return None

    def _is_noticed(self, vector: Mapping[int, int]) -> bool:
        """Return whether the view shows the vector: it does not sum it to zero."""
        if self.view is None:
            return True
        counts: dict[tuple[str, ...], int] = {}
        for place, value in vector.items():
            key = self.view[place]
            if key is not None:
                counts[key] = counts.get(key, 0) + value
        return any(counts.values())

    def _sums(self, vector: Mapping[int, int]) -> dict[tuple[int, tuple[str, ...]], int]:
        sums: dict[tuple[int, tuple[str, ...]], int] = {}
        for place, value in vector.items():
            for number, table in enumerate(self.keys):
                key = table[place]
                if key is not None:
                    sums[number, key] = sums.get((number, key), 0) + value
        return {row: value for row, value in sums.items() if value}


# How near two data sets of one universe can be, asked on the finite model of one record type.

UNLISTED = "another variable"  # stands for what a domain without a list of variables may hold


@dataclass(frozen=True, slots=True, kw_only=True)
class LightestChange:
    """The lightest change that was found: its norm |x ⊖ x'| and what it looks like."""

    norm: int
    signed: SignedTable
    proved: bool  # no lighter one leaves the tables as they are
    free: bool  # it leaves alone what rules of the domain tie, and is possible wherever areas lie


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Tables of one record type in one domain; ``own`` says which of them were published of the unit itself."""

    domain: Domain
    kind: str
    margins: tuple[Margin, ...]
    own: frozenset[int]
    total: bool  # whether the distance fixes the number of records
    tied: frozenset[str] = frozenset()  # variables that rules of the domain tie to others: a pair avoids them

    def find_nearest(self) -> LightestChange | None:
        """Return the lightest change of all, or None where every universe is a single data set."""
        return self._find_over_models(
            lambda model: self._search(model, self._tables(model), self._parts(model), None)
        )

    def find_telling(self, *, shown_only: bool = False) -> LightestChange | None:
        """Return the heaviest among the lightest changes of each kind of records.

        Records are of one kind where the same own tables count them. For each kind the change is sought first among the
        variables that these tables show (all that a swap releases of them), then among all variables.
        """
        return self._find_over_models(lambda model: self._find_by_kind(model, shown_only=shown_only))

    def find_showing(self, view: Margin) -> LightestChange | None:
        """Return the lightest change that a released table shows, or None where the exact tables determine it."""
        return self._find_over_models(lambda model: self._find_in_view(model, view), view)

    def without_restrictions(self) -> "Question":
        """Return the question with larger tables: of all records, by all that tables show or are restricted by."""
        wider = tuple(Margin(self.kind, (*m.by, *m.conditions())) for m in self.margins)
        return replace(self, margins=wider)

    def outside_restrictions(self) -> "Question":
        """Return the question with the unrestricted tables only, which bind records outside every restriction."""
        kept = [place for place, margin in enumerate(self.margins) if margin.where is None]
        own = frozenset(new for new, place in enumerate(kept) if place in self.own)
        return replace(self, margins=tuple(self.margins[place] for place in kept), own=own)

    def _find_over_models(
        self, search: Callable[[Model], LightestChange | None], *more: Margin
    ) -> LightestChange | None:
        """Return the heaviest answer over the maps that the domain leaves open; proved where all agree."""
        found = [search(model) for model in build_models(self.domain, self.kind, (*self.margins, *more))]
        heaviest = max((change for change in found if change is not None), key=lambda c: c.norm, default=None)
        if heaviest is None:
            return None
        if None in found:  # areas may lie in each other so that nothing can change
            heaviest = replace(heaviest, free=False)
        same = all(change is not None and change.norm == heaviest.norm for change in found)
        return replace(heaviest, proved=heaviest.proved and same)

    def _find_by_kind(self, model: Model, *, shown_only: bool) -> LightestChange | None:
        tables = self._tables(model)
        signature = [
            frozenset(place for place in self.own if tables[place].keys[cell] is not None)
            for cell in range(len(model.cells()))
        ]
        found: list[LightestChange] = []
        proved = True
        for counted in sorted({*signature} - {frozenset[int]()}, key=sorted):
            group = [cell for cell, tables_of in enumerate(signature) if tables_of == counted]
            shown = frozenset[str]().union(*(tables[place].shown for place in counted))
            change = self._find_shown(model, tables, shown, group)
            if change is None and not shown_only:
                change = self._search(model, tables, self._parts(model), group)
            if change is not None:
                found.append(change)
                proved &= change.proved
        if found:
            heaviest = max(found, key=lambda change: change.norm)
            return replace(heaviest, proved=proved)
        return None if shown_only else self._search(model, tables, self._parts(model), None)

    def _find_shown(
        self, model: Model, tables: Sequence[TableKeys], shown: frozenset[str], group: Sequence[int]
    ) -> LightestChange | None:
        """Return the lightest change visible in this record type's tables, merging indistinguishable levels."""
        cells = model.cells()
        mine = {
            name for place in self.own for m in [self.margins[place]] for name in (*m.by, *m.conditions())
        }

        def rest(cell: int) -> tuple[str, ...]:
            return tuple(value for name, value in sorted(cells[cell].items()) if name not in mine)

        found: list[tuple[int, int, LightestChange]] = []
        for _, slice_ in groupby(sorted(range(len(cells)), key=rest), key=rest):
            columns: dict[tuple[object, ...], int] = {}
            for cell in slice_:
                columns.setdefault(tuple(table.keys[cell] for table in tables), cell)
            change = self._search(
                model, tables, shown, [c for c in columns.values() if c in {*group}], [*columns.values()]
            )
            if change is not None:
                counted = sum(table.keys[cell] is not None for table in tables for cell in columns.values())
                found.append((change.norm, counted, change))
        # of equally light changes, one among records that fewer tables count
        return min(found, key=lambda item: item[:2], default=(0, 0, None))[2]

    def _find_in_view(self, model: Model, view: Margin) -> LightestChange | None:
        """Return the lightest change that the view shows, merging cells that neither view nor tables tell apart."""
        cells = model.cells()
        tables, seen = self._tables(model), TableKeys.of(view, model, cells)
        columns: dict[tuple[object, ...], int] = {}
        for cell in range(len(cells)):
            columns.setdefault((seen.keys[cell], *(table.keys[cell] for table in tables)), cell)
        places = [*columns.values()]
        group = [cell for cell in places if seen.keys[cell] is not None]
        return self._search(model, tables, seen.shown, group, places, seen)

    def _search(
        self,
        model: Model,
        tables: Sequence[TableKeys],
        parts: frozenset[str],
        group: Sequence[int] | None,
        places: Sequence[int] | None = None,
        view: TableKeys | None = None,
    ) -> LightestChange | None:
        """Return the lightest change on these cells; prefer one that leaves tied variables alone."""
        cells = model.cells()
        kept = [*range(len(cells))] if places is None else [*places]
        among = [place for place, cell in enumerate(kept) if group is None or cell in {*group}]
        on = [table.on(kept) for table in tables]
        if self.total:
            on.append(TableKeys(((),) * len(kept), frozenset()))
        if not among:
            return None
        seen = None if view is None else view.on(kept).keys
        light = find_lightest(on, parts, among, len(kept), seen)
        if light is None:
            return None
        found = light
        if self._ties(model, light):
            found = find_lightest(on, parts - self.tied, among, len(kept), seen) or light
        vector = tuple((cells[kept[place]], number) for place, number in sorted(found.vector.items()))
        signed = SignedTable(model=model, cells=vector, alternating=found.alternating)
        proved = light.proved and found.norm == light.norm
        return LightestChange(
            norm=found.norm, signed=signed, proved=proved, free=not self._ties(model, found)
        )

    def _ties(self, model: Model, light: LightestVector) -> bool:
        """Return whether rules of the domain may forbid the change, as for a person of a larger household."""
        several = len(light.vector) > 1 or self.kind == DOMAIN_PERSON
        return bool(light.alternating & self.tied or (several and model.list_restricted() & self.tied))

    def _tables(self, model: Model) -> list[TableKeys]:
        cells = model.cells()
        return [TableKeys.of(margin, model, cells) for margin in self.margins]

    def _parts(self, model: Model) -> frozenset[str]:
        """Return the own parts of all variables, without identifiers; also parts that no table shows."""
        if not self.domain.has(self.kind):
            return model.plain | {UNLISTED}
        named = {name for margin in self.margins for name in (*margin.by, *margin.conditions())}
        known = self.domain.closure(self.kind, [*named])
        others = self.domain.record_type(self.kind).names() - known - self.domain.identifiers(self.kind)
        (plain,) = build_models(self.domain, self.kind, [Margin(self.kind, others)])
        return model.plain | (plain.plain - known)


# Tables of several record types as tables of one joint record.
#
# Where every household has one person and lives in one housing unit, a person, its household and its unit are one
# record, and a table of any of the three is a table of that record. A pair of data sets of such records is a pair of
# the domain, so what the joint record shows possible is possible.

PERSON, HOUSEHOLD, UNIT, QUARTERS = "person", "household", "housing unit", "group quarters"
RELATED_TYPES: Mapping[str, tuple[str, ...]] = {
    PERSON: (HOUSEHOLD, UNIT),
    HOUSEHOLD: (PERSON, UNIT),
    UNIT: (HOUSEHOLD, PERSON),
    QUARTERS: (PERSON,),
}


def ask_own_tables(domain: Domain, multiverse: Multiverse, unit: str, *, total: bool) -> Question:
    """Return the question with the tables of the unit alone; its answer holds whatever else is published."""
    identifiers = domain.identifiers(unit)
    margins = [
        _drop_identifiers(m, identifiers, unit)
        for m in multiverse
        if isinstance(m, Margin) and m.record_type == unit
    ]
    distinct = tuple(dict.fromkeys(margins))
    return Question(
        domain=domain, kind=unit, margins=distinct, own=frozenset(range(len(distinct))), total=total
    )


def ask_joint_tables(
    domain: Domain, multiverse: Multiverse, unit: str, published: str, *, total: bool, custom: bool
) -> Question:
    """Return the question with all tables of the joint record; those of the type ``published`` count as own.

    ``custom``: whether invariants that are no tables are taken to say all that the margins which determine them say.
    """
    family = (unit, *RELATED_TYPES.get(unit, ()))
    joint = _joint_domain(domain, unit, family)
    identifiers = _identifiers(domain, family)
    tables: dict[Margin, bool] = {}
    for invariant in multiverse:
        for margin in _list_tables(invariant, family, custom=custom):
            table = _drop_identifiers(margin, identifiers, unit)
            mine = isinstance(invariant, Margin) and invariant.record_type == published
            tables[table] = tables.get(table, False) or mine
    tied = {
        name for rule in domain.constraints if rule.record_type in {"", *family} for name in rule.variables
    }
    if domain.has(PERSON):
        tied.add(domain.size_variable)
    return Question(
        domain=joint,
        kind=unit,
        margins=tuple(tables),
        own=frozenset(place for place, mine in enumerate(tables.values()) if mine),
        total=total,
        tied=frozenset(tied),
    )


def join_record_views(domain: Domain, views: Iterable[Margin], unit: str) -> Views:
    """Return the views as tables of the joint record, without views of records that the distance ignores."""
    family = (unit, *RELATED_TYPES.get(unit, ()))
    identifiers = _identifiers(domain, family)
    mine = [_drop_identifiers(view, identifiers, unit) for view in views if view.record_type in family]
    return largest_views(_joint_domain(domain, unit, family), mine)


def ask_lower_tables(
    asked: Question, domain: Domain, multiverse: Multiverse, views: Views
) -> Question | None:
    """Return the question with tables that bind every record of the unit in any household, or None.

    No change is smaller than the lightest one that these tables leave, because a table of another record type binds only
    some of the records: an empty home is in no table of persons. Of statistics that are no tables only those count that join
    tables by an identifier: who lives together, with all that is held.
    """
    unit = asked.kind
    if any(view.record_type != unit for view in views) and unit not in HOUSEHOLDS:
        return None
    family = (unit, *RELATED_TYPES.get(unit, ()))
    identifiers = _identifiers(domain, family)
    kept = [
        _drop_identifiers(margin, identifiers, unit)
        for invariant in multiverse
        if (isinstance(invariant, Margin) and invariant.record_type == unit)
        or (isinstance(invariant, Custom) and all(identifiers & {*m.by} for m in invariant.needs()))
        for margin in _list_tables(invariant, family, custom=True)
    ]
    return replace(asked, margins=tuple(dict.fromkeys(kept)), own=frozenset(), tied=frozenset())


def _identifiers(domain: Domain, family: Iterable[str]) -> frozenset[str]:
    return frozenset[str]().union(*(domain.identifiers(kind) for kind in family))


def _list_tables(invariant: Invariant, family: tuple[str, ...], *, custom: bool) -> Iterator[Margin]:
    """Yield tables that together fix what an invariant says of these records."""
    if isinstance(invariant, Margin):
        if invariant.record_type in family:
            yield invariant
        return
    if isinstance(invariant, AtLeast) and isinstance(invariant.than, int):
        return  # enough further records on both sides keep it
    if not custom:
        return
    needs = [margin for margin in invariant.needs() if margin.record_type in family]
    yield from needs
    if isinstance(invariant, AtLeast):
        return
    # tables that share an identifier can be joined record by record
    for size in range(2, len(needs) + 1):
        for chosen in combinations(needs, size):
            where: dict[str, tuple[str, ...]] = {}
            for margin in chosen:
                for name, values in margin.conditions().items():
                    where[name] = tuple(v for v in values if name not in where or v in where[name])
            if all(where.values()):
                yield Margin(family[0], [name for margin in chosen for name in margin.by], where)


def _drop_identifiers(margin: Margin, identifiers: frozenset[str], unit: str) -> Margin:
    """Return the table as one of the unit's records, without identifiers."""
    return Margin(unit, [name for name in margin.by if name not in identifiers], margin.where)


def _joint_domain(domain: Domain, unit: str, family: tuple[str, ...]) -> Domain:
    if not domain.has(unit):
        return domain
    variables: dict[str, Variable] = {}
    identifiers = _identifiers(domain, family)
    for kind in family:
        if domain.has(kind):
            for variable in domain.record_type(kind).variables:
                if variable.name not in identifiers:
                    variables.setdefault(variable.name, variable)
    rules = [rule for rule in domain.dependencies if rule.record_type in {"", *family}]
    plain = tuple(replace(rule, record_type=unit) for rule in rules if not identifiers & {*rule.of})
    return replace(
        domain,
        record_types=(RecordType(name=unit, variables=tuple(variables.values())),),
        dependencies=plain,
    )


# The smallest distance between two data sets of one universe that a release can tell apart, true or on the safe side.
#
# Safe means never too small: a larger distance gives larger odds. So the answer is the distance of a pair that exists,
# and ``exact`` says whether a smaller one is ruled out too. What a release shows are its *views* (see `released`):
# tables that its law is a function of. A change counts only where some view shows it, whatever else a codebook lists.
#
# 1. *Views.* Of each view that no other one covers, the lightest change is sought that leaves all exact tables as they
#    are and that the view shows. The largest of these distances is shown, so that one more table never lowers the
#    odds; views that the exact tables determine are left aside. Where no view can change, nothing is known to be
#    protected.
# 2. *Persons in households.* Tables and views of persons, of their households and of housing units are tables of one joint
#    record, so a person changes together with its place and its household.
# 3. *Not stated.* Where a specification does not state its views, every variable may be released. Then records are of
#    one kind where the same tables count them; each kind has its own smallest distance, sought first among the
#    variables that exact tables show (all that a swap releases), then among all; the largest is shown. Where exact
#    tables of households allow no smaller change than k households, persons are shown at k as well.

LONE_HOUSEHOLD = "household of one person"


@dataclass(frozen=True, slots=True)
class Distance:
    """A smallest distance, never below the true one; ``value`` None where no released change is known.

    ``exact``: it is the true one; with None, there is no such change. ``moved``: the variables that records exchange at that
    distance. ``safe`` is False where no pair is known that keeps all rules of the domain: then the value is what the
    exact tables allow. ``changed`` names the records that change.
    """

    value: int | None
    exact: bool
    because: str
    pair: Witness | None = None
    moved: tuple[str, ...] = ()
    safe: bool = True
    changed: str = ""
    others: bool = False  # another released table can change by less

    @property
    def occurs(self) -> str:
        """Return how sure it is that no smaller change occurs, as the end of "the smallest change"."""
        if self.exact:
            return Phrase("distance.can_occur")
        if self.others:
            return Phrase("distance.each_table")
        return Phrase("distance.known_to_occur" if self.safe else "distance.tables_allow")


def smallest_distance(
    domain: Domain, multiverse: Multiverse, premetric: InputPremetric, released: Iterable[Margin] = ()
) -> Distance:
    r"""Return the smallest distance for reading the odds; ``released`` are the views (empty: not stated).

    For margins of a complete product it is $2^{|F|-1}$ (Hamming), with $F$ the smallest set of variables in no margin.

    >>> from stirred.spec.domain import RecordType, Variable
    >>> variables = tuple(Variable(name=name) for name in "uvw")
    >>> toy = Domain(name="toy", record_types=(RecordType(name="household", variables=variables),))
    >>> tables = Multiverse.of(*(Margin("household", tuple(names)) for names in ("uv", "uw", "vw")))
    >>> found = smallest_distance(toy, tables, Hamming("household"))
    >>> found.value, found.exact
    (4, True)

    A variable that does not leave cannot change alone:

    >>> swapped = Multiverse.of(Margin("household", ("u",)), Margin("household", ("v",)))
    >>> smallest_distance(toy, swapped, Hamming("household"), [Margin("household", ("u", "v"))]).value
    2
    >>> smallest_distance(toy, swapped, Hamming("household"), [Margin("household", ("u", "v", "w"))]).value
    1
    """
    views = tuple(released)
    if isinstance(premetric, RecordPremetric):
        return _find_smallest(domain, multiverse, premetric, views)
    if isinstance(premetric, Exchanges):
        return _count_exchanges(smallest_distance(domain, multiverse, premetric.hamming, views))
    if not premetric.neighbours_only:
        return Distance(1, False, Phrase("distance.no_rule", premetric=str(premetric)))
    near = smallest_distance(domain, multiverse, premetric.unrestricted, views)
    if near.exact and near.value != 1:
        return Distance(1, False, Phrase("distance.no_neighbours", reason=near.because))
    pair = near.pair if near.value == 1 else None
    return Distance(1, near.exact, Phrase("distance.neighbours"), pair, near.moved)


def _count_exchanges(near: Distance) -> Distance:
    """Return the smallest distance in exchanges: one where two records change; more have no known bound."""
    if near.value is None or near.value <= 2:
        return near if near.value is None else replace(near, value=1)
    return Distance(None, False, near.because, changed=near.changed)


@lru_cache(maxsize=512)
def _find_smallest(
    domain: Domain, multiverse: Multiverse, premetric: RecordPremetric, released: Views
) -> Distance:
    unit, total = premetric.record_type, isinstance(premetric, Hamming)
    views = join_record_views(domain, released, unit)
    if views:
        search = _find_in_views(domain, multiverse, unit, released, views, total=total)
    else:
        search = _find_in_tables(domain, multiverse, unit, total=total)
    if isinstance(search, Distance):
        return search
    found, asked = search.change, search.asked
    value = found.norm // 2 if total else found.norm
    safe = search.every and found.free and all(c.variables or c.kind == "size" for c in domain.constraints)
    lowest = value == 1 or search.lowest
    exact = lowest and safe and _is_plain_domain(domain, unit, premetric)
    cells = [cell for cell, _ in found.signed.cells]
    differing = {name for cell in cells for name in cell if cell[name] != cells[0][name]}
    moved = tuple(sorted({*found.signed.alternating, *differing} - {UNLISTED}))
    # where no column of persons leaves, what changes is a home; it is one person's record where one person lives in it
    alone = unit == PERSON and bool(views) and all(view.record_type != PERSON for view in released)
    changed = LONE_HOUSEHOLD if alone else unit
    because = _write_reason(changed, value, found, asked, total=total)
    if not safe:
        because = Phrase("distance.larger_only", reason=because)
    elif search.others:
        because = Phrase("distance.smaller_elsewhere", reason=because)
    elif not lowest:
        because = Phrase("distance.not_ruled_out", reason=because)
    pair = write_pair(domain, found.signed, multiverse, unit)
    return Distance(value, exact, because, pair, moved, safe, changed, search.others)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FoundChange:
    """The change at which the odds are read, and what is known about smaller changes."""

    change: LightestChange
    asked: Question
    every: bool  # invariants that are no tables are kept too
    lowest: bool  # no smaller change exists
    others: bool = False  # a smaller change of another released table exists


def _find_in_views(
    domain: Domain, multiverse: Multiverse, unit: str, released: Views, views: Views, *, total: bool
) -> "_FoundChange | Distance":
    """Find the lightest change of each view under all tables of the joint record; return the heaviest of them."""
    asked = ask_joint_tables(domain, multiverse, unit, unit, total=total, custom=True)
    shown = [_ask(asked, view) for view in views]
    changes = [change for change, _ in shown if change is not None]
    if not changes:
        return _describe_no_change(domain, multiverse, unit, released, total=total)
    heaviest, norms = max(changes, key=lambda change: change.norm), [change.norm for change in changes]
    least = _find_least(asked, domain, multiverse, released, views)
    return _FoundChange(
        change=heaviest,
        asked=asked,
        every=all(i.needs() for i in multiverse),
        lowest=least is not None and least >= heaviest.norm,
        others=min(norms) < heaviest.norm,
    )


def _find_least(
    asked: Question, domain: Domain, multiverse: Multiverse, released: Views, views: Views
) -> int | None:
    """Return a lower bound of the norm of every change of a view, or None where none is proved."""
    below = ask_lower_tables(asked, domain, multiverse, released)
    if below is None:
        return None
    found: list[int] = []
    for view in views:
        try:
            change = below.find_showing(view)
        except UndecidedError:
            return None
        if change is not None:
            if not change.proved:
                return None
            found.append(change.norm)
    return min(found, default=None)


def _describe_no_change(
    domain: Domain, multiverse: Multiverse, unit: str, released: Views, *, total: bool
) -> Distance:
    """Return the distance where no view is known to change; proved where exact tables determine every view.

    The distance fixes the number of its own records alone: with one household changed there may be one person more.
    """
    kinds = sorted({view.record_type for view in released})
    alone = [ask_own_tables(domain, multiverse, kind, total=total and kind == unit) for kind in kinds]
    for question in alone:
        for view in released:
            if view.record_type == question.kind and _ask(question, view) != (None, True):
                return Distance(None, False, Phrase("distance.no_change_known"))
    return Distance(None, True, Phrase("distance.released_determined"))


def _find_in_tables(
    domain: Domain, multiverse: Multiverse, unit: str, *, total: bool
) -> "_FoundChange | Distance":
    """Find the change where views are not stated: among what exact tables show, then among all variables."""
    alone = ask_own_tables(domain, multiverse, unit, total=total)
    least, decided = _ask(alone)
    found, every, asked = _find_joint(domain, multiverse, unit, total=total)
    if found is None:
        if least is None and decided:
            return Distance(None, True, Phrase("distance.determined", record=noun(unit, "record")))
        return Distance(None, False, Phrase("distance.no_change_known"))
    lowest = decided and least is not None and least.proved and found.proved and least.norm == found.norm
    return _FoundChange(change=found, asked=asked, every=every, lowest=lowest)


def _find_joint(
    domain: Domain, multiverse: Multiverse, unit: str, *, total: bool
) -> tuple[LightestChange | None, bool, Question]:
    """Find the change under all tables of the joint record; for persons also what household tables show.

    The second answer says whether invariants that are no tables are kept too.
    """
    asked = ask_joint_tables(domain, multiverse, unit, unit, total=total, custom=True)
    best, _ = _ask(asked)
    if unit == PERSON:
        for kin in RELATED_TYPES[PERSON]:
            question = ask_joint_tables(domain, multiverse, unit, kin, total=total, custom=True)
            more, _ = _ask(question, shown_only=True) if question.own else (None, True)
            if more is not None and (best is None or more.norm >= best.norm):
                best, asked = more, question
    return best, all(i.needs() for i in multiverse), asked


def _ask(
    question: Question, view: Margin | None = None, *, shown_only: bool = False
) -> tuple[LightestChange | None, bool]:
    """Return the lightest change and whether the model decided; if not, a change that keeps more tables."""

    def search(asked: Question) -> LightestChange | None:
        return asked.find_telling(shown_only=shown_only) if view is None else asked.find_showing(view)

    try:
        return search(question), True
    except UndecidedError:
        for other in (question.without_restrictions(), question.outside_restrictions()):
            try:
                found = search(other)
            except UndecidedError:
                continue
            if found is not None:
                return found, False
        return None, False


def _is_plain_domain(domain: Domain, unit: str, premetric: RecordPremetric) -> bool:
    """Return whether the model describes the whole domain: listed variables, dependencies with one source."""
    return (
        domain.has(unit) and premetric.copies == 1 and all(len(rule.of) == 1 for rule in domain.rules(unit))
    )


def _write_reason(unit: str, value: int, found: LightestChange, asked: Question, *, total: bool) -> Phrase:
    signed = found.signed
    moved = sorted(signed.alternating - {UNLISTED})
    one, kind = noun(unit, "one_record"), "changed" if total else "added"
    if not total and value == 1:
        return Phrase("distance.added", one_record=one)
    if value == 1 or (not total and value == 2):
        shown = frozenset[str]().union(*(signed.model.find_shown_parts(m.by) for m in asked.margins))
        free = [name for name in moved if name not in shown]
        if free:
            return Phrase(f"distance.free_{kind}", one_record=one, variable=free[0])
        return Phrase(f"distance.alone_{kind}", one_record=one)
    number = Phrase(f"distance.at_once_{kind}", number=spell_number(value), records=noun(unit, "records"))
    if len(signed.cells) > 1:
        return Phrase("distance.search", number=number)
    limits = {name for margin in asked.margins for name in margin.conditions()}
    cell = signed.cells[0][0]
    among = (*(_write_level(name, cell[name]) for name in sorted(limits & {*cell})),)
    if among:
        ones = noun(unit, "ones")
        return Phrase("distance.apart_among", ones=ones, among=among, moved=(*moved,), number=number)
    return Phrase("distance.apart", moved=(*moved,), number=number)


def _write_level(name: str, level: str) -> str:
    if level.startswith(f"another {name} "):
        return Phrase("distance.another", variable=name)
    return f"{name} = {level}"


def write_pair(domain: Domain, signed: SignedTable, multiverse: Multiverse, unit: str) -> Witness:
    """Return the two data sets of a change, with every variable that differs or that a table needs."""
    named = {
        name
        for i in multiverse
        for m in i.needs()
        if m.record_type == unit
        for name in (*m.by, *m.conditions())
    }
    moving = signed.alternating
    if domain.has(unit):
        # levels of other record types in the joint record are no values of this one
        own = domain.record_type(unit).names()
        kept = tuple(({n: v for n, v in cell.items() if n in own}, number) for cell, number in signed.cells)
        signed = replace(signed, cells=kept)
        named |= {n for n in domain.record_type(unit).names() if domain.closure(unit, (n,)) & moving}
    return next(
        generate_pairs(signed, domain, Margin(unit), frozenset(named | {*moving}) - domain.identifiers(unit))
    )
