"""Implication where a budget differs by universe: by the order of the laws, or at one universe that refutes it."""

from collections.abc import Iterable
from dataclasses import dataclass

from stirred.spec.algebra.stated import SpecificationFields
from stirred.spec.laws.functions import PlainPromise, compare_functions
from stirred.spec.outputs.divergences import Multiplicative, NormalizedRenyi
from stirred.spec.premetrics import Hamming, SymmetricDifference
from stirred.spec.verdict import Verdict
from stirred.spec.verdicts.budgets import BudgetQuestion, find_budget_at, pick_known
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.examples import Example, add_finer_strata, add_largest_stratum

STRATUM_SIZES_TRIED = (2, 3, 10, 1000, 10**6, 10**12)


@dataclass(frozen=True, slots=True)
class FunctionQuestion(BudgetQuestion):
    """The question whether the first implies the second, where one of the budgets differs by universe."""

    def answer(self) -> Verdict:
        first, second = self.first, self.second
        same = (
            first.input_premetric == second.input_premetric
            and first.output_premetric == second.output_premetric
        )
        if same:
            order = compare_functions(
                PlainPromise(first.budget, first.varies), PlainPromise(second.budget, second.varies)
            )
            if order.answer == "yes" and not self._covers_small_universes():
                several = (
                    "where b = 0 the second promises that nothing is lost, and such a universe may be large"
                )
                return pick_known(self._refute_in_small_universe(), Verdict.unknown(several))
            if order.answer == "yes":
                facts = {"first": _describe_function(first), "second": _describe_function(second)}
                return self._confirm(order.because, Derivation(rule="laws", claim=order.because, facts=facts))
            if order.answer == "unknown" or order.b is None:
                return pick_known(
                    self._refute_at_some_size(STRATUM_SIZES_TRIED, ""),
                    self._refute_in_finer_strata(),
                    Verdict.unknown(order.because),
                )
            if order.realised and not self._is_exchangeable():
                return Verdict.unknown(f"{order.because}, and no pair of data sets is known there")
            if order.realised:
                numbers = {"first": first.budget.exact, "second": second.budget.exact, "b": order.b}
                step = Derivation(rule="realised universe", claim=order.because, facts=numbers)
                return Verdict.no(order.because, step)
            places = range(order.b, order.b + 8)
            return pick_known(
                self._refute_at_some_size(places, order.because), Verdict.unknown(order.because)
            )
        told = "; ".join(spec.varies.words for spec in (first, second) if spec.varies is not None)
        return pick_known(
            self._decide_by_bounds() if self._covers_small_universes() else self._refute_in_small_universe(),
            self._refute_at_some_size(STRATUM_SIZES_TRIED, ""),
            Verdict.unknown(f"a budget differs by universe, and no rule decides in all of them: {told}"),
        )

    def _covers_small_universes(self) -> bool:
        """Return whether b = 0 needs no proof: the first loses nothing there, or each universe is one data set."""
        function, mine = self.second.varies, self.first.varies
        if function is None or function.law is None or (self.first.budget.is_zero and mine is None):
            return True
        statistic = function.statistic
        if mine is not None and mine.law is not None and mine.statistic is not None and statistic is not None:
            # then the first's b is 0 there as well, and only a budget that was raised may be above 0
            small = any((b := f.b) is not None and b < 2 for f in (mine, function))
            raised = small and self.first.budget > self.second.budget
            return mine.statistic.never_above(statistic) and (not raised or self._is_one_data_set())
        return self._is_one_data_set()

    def _is_one_data_set(self) -> bool:
        """Return whether a universe with b = 0 is one data set, because the second's strata determine a record."""
        statistic = None if self.second.varies is None else self.second.varies.statistic
        domain = self.second.domain
        if statistic is None or [kind.name for kind in domain.record_types] != [statistic.record_type]:
            return False
        kind = statistic.record_type
        seen = domain.closure(kind, (*statistic.match, *statistic.hold, *statistic.swap))
        return domain.record_type(kind).names() - domain.identifiers(kind) <= seen

    def _is_exchangeable(self) -> bool:
        """Return whether two records can exchange swap values inside the realised universe, at finite distance.

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

    def _refute_in_small_universe(self) -> Verdict | None:
        """Return a no at the pair itself, where b = 0 in its universe and the second allows no loss; else None."""
        limit, budget = (
            find_budget_at(self.second, self.pair.pair),
            find_budget_at(self.first, self.pair.pair),
        )
        if limit is None or budget is None or self.pair.pair is None:
            return None
        found, allowed = self._transfer(budget, limit, self.pair.pair)
        return self._write_verdict(found, limit, allowed, self.pair) if found.answer == "no" else None

    def _decide_by_bounds(self) -> Verdict | None:
        """Return a yes where the largest budget of the first gives the smallest of the second, else None."""
        first, second = self.first, self.second
        most = first.budget if first.varies is None else max(first.budget, first.varies.most)
        least = second.budget
        if second.varies is not None:
            law = second.varies.law
            floor = second.varies.least if law is None else min(law.at(2), law.at(3))
            least = min(least, floor)
        if not most.is_finite:
            return None
        found, _ = self._transfer(most, least, None)
        return self._write_verdict(found, least, None, self.pair) if found.answer == "yes" else None

    def _refute_at_some_size(self, places: Iterable[int], because: str) -> Verdict | None:
        """Return a no at the universe of one of these b, or None."""
        return next((found for b in places if (found := self._refute_at_size(b, because)) is not None), None)

    def _refute_in_finer_strata(self) -> Verdict | None:
        """Return a no at a universe where the second's strata are much smaller than the first's, or None."""
        functions = [spec.varies for spec in (self.first, self.second)]
        statistics = [function.statistic for function in functions if function is not None]
        if len(statistics) < 2 or statistics[0] is None or statistics[1] is None:
            return None
        found = add_finer_strata(self.pair, statistics[0], statistics[1], self.first.domain)
        return None if found.pair is None else self._refute_at_pair(found, "")

    def _refute_at_size(self, b: int, because: str) -> Verdict | None:
        """Return a no at a universe with this b, or None where no pair can be written there."""
        functions = [spec.varies for spec in (self.first, self.second) if spec.varies is not None]
        statistics = [f.statistic for f in functions if f.statistic is not None]
        if len(statistics) < len(functions) or any(f.law is None or f.b == b for f in functions):
            return None
        found = add_largest_stratum(self.pair, statistics[0], b, self.first.domain)
        return self._refute_at_pair(found, because or f"at b = {b:,}")

    def _refute_at_pair(self, found: Example, because: str) -> Verdict | None:
        """Return a no at the universe of this pair, or None."""
        if found.pair is None:
            return None
        mine, theirs = find_budget_at(self.first, found.pair), find_budget_at(self.second, found.pair)
        if mine is None or theirs is None:
            return None
        told, allowed = self._transfer(mine, theirs, found.pair)
        if told.answer != "no":
            return None
        verdict = self._write_verdict(told, theirs, allowed, found)
        if verdict.derivation is None:
            return None
        words = f"{because} {told.because}".strip() if because.startswith("at b") or not because else because
        return Verdict.no(words, verdict.derivation)


def _describe_function(spec: SpecificationFields) -> str:
    return spec.budget.exact if spec.varies is None else spec.varies.words
