"""Derivations that are invented at random, of every rule, for statements that enumeration refutes.

Facts, premises and witnesses are made up; only the names of the rules are real. The checker must refuse them all, whatever
they say. `forgers` bends real derivations rule by rule; here the truth comes from enumeration alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import stirred.spec as sp
from oracles.towns import PERSON, Town
from stirred.spec import Specification, Verdict
from stirred.spec.verdict import DataSet, Derivation, Witness


@dataclass(frozen=True)
class Axis:
    """Levels of one variable, or of several together, as the rules for sums read them."""

    variables: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]


def step(rule: str, *premises: Derivation, witness: Witness | None = None, **facts: Any) -> Derivation:
    return Derivation(rule=rule, claim="forged", premises=premises, witness=witness, facts=facts)


@dataclass
class Forger:
    """Derivations invented for one town."""

    town: Town
    random: Random

    def yes(self, first: Specification, second: Specification) -> Iterator[tuple[str, Verdict]]:
        """Forged proofs that the first implies the second, with the name of the rule that is abused."""
        r = self.random
        for nested in self.nested(first, second):
            for name, budget in self.budgets(first, second):
                premises = r.choice(((nested, budget), (budget,), (nested, nested, budget)))
                yield name, Verdict.yes("forged", step("implication", *premises))
        tables = [
            sp.Margin(kind.name, kind.names() - second.domain.identifiers(kind.name))
            for kind in second.domain.record_types
        ]
        for given in self.givens(second):
            steps = [found for table in tables for found in [self.determined(given, table)]]
            yield "singletons", Verdict.yes("forged", step("singletons", step("all of", *steps)))
        yield "singletons", Verdict.yes("forged", step("singletons", step("all of")))
        for rule in ("no neighbours", "void", "same", "nothing promised"):
            yield rule, Verdict.yes("forged", step(rule))
            yield rule, Verdict.yes("forged", step(rule, step("no neighbours"), least=2))

    def givens(self, spec: Specification) -> Iterator[tuple[sp.Margin, ...]]:
        """Tables that a forger takes to be known: the invariants, with totals that nothing fixes."""
        margins = tuple(i for i in spec.multiverse if isinstance(i, sp.Margin))
        totals = tuple(sp.Margin(kind.name) for kind in spec.domain.record_types)
        yield margins
        yield (*margins, *totals)

    def determined(self, given: Sequence[sp.Margin], wanted: sp.Margin) -> Derivation:
        """A step that claims to conclude a table: an honest one where there is one, else an invented one."""
        domain = _domain(self.town)
        honest = sp.Multiverse.of(*given).refines(sp.Multiverse.of(wanted), domain)
        if honest.derivation is not None and honest:
            return honest.derivation
        return self.invented(given, wanted)

    def invented(self, given: Sequence[sp.Margin], wanted: sp.Invariant) -> Derivation:
        return self.random.choice(self.inventions(given, wanted))

    def inventions(self, given: Sequence[sp.Margin], wanted: sp.Invariant) -> list[Derivation]:
        """A step of every rule that may conclude a table."""
        table = wanted.needs()[0]
        some = self.random.choice(given) if given else table
        return [
            step("kept", wanted=wanted),
            step("read off", given=some, wanted=wanted),
            step("size", step("kept"), given=some, wanted=wanted),
            step("homes", step("kept"), wanted=wanted),
            step("function of", step("kept", wanted=table), wanted=wanted),
            step("some part", given=wanted, wanted=wanted),
            step("finite distance", step("kept", wanted=wanted), fixed=(wanted,)),
            step("finite distance", step("kept", wanted=wanted), fixed=tuple(given), wanted=wanted),
            *self.sums(given, table),
        ]

    def sums(self, given: Sequence[sp.Margin], wanted: sp.Margin) -> list[Derivation]:
        """Sums on levels that are not all of them: joint axes as if areas lay in each other, and axes with few levels."""
        r, found = self.random, []
        given = [g for g in given if g.record_type == wanted.record_type]
        if not given:
            return []
        names = tuple(
            sorted({*wanted.by, *wanted.conditions(), *(n for g in given for n in (*g.by, *g.conditions()))})
        )
        every = [self._levels(wanted.record_type, name) for name in names]
        if not names or not all(every):
            return []
        r.shuffle(given)
        for _ in range(2):
            # one combination of levels for each cell of a given table, which then seems to determine everything
            chosen: dict[Any, tuple[str, ...]] = {}
            for levels in r.sample(rows := list(product(*every)), len(rows)):
                cell = dict(zip(names, levels, strict=True))
                key = _key(given[0], cell)
                if key is not None:
                    chosen.setdefault(key, levels)
            combinations: dict[Any, dict[Any, Fraction]] = {}
            for levels in chosen.values():
                cell = dict(zip(names, levels, strict=True))
                mine, source = _key(wanted, cell), _key(given[0], cell)
                if mine is not None and source is not None:
                    combinations.setdefault(mine, {})[0, source] = Fraction(1)
            axes: tuple[Axis, ...] = (Axis(names, tuple(chosen.values())),)
            if r.random() < 0.3:
                axes = tuple(
                    Axis((name,), tuple((v,) for v in sorted({levels[i] for levels in chosen.values()})))
                    for i, name in enumerate(names)
                )
            facts = {"wanted": wanted, "given": tuple(given), "axes": axes, "combinations": combinations}
            found.append(step("sums", **facts))
        return [*found, step("every map", *found), step("every map", found[0], found[0])]

    def _levels(self, kind: str, name: str) -> tuple[str, ...]:
        return dict((*self.town.homes, *(self.town.people or ()))).get(name, ())

    def nested(self, first: Specification, second: Specification) -> Iterator[Derivation]:
        """Steps that claim to nest the universes."""
        for given in self.givens(second):
            yield step("all of", *(self.invented(given, wanted) for wanted in first.multiverse))
            margins = [w for w in first.multiverse if isinstance(w, sp.Margin)]
            yield step("all of", *(self.determined(given, wanted) for wanted in margins))

    def budgets(self, first: Specification, second: Specification) -> Iterator[tuple[str, Derivation]]:
        r = self.random
        numbers = {"first": first.budget.exact, "second": second.budget.exact}
        fixed = step("kept", wanted=sp.Margin(second.input_premetric.unit))
        for least in (1, 2, r.choice((-100, 0, 3, 100, "2.5", None))):
            factor = r.choice((Fraction(1), Fraction(1, 2), Fraction(1, 1000)))
            premises = (fixed,) if r.random() < 0.5 else ()
            yield "budget", step("budget", *premises, **numbers, factor=factor, least=least)
        yield "parts", step("parts", **numbers)
        yield "parts", step("parts", first="0", second="5")
        yield "laws", step("laws", **numbers)

    def no(self, first: Specification, second: Specification) -> Iterator[tuple[str, Verdict]]:
        """Forged refutations of an implication that holds."""
        r, town = self.random, self.town
        for _ in range(6):
            x, y = r.randrange(len(town.data)), r.randrange(len(town.data))
            pair = Witness(*(written(town, place, r) for place in (x, y)))
            mechanism = r.choice(("publish", "randomised response", "gaussian", "reveal", "anything"))
            facts: dict[str, Any] = {"mechanism": mechanism, "limit": "0", "distance": r.choice((1, 2))}
            if r.random() < 0.3:
                facts["copies"] = r.choice((-1, 0, 2, 3))
            if r.random() < 0.3:
                facts["part"] = r.choice((0, 1))
            yield mechanism, Verdict.no("forged", step("mechanism", witness=pair, **facts))
        yield "realised universe", Verdict.no("forged", step("realised universe", b=3))


def written(town: Town, place: int, random: Random) -> DataSet:
    """A data set as the library writes a witness: all its records, or those of one type."""
    kinds = [town.kind] if town.people is None or random.random() < 0.6 else [town.kind, PERSON]
    own = {town.kind: {n for n, _ in town.homes}, PERSON: {n for n, _ in town.people or ()} | {*town.spine}}
    rows = [
        (kind, tuple(sorted((n, v) for n, v in row.items() if n in own[kind])), 1)
        for number in town.data[place]
        for kind in kinds
        for row in town.rows(kind, town.kinds[number])
    ]
    return DataSet.collect(rows)


def _key(margin: sp.Margin, cell: dict[str, str]) -> tuple[str, ...] | None:
    if any(cell[name] not in values for name, values in margin.conditions().items()):
        return None
    return tuple(cell[name] for name in margin.by)


def _domain(town: Town) -> sp.Domain:
    from oracles.cases import domain_of

    return domain_of(town)
