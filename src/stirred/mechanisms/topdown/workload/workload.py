"""The workload of a TopDown run: histogram, queries, exact budget shares by level, constraints; written in TOML."""

from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

from stirred.errors import BudgetError, InputError, did_you_mean, require_kind
from stirred.mechanisms.topdown.workload import toml
from stirred.mechanisms.topdown.workload.histogram import AxisSource, Histogram, HistogramAxis, Query
from stirred.mechanisms.topdown.workload.options import SpineOptions
from stirred.mechanisms.topdown.workload.rule import Rule, list_occupied_answers
from stirred.mechanisms.topdown.workload.shipped import presets, read_preset
from stirred.toml_text import read_plain_text

Mode = Literal["classic", "gls", "guided"]
WHOLE_TREE_MODES: tuple[Mode, ...] = ("gls", "guided")  # the modes that estimate over the whole tree
NOUNS: dict[type, str] = {HistogramAxis: "Axis", AxisSource: "Source"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Histogram, queries, and for each level its share of ρ² and its queries' shares of that.

    >>> w = Workload.preset("small")
    >>> w.histogram.cells, w.levels[-1], w.rho_squared
    (16, 'block', Fraction(293764, 114921))
    """

    name: str
    record: str
    histogram: Histogram
    queries: tuple[Query, ...]
    levels: tuple[str, ...]
    rho_squared: Fraction
    level_shares: dict[str, Fraction]
    query_shares: dict[str, dict[str, Fraction]]
    passes: dict[str, tuple[tuple[str, ...], ...]]
    rules: tuple[Rule, ...] = ()
    mode: Mode = "gls"
    title: str = ""
    source: str = ""
    given: str = ""  # the workload whose published microdata this one must agree with
    given_map: tuple[tuple[str, str], ...] = ()  # its axis → the recode here that it equals
    where: tuple[tuple[str, tuple[int, ...]], ...] = ()  # which records are counted
    columns: tuple[tuple[str, str], ...] = ()  # axis → the column of the microdata
    spine: SpineOptions | None = None  # another tree than the census's own

    def __post_init__(self) -> None:
        _require_one(sum(self.level_shares.values(), Fraction(0)), f"the level shares of {self.name}")
        for level in self.levels:
            if self.level_shares.get(level, Fraction(0)) > 0:
                shares = self.query_shares.get(level, {})
                _require_one(
                    sum(shares.values(), Fraction(0)), f"the query shares of {self.name} at level {level}"
                )
                names = [query.name for query in self.queries]
                for name in shares:
                    if name not in names:
                        raise InputError(
                            f"level {level} gives a share to query {name}, which is not declared",
                            why="only a declared query can be measured",
                            fix=did_you_mean(name, names),
                        )

    def query(self, name: str) -> Query:
        """Return the query of that name."""
        for query in self.queries:
            if query.name == name:
                return query
        raise InputError(
            f"no query {name} in workload {self.name}",
            why="a query is asked for by its name",
            fix=did_you_mean(name, [q.name for q in self.queries]),
        )

    def rho(self, level: str, query: str) -> Fraction:
        """Return the part of ρ² one geounit of the level spends on the query."""
        share = self.query_shares.get(level, {}).get(query, Fraction(0))
        return self.rho_squared * self.level_shares.get(level, Fraction(0)) * share

    def with_rho_squared(self, rho_squared: Fraction) -> "Workload":
        """Return the same shares of another total."""
        return replace(self, rho_squared=rho_squared)

    @classmethod
    def preset(cls, name: str) -> "Workload":
        """Return one of the workloads that come with Stirred."""
        require_kind(
            "the name of a workload", name, str, wanted="a text", fix='Workload.preset("pl94-persons")'
        )
        known = presets()
        if name not in known:
            raise InputError(
                f"there is no workload {name}",
                why="a workload is asked for by its name, or by a TOML file",
                fix=did_you_mean(name, known) + ", or give a TOML file",
            )
        return cls.parse(read_preset(name))

    @classmethod
    def load(cls, path: str | Path) -> "Workload":
        """Read a workload from a TOML file."""
        try:
            text = read_plain_text(Path(path))
        except (OSError, UnicodeDecodeError):
            raise InputError(
                f"cannot read the workload {Path(path).name}",
                why="it is not a plain file of UTF-8 text",
                fix="give the path of a TOML file, or the name of a workload",
            ) from None
        return cls.parse(text)

    @classmethod
    def parse(cls, text: str) -> "Workload":
        """Parse a workload from TOML text; unknown keys are refused."""
        return cls(**toml.parse_fields(text))


def write_canonical(value: object) -> str:
    """Return a text that only equal workloads share; the key of a run is bound to it.

    It is the ``repr`` of a workload with two nouns that never change, whatever the classes are called: a changed text would
    change the noise of every release.

    >>> write_canonical(HistogramAxis(name="sex", size=2))
    "Axis(name='sex', size=2, labels=(), recodes={}, source=None)"
    """
    if is_dataclass(value):
        bound = (
            f for f in fields(value) if not f.metadata.get("later") or getattr(value, f.name) != f.default
        )
        inner = (f"{f.name}={write_canonical(getattr(value, f.name))}" for f in bound)
        return f"{NOUNS.get(type(value), type(value).__name__)}({', '.join(inner)})"
    if isinstance(value, tuple):
        return f"({', '.join(write_canonical(one) for one in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{write_canonical(k)}: {write_canonical(v)}' for k, v in value.items())}}}"
    return repr(value)


def find_quarters_rule(workload: Workload) -> Rule | None:
    """Return the rule that counts group quarters by type in every leaf; None where no rule does."""
    return next(
        (rule for rule in workload.rules if rule.kind == "facilities" and list_occupied_answers(rule)), None
    )


def _require_one(total: Fraction, what: str) -> None:
    if total != 1:
        raise BudgetError(
            f"{what} sum to {total}, not to 1",
            why="every root-to-leaf path must spend exactly the total",
            fix="write the shares as exact fractions of one denominator",
        )
