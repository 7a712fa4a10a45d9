"""The smallest distance between two data sets of one universe that a release can tell apart, true or on the safe side.

Safe means never too small: a larger distance gives larger odds. So the answer is the distance of a pair that exists, and
``exact`` says whether a smaller one is ruled out too. What a release shows are its *views* (see `released`): tables that its
law is a function of. A change counts only where some view shows it, whatever else a codebook lists.

1. *Views.* Of each view that no other one covers, the lightest change is sought that leaves all exact tables as they are and
   that the view shows. The largest of these distances is shown, so that one more table never lowers the odds; views
   that the exact tables determine are left aside. Where no view can change, nothing is known to be protected.
2. *Persons in households.* Tables and views of persons, of their households and of housing units are tables of one joint
   record, so a person changes together with its place and its household.
3. *Not stated.* Where a specification does not state its views, every variable may be released. Then records are of one kind
   where the same tables count them; each kind has its own smallest distance, sought first among the variables that exact
   tables show (all that a swap releases), then among all; the largest is shown. Where exact tables of households
   allow no smaller change than k households, persons are shown at k as well.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from stirred.languages import Phrase, spell_number
from stirred.languages import unit as noun
from stirred.spec.domain import Domain
from stirred.spec.invariants.axes import UndecidedError
from stirred.spec.invariants.determine import SignedTable, generate_pairs
from stirred.spec.multiverse import Margin, Multiverse
from stirred.spec.nearest.joint_records import (
    PERSON,
    RELATED_TYPES,
    ask_joint_tables,
    ask_lower_tables,
    ask_own_tables,
    join_record_views,
)
from stirred.spec.nearest.questions import UNLISTED, LightestChange, Question
from stirred.spec.premetrics import Hamming, InputPremetric, RecordPremetric
from stirred.spec.released import Views
from stirred.spec.verdicts.witness import Witness

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
    if not premetric.neighbours_only:
        return Distance(1, False, Phrase("distance.no_rule", premetric=str(premetric)))
    near = smallest_distance(domain, multiverse, premetric.unrestricted, views)
    if near.exact and near.value != 1:
        return Distance(1, False, Phrase("distance.no_neighbours", reason=near.because))
    pair = near.pair if near.value == 1 else None
    return Distance(1, near.exact, Phrase("distance.neighbours"), pair, near.moved)


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
