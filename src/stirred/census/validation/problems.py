"""The report of a validation."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from stirred.errors import DataError


@dataclass(frozen=True, slots=True)
class RecordRule:
    """A rule that each record keeps or breaks by itself; ``broken`` is true where a record breaks it."""

    column: str
    rule: str
    broken: pl.Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One rule that some records break, and how many."""

    record_type: str
    column: str
    rule: str
    count: int
    of: str = "records"  # what is counted
    fix: str = ""

    def __str__(self) -> str:
        between = ", " if self.of == "files" else "."  # a file is not a column
        where = between.join(filter(None, (self.record_type, self.column)))
        unit = self.of[:-1] if self.count == 1 and self.of.endswith("s") else self.of
        return f"{where}: {self.rule} ({self.count:,} {unit})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problems:
    """All problems found, and how many records were checked.

    >>> print(Problems(problems=(Problem(record_type="household", column="size", rule="not a listed level", count=2),)))
    1 rule is broken
      household.size: not a listed level (2 records)
    >>> bool(Problems())
    False
    """

    problems: tuple[Problem, ...] = ()
    checked: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.problems)

    def __len__(self) -> int:
        return len(self.problems)

    def __str__(self) -> str:
        if not self.problems:
            return "no problems in " + _describe_checked(self.checked)
        number = len(self.problems)
        head = "1 rule is broken" if number == 1 else f"{number} rules are broken"
        return "\n".join([head, *(f"  {problem}" for problem in self.problems)])

    def raise_if_any(self) -> None:
        """Raise a DataError that lists every problem."""
        if self.problems:
            fixes = list(dict.fromkeys(problem.fix for problem in self.problems if problem.fix))
            raise DataError(
                "the records break the schema",
                why="; ".join(map(str, self.problems)),
                fix="; ".join(fixes) or "correct the records, or the rule in census.toml",
            )

    def worst(self, number: int = 3) -> tuple[Problem, ...]:
        """Return the gravest problems: files and columns that cannot be read, then those of the most records.

        >>> few, many = (Problem(record_type="person", column="age", rule="negative values", count=n) for n in (2, 9))
        >>> [problem.count for problem in Problems(problems=(few, many)).worst(1)]
        [9]
        """
        unread = ("files", "columns")
        ranked = sorted(self.problems, key=lambda problem: (problem.of not in unread, -problem.count))
        return tuple(ranked[:number])

    def require_none(self) -> None:
        """Raise one DataError with the number of problems and the three that weigh most."""
        if self.problems:
            number, shown = len(self.problems), self.worst()
            rest = f"; and {number - len(shown)} more" if number > len(shown) else ""
            raise DataError(
                "the records break 1 rule of the schema"
                if number == 1
                else f"the records break {number} rules of the schema",
                why="; ".join(map(str, shown)) + rest,
                fix="see all of them with: stirred data check census.toml, or validate(census) in Python",
            )

    def to_json(self) -> dict[str, object]:
        """Return the report as one JSON document."""
        return {
            "ok": not self.problems,
            "checked": dict(self.checked),
            "problems": [
                {
                    "record_type": problem.record_type,
                    "column": problem.column,
                    "rule": problem.rule,
                    "count": problem.count,
                    "of": problem.of,
                    "fix": problem.fix,
                }
                for problem in self.problems
            ],
        }


def _describe_checked(checked: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name} records" for name, count in checked.items()) or "no records"
