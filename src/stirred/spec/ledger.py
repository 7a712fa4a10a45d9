"""The account of a run: which step spent which budget on what."""

from dataclasses import dataclass, field, replace
from fractions import Fraction

from stirred.errors import BudgetError, require_kind
from stirred.spec.budgets import Budget
from stirred.spec.exact import parse_fraction, write_fraction
from stirred.spec.notebook import write_html_table
from stirred.spec.output_premetrics import Approximate, Multiplicative, OutputPremetric


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One step that spent a budget on something."""

    by: str
    on: str
    budget: Budget
    delta: Fraction | None = None  # of (ε, δ) alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The account of a run: which step spent which budget on what; the premetric says how entries compose.

    Under (ε, δ) the δ of the premetric is the one that all entries together may have, and each of them states its own: so
    the total is a true statement under the ledger's premetric at any time.

    >>> ledger = Ledger(limit=Budget.of(2)).spend("topdown", "state queries", Budget.of("1/2"))
    >>> str(ledger.remaining)
    '1.5000'
    >>> both = Ledger(output_premetric=Approximate("1/10")).spend("a", "x", Budget.of(1), delta="1/25")
    >>> both.delta_left
    Fraction(3, 50)
    """

    limit: Budget | None = None
    output_premetric: OutputPremetric = field(default_factory=Multiplicative)
    entries: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        if self.limit is not None:
            require_kind(
                "the limit of a ledger",
                self.limit,
                Budget,
                wanted="a Budget",
                fix='Ledger(limit=Budget.of("2"))',
                error=BudgetError,
            )
        for entry in self.entries:
            self._check(entry)
        if isinstance(self.output_premetric, Approximate) and self.delta > self.output_premetric.delta:
            raise BudgetError(
                "the entries of this ledger have a larger δ than it allows",
                why=f"together {write_fraction(self.delta)}, allowed {write_fraction(self.output_premetric.delta)}",
                fix="allow the ledger a larger δ, or leave out an entry",
            )

    @property
    def total(self) -> Budget:
        return self.output_premetric.compose([entry.budget for entry in self.entries])

    @property
    def delta(self) -> Fraction:
        """Return the δ of all entries together, which is 0 under other premetrics than (ε, δ)."""
        return sum((entry.delta or Fraction(0) for entry in self.entries), Fraction(0))

    @property
    def remaining(self) -> Budget:
        """Return the largest budget that can still be spent."""
        if self.limit is None:
            return Budget.infinite()
        return self.output_premetric.compute_remaining(self.limit, self.total)

    @property
    def delta_left(self) -> Fraction:
        """Return the largest δ that can still be spent."""
        allowed = (
            self.output_premetric.delta if isinstance(self.output_premetric, Approximate) else Fraction(0)
        )
        return allowed - self.delta

    def __repr__(self) -> str:
        number = f"{len(self.entries)} {'entry' if len(self.entries) == 1 else 'entries'}"
        most = "" if self.limit is None else f" of {self.limit}"
        return f"Ledger({number}, {self.output_premetric}: {self.total}{most} spent)"

    def _repr_html_(self) -> str:
        """Return the entries, the total and what remains as an HTML table."""
        rows = [(entry.by, entry.on, str(entry.budget)) for entry in self.entries]
        rows.append(("total", str(self.output_premetric), str(self.total)))
        if self.limit is not None:
            rows.append(("left", f"of {self.limit}", str(self.remaining.lower(4))))
        notes = ["Budgets are rounded up, what is left is rounded down."]
        return write_html_table("Ledger", rows, columns=("by", "on", "budget"), notes=notes)

    def spend(
        self, by: str, on: str, budget: Budget, *, delta: int | str | Fraction | None = None
    ) -> "Ledger":
        """Return a new ledger with one more entry; an error gives requested, remaining and difference."""
        if not isinstance(budget, Budget):
            raise BudgetError(
                "only a Budget can be spent",
                why=f"this is a {type(budget).__name__}, and the ledger keeps exact numbers",
                fix='give Budget.of("1/20")',
            )
        number = None if delta is None else parse_fraction(delta, "delta")
        entry = Entry(by=by, on=on, budget=budget, delta=number)
        self._check(entry)
        if number is not None and number > self.delta_left:
            raise BudgetError(
                f"{by} asks for a larger δ than is left, on {on}",
                why=f"requested {write_fraction(number)}, remaining {write_fraction(self.delta_left)}, "
                f"difference {write_fraction(number - self.delta_left)}",
                fix="spend a smaller δ, or open the ledger with a larger one",
            )
        after = replace(self, entries=(*self.entries, entry))
        if self.limit is not None and after.total > self.limit:
            left = self.remaining
            over = (budget - left).upper(6) if budget.is_finite and left.is_finite else "∞"
            raise BudgetError(
                f"{by} asks for more than is left, on {on}",
                why=f"requested {budget.upper(6)}, remaining {left.lower(6)}, difference {over}",
                fix="spend less, or raise the limit of the ledger",
            )
        return after

    def _check(self, entry: Entry) -> None:
        """Refuse an entry without δ in an (ε, δ) ledger, and an entry with δ in any other."""
        approximate = isinstance(self.output_premetric, Approximate)
        if approximate and entry.delta is None:
            raise BudgetError(
                f"{entry.by} does not say its δ, on {entry.on}",
                why=f"the ledger is under {self.output_premetric}, where the δ of all entries add up",
                fix='spend(…, delta="1e-10"), or delta=0 for a pure release',
            )
        if not approximate and entry.delta is not None:
            raise BudgetError(
                f"{entry.by} spends a δ, on {entry.on}",
                why=f"the ledger is under {self.output_premetric}, which has none",
                fix="Ledger(output_premetric=Approximate(…)), with the δ that is allowed in total",
            )
        if entry.delta is not None and not 0 <= entry.delta < 1:
            raise BudgetError(
                "delta must be at least 0 and below 1",
                why="at 1 nothing is promised",
                fix='give an exact number such as "1e-10"',
            )
