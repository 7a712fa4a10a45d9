"""What a run measures and pays for: the region types and levels of a census with their budgets, thresholds and noise."""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from stirred.chance import Key
from stirred.errors import BudgetError, InputError
from stirred.mechanisms.contents import MeasuredNoise
from stirred.mechanisms.safetab.codes import LEVELS, CodeLists
from stirred.mechanisms.safetab.noise import CellNoise, Definition
from stirred.mechanisms.safetab.persons.measure import Stages
from stirred.mechanisms.safetab.persons.presets import DetailedSettings, Place, Thresholds, parse_place
from stirred.mechanisms.safetab.regions import RegionType
from stirred.spec.numbers.numerals import parse_fraction

Amounts = dict[Place, tuple[Fraction, Thresholds]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One region type and level with its budget; None is infinite."""

    kind: RegionType
    level: int
    budget: Fraction | None
    thresholds: Thresholds
    sensitivity: int

    @property
    def name(self) -> str:
        """Return the name of the line as settings write it."""
        return f"{self.kind.name}-{self.level}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Apportionment:
    """The lines of a run, its definition of privacy, and the shares that all lines have."""

    lines: tuple[Line, ...]
    definition: Definition
    first_stage: Fraction
    suppression: Fraction

    def total_budget(self) -> Fraction | None:
        """Return the loss of one person added or removed, the larger of both programs; None is infinite."""
        if any(line.budget is None for line in self.lines):
            return None
        return max(
            sum((line.budget or Fraction(0) for line in lines), Fraction(0))
            for lines in self.split_programs()
        )

    def split_programs(self) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
        """Return the lines of the states, and those of Puerto Rico: no person is counted in both."""
        return (
            tuple(line for line in self.lines if not line.kind.island),
            tuple(line for line in self.lines if line.kind.island),
        )

    def stages(self, line: Line) -> Stages:
        """Return the noise of a line, for each stage."""
        second = self.noise(line, 1 - self.first_stage)
        return Stages(
            first=self.noise(line, self.first_stage),
            second=second,
            whole=self.noise(line, Fraction(1)),
            thresholds=line.thresholds,
            cut=None if line.kind.fine or not self.suppression else second.cut(self.suppression),
        )

    def sample_lines(self, key: Key, factor: int | Fraction) -> list[MeasuredNoise]:
        """Return noise of each stage of the larger program's lines, for an audit; ``factor`` scales the loss."""
        shares = (("first look", self.first_stage), ("counts", 1 - self.first_stage))
        return [
            self.noise(line, share).sample_noise(f"{line.name} {stage}", key, line.budget * share * factor)
            for line in max(self.split_programs(), key=lambda some: sum(one.budget or 0 for one in some))
            if line.budget is not None
            for stage, share in shares
            if share > 0
        ]

    def noise(self, line: Line, share: Fraction) -> CellNoise:
        """Return noise that costs a share of a line's budget."""
        budget = None if line.budget is None else line.budget * share
        return CellNoise.of(self.definition, budget, line.sensitivity)


def divide_budget(
    own: Table[str, str], usual: Table[Place, Fraction], total: Fraction | None
) -> dict[Place, Fraction]:
    """Return the budget of every region type and level that has one, scaled to a total if one is given."""
    found = dict(usual) | {parse_place(name): parse_fraction(value, "budget") for name, value in own.items()}
    if any(value < 0 for value in found.values()):
        raise BudgetError(
            "a budget is negative", why="it is spent", fix='0 leaves a table out: budget = {"TRACT-1" = "0"}'
        )
    found = {where: value for where, value in found.items() if value}
    if not found:
        raise BudgetError(
            "no table has a budget",
            why="neither a preset nor the setting budget gives one",
            fix='preset = "ddhc-a-2020", or budget = { "STATE-2" = "2" }',
        )
    if total is None:
        return found
    if total <= 0:
        raise BudgetError(
            "the total must be positive", why="with 0 nothing can be measured", fix='total = "4.944"'
        )
    island = sum((value for (name, _), value in found.items() if name.startswith("PR-")), Fraction(0))
    rest = sum(found.values(), Fraction(0)) - island
    return {where: value * total / max(island, rest) for where, value in found.items()}


def set_thresholds(own: Table[str, str], usual: Table[Place, Thresholds]) -> dict[Place, Thresholds]:
    """Return the thresholds of every region type and level.

    >>> set_thresholds({"STATE-2": "1,2,3"}, {})
    {('STATE', 2): (1, 2, 3)}
    """
    return dict(usual) | {parse_place(name): _parse_thresholds(name, text) for name, text in own.items()}


def _parse_thresholds(name: str, text: str) -> Thresholds:
    try:
        low, middle, high = (int(part) for part in str(text).split(","))
    except ValueError:
        low, middle, high = 1, 0, 0
    if not low <= middle <= high:
        raise InputError(
            f"the thresholds of {name} are not three rising whole numbers",
            why="a group gets 4, 9 or 23 ages where its first count reaches the first, second or third",
            fix=f'thresholds = {{ "{name}" = "471,971,6971" }}',
        )
    return low, middle, high


def set_amounts(
    budget: Table[str, str], steps: Table[str, str], usual: DetailedSettings, total: Fraction | None
) -> Amounts:
    """Return budget and thresholds of every region type and level that has a budget."""
    money, found = divide_budget(budget, usual.budgets, total), set_thresholds(steps, usual.thresholds)
    for name, level in money:
        if (name, level) not in found:
            raise InputError(
                f"{name}-{level} has a budget and no thresholds",
                why="they decide which groups are shown by sex and age",
                fix=f'thresholds = {{ "{name}-{level}" = "471,971,6971" }}',
            )
    return {where: (paid, found[where]) for where, paid in money.items()}


def make_lines(
    kinds: Sequence[RegionType], given: Amounts, lists: CodeLists, *, most_codes: int, noiseless: bool
) -> tuple[Line, ...]:
    """Return the lines of the region types that a census has, where the lists have groups for them."""
    return tuple(
        Line(
            kind=kind,
            level=level,
            budget=None if noiseless else given[kind.name, level][0],
            thresholds=given[kind.name, level][1],
            sensitivity=lists.sensitivity(level, fine=kind.fine, most_codes=most_codes),
        )
        for kind in kinds
        for level in LEVELS
        if (kind.name, level) in given and lists.list_iterations(level, fine=kind.fine)
    )
