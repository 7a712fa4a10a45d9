"""A run's account: who spent what on what."""

from dataclasses import dataclass, field, replace

from stirred.errors import BudgetError
from stirred.spec.budget import Budget
from stirred.spec.divergences import Multiplicative, OutputPremetric


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the account."""

    by: str
    on: str
    budget: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What was spent, by whom, on what; what it costs is the output premetric's to say.

    >>> ledger = Ledger(limit=Budget.of(2)).spend("topdown", "state queries", Budget.of("1/2"))
    >>> str(ledger.remaining)
    '1.5000'
    """

    limit: Budget | None = None
    output_premetric: OutputPremetric = field(default_factory=Multiplicative)
    entries: tuple[Entry, ...] = ()

    @property
    def total(self) -> Budget:
        return self.output_premetric.compose([entry.budget for entry in self.entries])

    @property
    def remaining(self) -> Budget:
        """The largest budget that can still be spent."""
        if self.limit is None:
            return Budget.infinite()
        return self.output_premetric.left(self.limit, self.total)

    def spend(self, by: str, on: str, budget: Budget) -> "Ledger":
        """A new ledger with this line; an overdrawn one raises, with requested, remaining and difference."""
        if not isinstance(budget, Budget):
            raise BudgetError("only a Budget can be spent", fix='Budget.of("1/20")')
        after = replace(self, entries=(*self.entries, Entry(by=by, on=on, budget=budget)))
        if self.limit is not None and after.total > self.limit:
            left = self.remaining
            over = (budget - left).upper(6) if budget.is_finite and left.is_finite else "∞"
            raise BudgetError(
                f"{by} asks for more than is left, on {on}",
                why=f"requested {budget.upper(6)}, remaining {left.lower(6)}, difference {over}",
                fix="spend less, or raise the limit of the ledger",
            )
        return after
