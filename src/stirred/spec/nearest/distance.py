"""The smallest distance between two data sets of one universe that a release can tell apart, true or on the safe side.

Safe means never too small: a larger distance gives larger odds. So the answer is the distance of a pair that exists, and
``exact`` says whether a smaller one is ruled out too. Three rules keep it safe where records or variables differ in kind:

1. *Kinds of records.* Records are of one kind where the same tables count them. Each kind has its own smallest distance;
   the largest of them is shown. Records that no table counts are left aside while any other record can change.
2. *What tables show.* Within a kind, a change is sought first among the variables that exact tables show: a swap releases
   these and nothing else. Only where none of them can change, the others are asked too (noisy tables may show them).
3. *Persons in households.* A person's record is part of a household's. Tables of both bind the same joint record, and
   where exact tables of households allow no smaller change than k households, persons are shown at k as well.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from stirred.languages import Phrase, spelled
from stirred.languages import unit as noun
from stirred.spec.domain import Domain
from stirred.spec.invariants.axes import UndecidedError
from stirred.spec.invariants.determine import Signed, pairs
from stirred.spec.multiverse import AtLeast, Margin, Multiverse
from stirred.spec.nearest.joint_records import KIN, PERSON, joint_tables, own_tables
from stirred.spec.nearest.questions import UNLISTED, LightestChange, Question
from stirred.spec.premetrics import Hamming, InputPremetric, RecordPremetric
from stirred.spec.verdicts.witness import Witness


@dataclass(frozen=True, slots=True)
class Distance:
    """A smallest distance: ``value`` None where every universe is a single data set; else never below the true one.

    ``exact``: it is the true one. ``moved``: the variables that records exchange at that distance. ``safe`` is False where
    no pair is known that keeps all invariants and rules: then the value is what the exact tables allow.
    """

    value: int | None
    exact: bool
    because: str
    pair: Witness | None = None
    moved: tuple[str, ...] = ()
    safe: bool = True

    @property
    def occurs(self) -> str:
        """How sure it is that nothing smaller happens, as the end of "the smallest change"."""
        if self.exact:
            return Phrase("distance.can_occur")
        return Phrase("distance.known_to_occur" if self.safe else "distance.tables_allow")


def smallest_distance(domain: Domain, multiverse: Multiverse, premetric: InputPremetric) -> Distance:
    r"""The smallest distance that the odds are read at.

    For margins of a complete product it is $2^{|F|-1}$ (Hamming), with $F$ the smallest set of variables in no margin.

    >>> from stirred.spec.domain import RecordType, Variable
    >>> variables = tuple(Variable(name=name) for name in "uvw")
    >>> toy = Domain(name="toy", record_types=(RecordType(name="household", variables=variables),))
    >>> tables = Multiverse.of(*(Margin("household", tuple(names)) for names in ("uv", "uw", "vw")))
    >>> found = smallest_distance(toy, tables, Hamming("household"))
    >>> found.value, found.exact
    (4, True)
    """
    if isinstance(premetric, RecordPremetric):
        return _smallest(domain, multiverse, premetric)
    if not premetric.neighbours_only:
        return Distance(1, False, Phrase("distance.no_rule", premetric=str(premetric)))
    near = smallest_distance(domain, multiverse, premetric.unrestricted)
    if near.exact and near.value != 1:
        return Distance(1, False, Phrase("distance.no_neighbours", reason=near.because))
    pair = near.pair if near.value == 1 else None
    return Distance(1, near.exact, Phrase("distance.neighbours"), pair, near.moved)


@lru_cache(maxsize=512)
def _smallest(domain: Domain, multiverse: Multiverse, premetric: RecordPremetric) -> Distance:
    unit, total = premetric.record_type, isinstance(premetric, Hamming)
    alone = own_tables(domain, multiverse, unit, total=total)
    least, decided = _asked(alone)
    found, every, asked = _joint(domain, multiverse, unit, total=total)
    if found is None:
        if least is None and decided:
            return Distance(None, True, Phrase("distance.determined", record=noun(unit, "record")))
        if least is None:
            told = Phrase("distance.undecided", one_record=noun(unit, "one_record"))
            return Distance(1, False, told, safe=False)
        found, every, asked = least, False, alone
    value = found.norm // 2 if total else found.norm
    lowest = value == 1 or (
        decided and least is not None and least.proved and found.proved and least.norm == found.norm
    )
    safe = every and found.free and all(c.variables or c.kind == "size" for c in domain.constraints)
    exact = lowest and safe and _plain_domain(domain, unit, premetric)
    cells = [cell for cell, _ in found.signed.cells]
    differing = {name for cell in cells for name in cell if cell[name] != cells[0][name]}
    moved = tuple(sorted({*found.signed.alternating, *differing} - {UNLISTED}))
    because = _because(unit, value, found, asked, total=total)
    if not safe:
        because = Phrase("distance.larger_only", reason=because)
    elif not lowest:
        because = Phrase("distance.not_ruled_out", reason=because)
    return Distance(value, exact, because, written(domain, found.signed, multiverse, unit), moved, safe)


def _joint(
    domain: Domain, multiverse: Multiverse, unit: str, *, total: bool
) -> tuple[LightestChange | None, bool, Question]:
    """The change with all tables of the joint record in force; for persons also the one that tables of households show.

    The second answer says whether invariants that are no tables are kept too.
    """
    others = any(not isinstance(i, Margin | AtLeast) for i in multiverse)
    unknown = any(not i.needs() for i in multiverse)
    for custom in (True, False) if others else (True,):
        asked = joint_tables(domain, multiverse, unit, unit, total=total, custom=custom)
        best, _ = _asked(asked)
        if unit == PERSON:
            for kin in KIN[PERSON]:
                question = joint_tables(domain, multiverse, unit, kin, total=total, custom=custom)
                more, _ = _asked(question, shown_only=True) if question.own else (None, True)
                if more is not None and (best is None or more.norm >= best.norm):
                    best, asked = more, question
        if best is not None:
            return best, custom and not unknown, asked
    return None, False, asked


def _asked(question: Question, *, shown_only: bool = False) -> tuple[LightestChange | None, bool]:
    """The change, and whether the model decided; else a change that keeps more than the given tables."""
    try:
        return question.telling(shown_only=shown_only), True
    except UndecidedError:
        for other in (question.without_restrictions(), question.outside_restrictions()):
            try:
                found = other.telling(shown_only=shown_only)
            except UndecidedError:
                continue
            if found is not None:
                return found, False
        return None, False


def _plain_domain(domain: Domain, unit: str, premetric: RecordPremetric) -> bool:
    """Whether the model says all of the domain: variables are listed, dependencies have one source."""
    return (
        domain.has(unit) and premetric.copies == 1 and all(len(rule.of) == 1 for rule in domain.rules(unit))
    )


def _because(unit: str, value: int, found: LightestChange, asked: Question, *, total: bool) -> Phrase:
    signed = found.signed
    moved = sorted(signed.alternating - {UNLISTED})
    one, kind = noun(unit, "one_record"), "changed" if total else "added"
    if not total and value == 1:
        return Phrase("distance.added", one_record=one)
    if value == 1 or (not total and value == 2):
        shown = frozenset[str]().union(*(signed.model.shown(m.by) for m in asked.margins))
        free = [name for name in moved if name not in shown]
        if free:
            return Phrase(f"distance.free_{kind}", one_record=one, variable=free[0])
        return Phrase(f"distance.alone_{kind}", one_record=one)
    number = Phrase(f"distance.at_once_{kind}", number=spelled(value), records=noun(unit, "records"))
    if len(signed.cells) > 1:
        return Phrase("distance.search", number=number)
    limits = {name for place in asked.own for name in asked.margins[place].conditions()}
    cell = signed.cells[0][0]
    among = (*(_level(name, cell[name]) for name in sorted(limits & {*cell})),)
    if among:
        ones = noun(unit, "ones")
        return Phrase("distance.apart_among", ones=ones, among=among, moved=(*moved,), number=number)
    return Phrase("distance.apart", moved=(*moved,), number=number)


def _level(name: str, level: str) -> str:
    if level.startswith(f"another {name} "):
        return Phrase("distance.another", variable=name)
    return f"{name} = {level}"


def written(domain: Domain, signed: Signed, multiverse: Multiverse, unit: str) -> Witness:
    """The two data sets of a change, with every variable that differs or that a table asks for."""
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
    return next(pairs(signed, domain, Margin(unit), frozenset(named | {*moving}) - domain.identifiers(unit)))
