"""What a specification rests on: its evidence, its parts, and how its budget differs by universe."""

from dataclasses import dataclass, field

from stirred.spec.budget import Budget, Status
from stirred.spec.divergences import OutputPremetric
from stirred.spec.premetrics import InputPremetric

_WEAKNESS: dict[str, int] = {"proved": 0, "published": 1, "estimated": 2, "unknown": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """How the budget is known, and from where.

    >>> (Evidence(source="a") & Evidence(status="published", source="b"))
    Evidence(status='published', source='a; b')
    """

    status: Status = "proved"
    source: str = ""

    def __and__(self, other: "Evidence") -> "Evidence":
        """Both are needed: the weaker status, all the sources."""
        sources = sorted({s for e in (self, other) for s in e.source.split("; ") if s})
        worse = max(self.status, other.status, key=lambda status: _WEAKNESS[status])
        return Evidence(status=worse, source="; ".join(sources))


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetFunction:
    r"""A budget $\varepsilon_{\mathcal D}$ that differs by universe, in words, and at which universe it was taken.

    ``least`` and ``most`` bound it over all universes; without a bound they are 0 and ∞.

    >>> BudgetFunction(words="ln(b + 1) − ln o").most.is_finite
    False
    """

    words: str
    universe: str = "the realised universe"
    least: Budget = field(default_factory=Budget.zero)
    most: Budget = field(default_factory=Budget.infinite)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One statement that went into a composed specification, in its own unit and premetric."""

    input_premetric: InputPremetric
    output_premetric: OutputPremetric
    budget: Budget
    source: str = ""
    varies: BudgetFunction | None = None

    def order(self) -> tuple[str, ...]:
        """A fixed order of parts, so that a sum does not depend on who was added first."""
        return (str(self.input_premetric), str(self.output_premetric), self.source, self.budget.exact)
