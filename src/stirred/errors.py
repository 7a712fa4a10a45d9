"""The errors of Stirred: each says what went wrong, why, and how to fix it (a test searches the source).

StirredError
├── InputError            a file, a column or an argument is not valid
│   ├── SchemaError       census.toml does not describe a census
│   ├── DataError         records break the schema (all problems at once, by column, rule and count)
│   └── PlanError         plan.toml does not describe a release
├── SpecificationError    a specification cannot be stated
│   ├── BudgetError       a budget is not an exact number, or more was spent than it allows
│   ├── IncompatibleError no rule relates two specifications
│   └── VoidError         both of these: after the conversion a specification would promise nothing
├── PrivacyError          continuing would break the promise (an invariant not kept, rate 0 or 1, a key reused)
├── InfeasibleError       no data set satisfies the constraints
├── ClusterError          the cluster failed, not the plan: the run is kept, to be taken up
└── MissingExtraError     an optional part is not installed; the message gives the command

A message names the column, the rule and a count; it never shows a value of a record.
"""

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from os import PathLike


class StirredError(Exception):
    """An error with what happened, why, and how to fix it.

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
    """A file, a column or an argument is not valid."""


class SchemaError(InputError):
    """The schema does not describe a census."""


class DataError(InputError):
    """Records break the schema."""


class PlanError(InputError):
    """The plan does not describe a release."""


class SpecificationError(StirredError):
    """A specification cannot be stated."""


class BudgetError(SpecificationError):
    """A budget is not an exact number, or more was spent than it allows."""


class IncompatibleError(SpecificationError):
    """No rule relates two specifications."""


class VoidError(BudgetError, IncompatibleError):
    """After the conversion a specification would promise nothing: its δ would be 1 or more."""


class PrivacyError(StirredError):
    """Continuing would break the promise."""


class ForgedStateError(PrivacyError):
    """Raised when resumable state was modified; nothing is deleted, so that a person can inspect it."""


class InfeasibleError(StirredError):
    """No data set satisfies the constraints."""


class ClusterError(StirredError):
    """The cluster failed, not the plan: what a run has finished is kept, to be taken up."""


class MissingExtraError(StirredError):
    """An optional part is not installed."""


def require_kind(
    name: str,
    value: object,
    kind: type | tuple[type, ...],
    *,
    wanted: str,
    fix: str,
    error: type[StirredError] = InputError,
) -> None:
    """Raise an error that names the type of an argument, never its value, unless it is of the kind that is wanted.

    >>> require_kind("key", 1, bytes, wanted="a Key", fix="key=st.Key.fresh()")
    Traceback (most recent call last):
    ...
    stirred.errors.InputError: key is not a Key
      why: it is of type int
      fix: key=st.Key.fresh()
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise error(f"{name} is not {wanted}", why=f"it is of type {type(value).__name__}", fix=fix)


def require_path(name: str, value: object, *, fix: str) -> None:
    """Raise an error unless an argument is a path."""
    require_kind(name, value, (str, PathLike), wanted="a path", fix=fix)


MIN_LIKENESS = 0.5  # of a name that is suggested, as difflib measures it
MAX_LESS_LIKE = 0.15  # how much less like than the closest name


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest known names that are close to an unknown name; none that is much farther than the closest.

    >>> did_you_mean("das-2002", ["das-2010", "das-2020", "pl-2020"])
    'did you mean das-2020 or das-2010?'
    >>> did_you_mean("--houeholds", ["--help", "--households", "--out"])
    'did you mean --households?'
    >>> did_you_mean("x", ["state", "size"])
    'known: size, state'
    """
    names = sorted(set(known))
    close = get_close_matches(name, names, n=3, cutoff=MIN_LIKENESS)
    if not close:
        return "known: " + ", ".join(names)
    best = SequenceMatcher(None, close[0], name).ratio()
    close = get_close_matches(name, close, n=3, cutoff=max(MIN_LIKENESS, best - MAX_LESS_LIKE))
    head = ", ".join(close[:-1])
    return f"did you mean {head} or {close[-1]}?" if head else f"did you mean {close[0]}?"
