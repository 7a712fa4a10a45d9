"""Define the answer to a question about proofs, its derivation, its witness and what a witness must fulfil."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Any

from stirred.spec.domain import Domain
from stirred.spec.invariants import AtLeast, Invariant, Margin

# Small data sets that are written out, and pairs of them that prove a "no".

Values = tuple[tuple[str, str], ...]  # variables with their values, sorted by name


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set as distinct records with their number; variables that are left out are equal in all records.

    >>> x = DataSet.of("household", [({"tenure": "own"}, 2), ({"tenure": "rent"}, 1)])
    >>> x.table(Margin("household", ("tenure",)))
    {('own',): 2, ('rent',): 1}
    """

    rows: tuple[tuple[str, Values, int], ...]  # record type, values, number of such records

    @staticmethod
    def of(record_type: str, records: Iterable[tuple[Mapping[str, str], int]]) -> "DataSet":
        return DataSet.collect((record_type, tuple(sorted(values.items())), n) for values, n in records)

    @staticmethod
    def collect(rows: Iterable[tuple[str, Values, int]]) -> "DataSet":
        """Return a data set with equal records in one row, in a fixed order."""
        found: dict[tuple[str, Values], int] = {}
        for record_type, values, number in rows:
            found[record_type, values] = found.get((record_type, values), 0) + number
        return DataSet(tuple((kind, values, n) for (kind, values), n in sorted(found.items()) if n))

    def __add__(self, other: "DataSet") -> "DataSet":
        """Return a data set with the records of both."""
        return DataSet.collect((*self.rows, *other.rows))

    def records(self, record_type: str) -> Iterator[tuple[dict[str, str], int]]:
        for kind, values, number in self.rows:
            if kind == record_type:
                yield dict(values), number

    def size(self, record_type: str) -> int:
        return sum(number for _, number in self.records(record_type))

    def table(self, margin: Margin) -> dict[tuple[str, ...], int]:
        """Return the counts of a margin, without cells of zero."""
        found: dict[tuple[str, ...], int] = {}
        conditions = margin.conditions()
        for values, number in self.records(margin.record_type):
            if all(values.get(name, "") in allowed for name, allowed in conditions.items()):
                key = tuple(values.get(name, "") for name in margin.by)
                found[key] = found.get(key, 0) + number
        return found

    def to_json(self) -> list[dict[str, Any]]:
        return [{"record_type": kind, "values": dict(values), "number": n} for kind, values, n in self.rows]

    def __str__(self) -> str:
        return ", ".join(f"{n} × ({_write_values(values)})" for _, values, n in self.rows) or "no records"


def _write_values(values: Values) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values) or "any"


@dataclass(frozen=True, slots=True)
class Witness:
    """Two data sets that prove a "no"; the same further records may be added to both."""

    first: DataSet
    second: DataSet

    def distance(self, record_type: str) -> int | None:
        """Return how many records of the type differ, |x ⊖ x'|/2, or None where their numbers differ."""
        if self.first.size(record_type) != self.second.size(record_type):
            return None
        return self.difference(record_type) // 2

    def difference(self, record_type: str) -> int:
        """Return |x ⊖ x'|, the number of records that are in one data set and not in the other."""
        counts: dict[Values, int] = {}
        for sign, data in ((1, self.first), (-1, self.second)):
            for kind, values, number in data.rows:
                if kind == record_type:
                    counts[values] = counts.get(values, 0) + sign * number
        return sum(map(abs, counts.values()))

    def reverse(self) -> "Witness":
        """Return the witness with its two data sets in the other order."""
        return Witness(self.second, self.first)

    def with_background(self, more: DataSet) -> "Witness":
        return Witness(self.first + more, self.second + more)

    def to_json(self) -> dict[str, Any]:
        return {"x": self.first.to_json(), "x'": self.second.to_json()}

    def __str__(self) -> str:
        """Return both data sets as text, without variables that are equal in all records."""
        rows = [dict(values) for data in (self.first, self.second) for _, values, _ in data.rows]
        names = {name for row in rows for name in row if len({other.get(name) for other in rows}) > 1}
        rest = "" if all({*row} <= names for row in rows) else ", all else equal"
        return f"x = {_write_short(self.first, names)}; x' = {_write_short(self.second, names)}{rest}"


def _write_short(data: DataSet, names: set[str]) -> str:
    kept = (
        (kind, tuple((n, v) for n, v in values if n in names), number) for kind, values, number in data.rows
    )
    return str(DataSet.collect(kept))


# A derivation: the rule that gives a verdict, what it rests on, and the witness where there is one.


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """One step: ``claim`` follows from the premises by ``rule``; ``facts`` hold what a checker needs to verify it.

    >>> step = Derivation(rule="budget", claim="1 ≤ 2", facts={"first": "1", "second": "2"})
    >>> print(Derivation(rule="implication", claim="the first implies the second", premises=(step,)))
    the first implies the second [implication]
    └─ 1 ≤ 2 [budget]
    """

    rule: str
    claim: str
    premises: "tuple[Derivation, ...]" = ()
    witness: Witness | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield the tree, one line for each step."""
        yield f"{self.claim} [{self.rule}]"
        branches: list[list[str]] = [list(premise.lines()) for premise in self.premises]
        # a step that rests on the same pair shows it already
        if self.witness is not None and all(premise.witness != self.witness for premise in self.premises):
            branches.append([f"witness: {self.witness}"])
        last = len(branches) - 1
        for place, branch in enumerate(branches):
            yield ("└─ " if place == last else "├─ ") + branch[0]
            yield from (("   " if place == last else "│  ") + line for line in branch[1:])

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_json(self) -> dict[str, Any]:
        """Return the whole tree as plain data."""
        document: dict[str, Any] = {"rule": self.rule, "claim": self.claim}
        if self.premises:
            document["premises"] = [premise.to_json() for premise in self.premises]
        if self.witness is not None:
            document["witness"] = self.witness.to_json()
        if self.facts:
            document["facts"] = {name: _to_plain(value) for name, value in self.facts.items()}
        return document


def _to_plain(value: Any) -> Any:
    """Return a fact as JSON: objects by their own JSON or text, fractions as text."""
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, DataSet | Witness):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(key): _to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | frozenset | set):
        return [_to_plain(item) for item in value]
    return str(value)


# The answer to a question about proofs: yes, no or unknown, with the rule used.


class Answer(Enum):
    """The three answers to a question about proofs."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer with its reason and its derivation; only a proved yes is truthy.

    >>> bool(Verdict.unknown("no rule relates the two"))
    False
    """

    answer: Answer
    because: str
    derivation: Derivation | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def yes(because: str, derivation: Derivation | None = None) -> "Verdict":
        return Verdict(Answer.YES, because, derivation)

    @staticmethod
    def no(because: str, derivation: Derivation | None = None) -> "Verdict":
        return Verdict(Answer.NO, because, derivation)

    @staticmethod
    def unknown(because: str) -> "Verdict":
        return Verdict(Answer.UNKNOWN, because)

    @property
    def why(self) -> str:
        """Return the derivation as a short tree; for "unknown" the reason alone."""
        return str(self.derivation) if self.derivation is not None else self.because

    def __bool__(self) -> bool:
        return self.answer is Answer.YES

    def __str__(self) -> str:
        first = f"{self.answer.value}: {self.because}"
        if self.derivation is None or not (self.derivation.premises or self.derivation.witness):
            return first
        return "\n".join([first, *(f"  {line}" for line in self.derivation.lines())])


def combine_verdicts(verdicts: Sequence[Verdict], otherwise: str, *, rule: str = "all of") -> Verdict:
    """Return yes if all are yes, no if one is no, else unknown, with the reason of the first that decides.

    >>> str(combine_verdicts([Verdict.yes("a"), Verdict.unknown("b")], "nothing is asked"))
    'unknown: b'
    """
    for answer in (Answer.NO, Answer.UNKNOWN):
        for verdict in verdicts:
            if verdict.answer is answer:
                return verdict
    because = "; ".join(dict.fromkeys(v.because for v in verdicts)) or otherwise
    steps = tuple(v.derivation for v in verdicts if v.derivation is not None)
    if len(steps) == 1 == len(verdicts):
        return Verdict.yes(because, steps[0])
    return Verdict.yes(
        because, Derivation(rule=rule, claim=because if not steps else "all of these hold", premises=steps)
    )


# Checking a witness: two data sets of the domain that agree on some invariants and differ on another.
#
# It shares no code with the search for witnesses, which calls it before it answers "no". It counts records and reads
# the domain, and nothing else.

PERSON, HOUSEHOLD, UNIT, QUARTERS = "person", "household", "housing unit", "group quarters"
# types of which no record belongs to a record of the other
_APART = {frozenset((HOUSEHOLD, QUARTERS)), frozenset((UNIT, QUARTERS))}


def find_fault(domain: Domain, kept: Sequence[Invariant], changed: Invariant | None, pair: Witness) -> str:
    """Return why the pair does not show that ``kept`` leaves ``changed`` open; empty where it does.

    With ``changed`` None the two data sets only have to be different.

    >>> x, y = (DataSet.of("household", [({"tenure": value}, 1)]) for value in ("own", "rent"))
    >>> find_fault(Domain(name="toy"), [Margin("household")], Margin("household", ("tenure",)), Witness(x, y))
    ''
    >>> find_fault(Domain(name="toy"), [Margin("household", ("tenure",))], None, Witness(x, y))
    'the two data sets differ in: households by tenure'
    """
    if not any(pair.difference(kind) for kind in _list_types(pair)):
        return "the two data sets are equal"
    asked = [*kept, *([] if changed is None else [changed])]
    if _lacks_variables([margin for invariant in asked for margin in invariant.needs()], pair):
        return "the records leave out a variable that an invariant reads"
    for invariant in kept:
        same = _agree(invariant, pair)
        if same is None:
            return f"nothing says what determines: {invariant}"
        if not same:
            return f"the two data sets differ in: {invariant}"
    if changed is not None and not _differ(changed, pair):
        return f"the two data sets agree on: {changed}"
    margins = [margin for invariant in kept for margin in invariant.needs()]
    return find_inadmissible(domain, pair) or _find_incoherent(domain, margins, pair)


def _list_types(pair: Witness) -> set[str]:
    return {kind for data in (pair.first, pair.second) for kind, _, _ in data.rows}


def _lacks_variables(margins: Sequence[Margin], pair: Witness) -> bool:
    """Return whether some record lacks a variable of a table that counts its type."""
    for data in (pair.first, pair.second):
        for kind, values, _ in data.rows:
            mine = [m for m in margins if m.record_type == kind]
            named = {name for name, _ in values}
            if any(not named.issuperset((*m.by, *m.conditions())) for m in mine):
                return True
    return False


def _agree(invariant: Invariant, pair: Witness) -> bool | None:
    if isinstance(invariant, AtLeast):
        first, second = (_find_deciding_cells(invariant, data) for data in (pair.first, pair.second))
        return first == second
    needs = invariant.needs()
    if not needs:
        return None
    return all(pair.first.table(margin) == pair.second.table(margin) for margin in needs)


def _differ(invariant: Invariant, pair: Witness) -> bool:
    if isinstance(invariant, AtLeast):
        return _find_deciding_cells(invariant, pair.first) != _find_deciding_cells(invariant, pair.second)
    if isinstance(invariant, Margin):
        return pair.first.table(invariant) != pair.second.table(invariant)
    return False  # of another statistic only what determines it is known


def _find_deciding_cells(invariant: AtLeast, data: DataSet) -> frozenset[tuple[str, ...]]:
    """Return the cells that decide the inequality: those that reach a number, or those that miss a margin."""
    have = data.table(invariant.statistic)
    if isinstance(invariant.than, int):
        return frozenset(cell for cell, count in have.items() if count >= invariant.than)
    want = data.table(invariant.than)
    return frozenset(cell for cell, count in want.items() if have.get(cell, 0) < count)


def find_inadmissible(domain: Domain, pair: Witness) -> str:
    """Return why one of the two is not a data set of the domain; empty where no rule is broken."""
    both = [(kind, dict(values)) for data in (pair.first, pair.second) for kind, values, _ in data.rows]
    if any(number < 1 for data in (pair.first, pair.second) for _, _, number in data.rows):
        return "a number of records is not positive"
    for kind in _list_types(pair):
        problem = _find_unlisted(domain, kind, [values for k, values in both if k == kind])
        if problem:
            return problem
    for kind in _list_types(pair):
        for rule in domain.rules(kind):
            found: dict[tuple[str, ...], tuple[str, ...]] = {}
            for _, values in ((k, v) for k, v in both if k == kind):
                if not all(name in values for name in (*rule.of, *rule.determines)):
                    continue
                key, seen = (tuple(values[n] for n in names) for names in (rule.of, rule.determines))
                if found.setdefault(key, seen) != seen:
                    return f"it breaks {rule}"
        if _repeats_identifier(domain, kind, pair):
            return "two records have the same identifier"
        for constraint in domain.constraints:
            if constraint.record_type not in {"", kind}:
                continue
            if not constraint.variables:
                return f"nothing says that it meets the constraint: {constraint.words}"
            if not _has_two_profiles([values for k, values in both if k == kind], constraint.variables):
                return f"nothing says that it meets the constraint: {constraint.words}"
    return ""


def _find_unlisted(domain: Domain, kind: str, records: Sequence[dict[str, str]]) -> str:
    """Return why the records do not fit the variables and levels of the domain; empty where they fit."""
    if not domain.has(kind) or not domain.record_type(kind).variables:
        return ""
    known = {variable.name: variable for variable in domain.record_type(kind).variables}
    tied = {name for rule in domain.rules(kind) for name in (*rule.of, *rule.determines)}
    free = {name for c in domain.constraints if c.record_type in {"", kind} for name in c.variables}
    for name in {name for values in records for name in values}:
        if name not in known:
            if name in domain.spine:
                continue
            return f"the domain lists no variable {name} of a {kind}"
        used = {values[name] for values in records if name in values}
        levels, size = known[name].levels, known[name].size
        # which area lies in which, and which records a constraint admits, is not listed: there a value may stand for one
        named = {value for value in used if value.startswith(f"{name} ")} if name in tied | free else set()
        if isinstance(levels, tuple) and not all(value in levels for value in used - named):
            return f"{name} has no such level"
        if size is not None and len(used) > size:
            return f"{name} has not so many levels"
    return _find_branching(domain, kind, records)


def _find_branching(domain: Domain, kind: str, records: Sequence[dict[str, str]]) -> str:
    """Return why the pair's areas may not exist: unless maps are listed, one area with two parts is sure."""
    branches = 0
    for rule in domain.rules(kind):
        if len(rule.of) != 1 or len(rule.determines) != 1:
            continue
        fine, coarse = rule.of[0], rule.determines[0]
        sizes = [domain.levels(kind, name) for name in (fine, coarse)]
        symbolic = any(values.get(fine, "").startswith(f"{fine} ") for values in records)
        if sizes[0] is None or sizes[1] is None or not symbolic:
            continue
        parts: dict[str, set[str]] = {}
        for values in records:
            if fine in values:
                parts.setdefault(values.get(coarse, ""), set()).add(values[fine])
        more = [len(found) for found in parts.values() if len(found) > 1]
        if more and len(sizes[0]) <= len(sizes[1]):
            return f"no {coarse} is sure to have two parts"
        branches += sum(n - 1 for n in more)
    return "" if branches <= 1 else "the areas of the domain need not lie in each other so"


def _has_two_profiles(records: Sequence[dict[str, str]], names: Iterable[str]) -> bool:
    """Return whether the records have one combination of these variables, or two that differ in each of them.

    A constraint leaves such combinations admissible, by what `Constraint` says of its variables.
    """
    told = [name for name in names if any(name in values for values in records)]
    found = {tuple(values.get(name) for name in told) for values in records}
    if len(found) <= 1:
        return True
    return len(found) == 2 and all(a != b for a, b in zip(*found, strict=True))


def _repeats_identifier(domain: Domain, kind: str, pair: Witness) -> bool:
    for name in domain.identifiers(kind):
        for data in (pair.first, pair.second):
            used = [n for values, n in data.records(kind) if name in values]
            named = [values[name] for values, _ in data.records(kind) if name in values]
            if any(n > 1 for n in used) or len(set(named)) < len(named):
                return True
    return False


def _find_incoherent(domain: Domain, margins: Iterable[Margin], pair: Witness) -> str:
    """Return why the other record types could not stay as they are; empty where they can.

    Persons live in households and facilities, households in housing units. Records of one type change here; tables of
    linked types must stay the same. They do

    - for households that are changed in place in variables those tables do not read; a household that moves into a vacant
      unit leaves the number of units in each area as it was, two that exchange their homes leave everything about them;
    - for persons where those tables read only areas (a person enters or leaves a home that is there);
    - for vacant housing units, in which nobody lives.
    """
    (kind, *more) = sorted(kind for kind in _list_types(pair) if pair.difference(kind))
    if more:
        return "records of several types change"
    others = [m for m in margins if m.record_type != kind and frozenset((m.record_type, kind)) not in _APART]
    records = [values for data in (pair.first, pair.second) for values, _ in data.records(kind)]
    names = {name for values in records for name in values}
    if kind in {HOUSEHOLD, UNIT}:
        others = [m for m in others if not _counts_outside_homes(m)]
    if kind == HOUSEHOLD:
        homes = Margin(kind, names & {*domain.spine})
        exchanged = pair.first.table(homes) == pair.second.table(homes)
        others = [
            m
            for m in others
            if m.record_type != UNIT or not (exchanged or {*m.by, *m.conditions()} <= {*domain.spine})
        ]
    if not others:
        return ""
    read = frozenset[str]().union(
        *(domain.closure(margin.record_type, (*margin.by, *margin.conditions())) for margin in others)
    )
    counting = {domain.size_variable, "size", "members"}
    if kind == PERSON:
        seen = {n for m in others if m.record_type == HOUSEHOLD for n in (*m.by, *m.conditions())}
        enters = seen <= {*domain.spine} and not read & counting
        return "" if enters else "a table of the homes might change with the persons in them"
    vacant = {values.get("occupancy") for values in records} == {"vacant"}
    if kind == UNIT and vacant and all(m.record_type in {HOUSEHOLD, PERSON} for m in others):
        return ""
    for name in sorted(names):
        moved = {other for other in names if name in domain.closure(kind, (other,))}
        rest = Margin(kind, names - moved)
        if pair.first.table(rest) == pair.second.table(rest) and not moved & (read | counting):
            return ""
    return "a table of another record type might change too"


def _counts_outside_homes(margin: Margin) -> bool:
    """Return whether a table counts persons who do not live in households."""
    quarters = margin.conditions().get("quarters")
    return margin.record_type == PERSON and quarters is not None and HOUSEHOLD not in quarters
