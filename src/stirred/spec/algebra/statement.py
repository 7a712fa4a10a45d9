"""What a specification rests on: its evidence, its parts, and how its budget differs by universe."""

from dataclasses import dataclass, field

from stirred.errors import SpecificationError
from stirred.languages import Phrase
from stirred.spec.laws.sizes import SizeLaw
from stirred.spec.laws.stratum import LargestStratum
from stirred.spec.multiverse import Margin, Multiverse
from stirred.spec.numbers.budget import Budget, Status
from stirred.spec.outputs.divergences import OutputPremetric
from stirred.spec.premetrics import InputPremetric

_WEAKNESS: dict[str, int] = {"proved": 0, "published": 1, "estimated": 2, "unknown": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The status of a budget (proved, published, estimated, unknown) and its source.

    >>> (Evidence(source="a") & Evidence(status="published", source="b"))
    Evidence(status='published', source='a; b')
    """

    status: Status = "proved"
    source: str = ""

    def __and__(self, other: "Evidence") -> "Evidence":
        """Return the joint evidence of two: the weaker status and all the sources."""
        sources = sorted({s for e in (self, other) for s in e.source.split("; ") if s})
        worse = max(self.status, other.status, key=lambda status: _WEAKNESS[status])
        return Evidence(status=worse, source="; ".join(sources))


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetFunction:
    r"""A budget $\varepsilon_{\mathcal D}$ that differs by universe: stated where it was taken, a law elsewhere.

    Every universe but the realised one has the budget ``law.at(b)``, where b is the value of ``statistic`` in it; at the
    realised one the specification's ``budget`` holds, which may be sharper. Without a law the function is known in words
    only: it is then never equal to another one, and ``least`` and ``most`` bound it over all universes.

    >>> from stirred.spec.laws.sizes import SizeLaw
    >>> BudgetFunction(law=SizeLaw("theorem-1", "1/20"), b=10).words
    'max{ln o, ln(b + 1) − ln o} at swap rate 1/20 (o = 1/19)'
    >>> BudgetFunction(words="it grows with the largest household").most.is_finite
    False
    """

    words: str = ""  # filled in from the law and the statistic where it is empty
    universe: str = "the realised universe"
    least: Budget = field(default_factory=Budget.zero)
    most: Budget = field(default_factory=Budget.infinite)
    law: SizeLaw | None = None
    statistic: LargestStratum | None = None
    b: int | None = None  # the statistic at the realised universe
    # A digest of all that the budget at the realised universe was computed from, such as the sizes and types of its
    # strata: equal digests, equal inputs. These are functions of the invariants, which are published, so that the
    # digest tells nobody anything new.
    realised: str = ""

    def __post_init__(self) -> None:
        if self.b is not None and (isinstance(self.b, bool) or not isinstance(self.b, int) or self.b < 0):
            raise SpecificationError(
                f"b = {self.b} is no number of records",
                why="b counts the records of a stratum",
                fix="give a whole number of at least 0",
            )
        if self.law is not None and self.most.is_finite:
            raise SpecificationError(
                "this budget has a law of b and a bound over all universes",
                why="the law grows with b without end",
                fix="leave out most=",
            )
        if not self.words and self.law is None:
            raise SpecificationError(
                "this budget function says nothing",
                why="it has neither a law of b nor words that describe it",
                fix='give law=SizeLaw("by-size", "1/20"), or words="…"',
            )
        if not self.words and self.law is not None:
            told: str = self.law.words()
            if self.statistic is not None:
                told = Phrase("law.where", law=told, statistic=self.statistic.words())
            object.__setattr__(self, "words", told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One statement that went into a composed specification, in its own universes, unit and premetric."""

    input_premetric: InputPremetric
    output_premetric: OutputPremetric
    budget: Budget
    source: str = ""
    varies: BudgetFunction | None = None
    multiverse: Multiverse | None = None  # the universes it was stated in; None: those of the whole
    measures: tuple[
        Margin, ...
    ] = ()  # all that its output is computed from, beside its invariants; empty: not stated

    def order(self) -> tuple[str, ...]:
        """Return a sort key of parts, so that a sum does not depend on the order of its terms."""
        kept = () if self.multiverse is None else (i.identity() for i in self.multiverse)
        return (
            str(self.input_premetric),
            str(self.output_premetric),
            self.source,
            self.budget.exact,
            *kept,
        )
