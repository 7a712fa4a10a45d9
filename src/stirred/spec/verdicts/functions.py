"""Implication where a budget differs by universe: by the order of the laws, or at one universe that refutes it."""

from collections.abc import Iterable
from dataclasses import dataclass

from stirred.spec.algebra.stated import Stated
from stirred.spec.laws.functions import Promised, compare_functions
from stirred.spec.outputs.divergences import Multiplicative, NormalizedRenyi
from stirred.spec.premetrics import Hamming, SymmetricDifference
from stirred.spec.verdict import Verdict
from stirred.spec.verdicts.budgets import BudgetQuestion, at_pair, known
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.examples import Example, with_finer_strata, with_largest_stratum

LARGEST_TRIED = (2, 3, 10, 1000, 10**6, 10**12)


@dataclass(frozen=True, slots=True)
class FunctionQuestion(BudgetQuestion):
    """Whether the first implies the second, where one of the budgets differs by universe."""

    def answer(self) -> Verdict:
        first, second = self.first, self.second
        same = (
            first.input_premetric == second.input_premetric
            and first.output_premetric == second.output_premetric
        )
        if same:
            order = compare_functions(
                Promised(first.budget, first.varies), Promised(second.budget, second.varies)
            )
            if order.answer == "yes" and not self._covered():
                several = (
                    "where b = 0 the second promises that nothing is lost, and such a universe may be large"
                )
                return known(self._in_small_universe(), Verdict.unknown(several))
            if order.answer == "yes":
                facts = {"first": _function(first), "second": _function(second)}
                return self._implied(order.because, Derivation(rule="laws", claim=order.because, facts=facts))
            if order.answer == "unknown" or order.b is None:
                return known(
                    self._at_some_universe(LARGEST_TRIED, ""),
                    self._in_finer_strata(),
                    Verdict.unknown(order.because),
                )
            if order.realised and not self._exchangeable():
                return Verdict.unknown(f"{order.because}, and no pair of data sets is known there")
            if order.realised:
                numbers = {"first": first.budget.exact, "second": second.budget.exact, "b": order.b}
                step = Derivation(rule="realised universe", claim=order.because, facts=numbers)
                return Verdict.no(order.because, step)
            places = range(order.b, order.b + 8)
            return known(self._at_some_universe(places, order.because), Verdict.unknown(order.because))
        told = "; ".join(spec.varies.words for spec in (first, second) if spec.varies is not None)
        return known(
            self._by_bounds() if self._covered() else self._in_small_universe(),
            self._at_some_universe(LARGEST_TRIED, ""),
            Verdict.unknown(f"a budget differs by universe, and no rule decides in all of them: {told}"),
        )

    def _covered(self) -> bool:
        """Whether b = 0 needs nothing: the first loses nothing there either, or each such universe is one data set."""
        function, mine = self.second.varies, self.first.varies
        if function is None or function.law is None or (self.first.budget.is_zero and mine is None):
            return True
        statistic = function.statistic
        if mine is not None and mine.law is not None and mine.statistic is not None and statistic is not None:
            # then the first's b is 0 there as well, and only a budget that was raised may be above 0
            small = any((b := f.b) is not None and b < 2 for f in (mine, function))
            raised = small and self.first.budget > self.second.budget
            return mine.statistic.never_above(statistic) and (not raised or self._one_data_set())
        return self._one_data_set()

    def _one_data_set(self) -> bool:
        """Whether a universe with b = 0 is one data set: the strata of the second tell everything about a record."""
        statistic = None if self.second.varies is None else self.second.varies.statistic
        domain = self.second.domain
        if statistic is None or [kind.name for kind in domain.record_types] != [statistic.record_type]:
            return False
        kind = statistic.record_type
        seen = domain.closure(kind, (*statistic.match, *statistic.hold, *statistic.swap))
        return domain.record_type(kind).names() - domain.identifiers(kind) <= seen

    def _exchangeable(self) -> bool:
        """Whether two records can exchange what is swapped inside the realised universe, at a finite distance.

        Only then is the larger budget used up there, by a mechanism of pure DP or zCDP.
        """
        first, domain = self.first, self.first.domain
        known_measure = type(first.output_premetric) in {Multiplicative, NormalizedRenyi}
        if not known_measure or not isinstance(first.input_premetric, Hamming | SymmetricDifference):
            return False
        if first.multiverse != self.second.multiverse:
            return False
        for function in (first.varies, self.second.varies):
            statistic = None if function is None else function.statistic
            if function is None:
                continue
            if statistic is None:
                return False
            kind = statistic.record_type
            held = domain.closure(kind, (*statistic.match, *statistic.hold))
            moved = domain.closure(kind, (*statistic.match, *statistic.swap))
            own = {*statistic.swap} - {*statistic.match, *statistic.hold}
            rules = [rule for rule in domain.constraints if rule.record_type in {"", kind}]
            if any(not rule.variables or own & {*rule.variables} for rule in rules):
                return False
            for invariant in first.multiverse:
                tables = invariant.needs()
                if not tables or any(
                    table.record_type == kind
                    and not any({*table.by, *table.conditions()} <= seen for seen in (held, moved))
                    for table in tables
                ):
                    return False
        return True

    def _in_small_universe(self) -> Verdict | None:
        """A no at the pair itself, where its universe has b = 0 and the second promises that nothing is lost."""
        limit, budget = at_pair(self.second, self.pair.pair), at_pair(self.first, self.pair.pair)
        if limit is None or budget is None or self.pair.pair is None:
            return None
        found, allowed = self._transferred(budget, limit, self.pair.pair)
        return self._told(found, limit, allowed, self.pair) if found.answer == "no" else None

    def _by_bounds(self) -> Verdict | None:
        """The largest budget of the first against the smallest of the second."""
        first, second = self.first, self.second
        most = first.budget if first.varies is None else max(first.budget, first.varies.most)
        least = second.budget
        if second.varies is not None:
            law = second.varies.law
            floor = second.varies.least if law is None else min(law.at(2), law.at(3))
            least = min(least, floor)
        if not most.is_finite:
            return None
        found, _ = self._transferred(most, least, None)
        return self._told(found, least, None, self.pair) if found.answer == "yes" else None

    def _at_some_universe(self, places: Iterable[int], because: str) -> Verdict | None:
        """A no at the universe of some b."""
        return next((found for b in places if (found := self._at(b, because)) is not None), None)

    def _in_finer_strata(self) -> Verdict | None:
        """A no where the second's strata are finer: a universe in which they are much smaller than the first's."""
        functions = [spec.varies for spec in (self.first, self.second)]
        statistics = [function.statistic for function in functions if function is not None]
        if len(statistics) < 2 or statistics[0] is None or statistics[1] is None:
            return None
        found = with_finer_strata(self.pair, statistics[0], statistics[1], self.first.domain)
        return None if found.pair is None else self._at_universe_of(found, "")

    def _at(self, b: int, because: str) -> Verdict | None:
        """A no at a universe with this b, where a pair can be written there."""
        functions = [spec.varies for spec in (self.first, self.second) if spec.varies is not None]
        statistics = [f.statistic for f in functions if f.statistic is not None]
        if len(statistics) < len(functions) or any(f.law is None or f.b == b for f in functions):
            return None
        found = with_largest_stratum(self.pair, statistics[0], b, self.first.domain)
        return self._at_universe_of(found, because or f"at b = {b:,}")

    def _at_universe_of(self, found: Example, because: str) -> Verdict | None:
        """A no at the universe of this pair."""
        if found.pair is None:
            return None
        mine, theirs = at_pair(self.first, found.pair), at_pair(self.second, found.pair)
        if mine is None or theirs is None:
            return None
        told, allowed = self._transferred(mine, theirs, found.pair)
        if told.answer != "no":
            return None
        verdict = self._told(told, theirs, allowed, found)
        if verdict.derivation is None:
            return None
        words = f"{because} {told.because}".strip() if because.startswith("at b") or not because else because
        return Verdict.no(words, verdict.derivation)


def _function(spec: Stated) -> str:
    return spec.budget.exact if spec.varies is None else spec.varies.words
