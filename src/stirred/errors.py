"""Every error Stirred raises says what went wrong, why, and how to fix it.

StirredError
├── InputError            a file, a column or an argument is not as it should be
│   ├── SchemaError       census.toml does not describe a census
│   ├── DataError         records break the schema (all problems at once, by column, rule and count)
│   └── PlanError         plan.toml does not describe a release
├── SpecificationError    a specification cannot be stated
│   ├── BudgetError       a budget that is no exact number, or is overdrawn
│   ├── IncompatibleError two specifications that no rule relates
│   └── VoidError         both of these: restated so, a specification would promise nothing
├── PrivacyError          going on would break the promise (an invariant not kept, rate 0 or 1, a key reused)
├── InfeasibleError       constraints that no data set can meet
└── MissingExtraError     an optional part is not installed; the message gives the command

A message names the column, the rule and a count; it never shows a value of a record.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class StirredError(Exception):
    """What happened, why, and what to do about it.

    >>> print(StirredError("cannot compose", why="units differ", fix='spec.per("person")'))
    cannot compose
      why: units differ
      fix: spec.per("person")
    """

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what, why, fix)
        self.what = what
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        lines = [self.what]
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class InputError(StirredError):
    """A file, a column or an argument is not as it should be."""


class SchemaError(InputError):
    """The schema does not describe a census."""


class DataError(InputError):
    """Records break the schema."""


class PlanError(InputError):
    """The plan does not describe a release."""


class SpecificationError(StirredError):
    """A specification cannot be stated."""


class BudgetError(SpecificationError):
    """A budget that is no exact number, or is overdrawn."""


class IncompatibleError(SpecificationError):
    """Two specifications that no rule relates."""


class VoidError(BudgetError, IncompatibleError):
    """Restated so, a specification would promise nothing: its δ would be 1 or more."""


class PrivacyError(StirredError):
    """Going on would break the promise."""


class InfeasibleError(StirredError):
    """Constraints that no data set can meet."""


class MissingExtraError(StirredError):
    """An optional part is not installed."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The half sentence that helps after an unknown name.

    >>> did_you_mean("das-2002", ["das-2010", "das-2020", "pl-2020"])
    'did you mean das-2020, das-2010 or pl-2020?'
    >>> did_you_mean("x", ["state", "size"])
    'known: size, state'
    """
    names = sorted(set(known))
    close = get_close_matches(name, names, n=3, cutoff=0.5)
    if not close:
        return "known: " + ", ".join(names)
    head = ", ".join(close[:-1])
    return f"did you mean {head} or {close[-1]}?" if head else f"did you mean {close[0]}?"
