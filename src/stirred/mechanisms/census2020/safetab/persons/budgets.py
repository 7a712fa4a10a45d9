"""Divide the budget of SafeTab-P among region types and levels, and state the promise of a run.

The settings of published products stand here as exact constants: the Detailed DHC-A of 2020.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.chance import Key
from stirred.errors import BudgetError, InputError, did_you_mean
from stirred.languages import Phrase
from stirred.mechanisms.census2020.config import SafeTabPConfig
from stirred.mechanisms.census2020.factors import (
    SAFETAB_P_CONVERSION,
    Definition,
    KnownInvariants,
    NeighbourKind,
)
from stirred.mechanisms.census2020.noise import CellNoise, choose_premetric, make_budget
from stirred.mechanisms.census2020.safetab.base import ProductSettings, parse_thresholds, replace_budgets
from stirred.mechanisms.census2020.safetab.groups import (
    LEVELS,
    REGION_TYPES,
    CodeLists,
    RegionType,
)
from stirred.mechanisms.census2020.safetab.persons.tables import Stages
from stirred.mechanisms.contents import MeasuredNoise
from stirred.mechanisms.proposal import find_root
from stirred.mechanisms.topdown.tree import tree_invariants
from stirred.spec import (
    Budget,
    Evidence,
    Hamming,
    Ledger,
    Margin,
    Multiverse,
    RecordPremetric,
    Specification,
    SymmetricDifference,
)
from stirred.spec.invariants import Views

if TYPE_CHECKING:
    from stirred.census import Census


# The settings of published products as exact constants: the Detailed DHC-A of 2020.

Place = tuple[str, int]  # a region type and a level
THRESHOLDS_PER_PLACE = 3
_FINE, _COARSE, _REGIONAL = Fraction("2.134"), Fraction("0.159"), Fraction("0.008")
_DETAILED: Mapping[bool, tuple[int, ...]] = {True: (471, 971, 6971), False: (971, 4971, 19971)}

DDHC_A_2020: ProductSettings[Place] = ProductSettings(
    budgets={
        **{(name, 1): Fraction(0) if name == "AIANNH" else _REGIONAL for name in REGION_TYPES},
        **{(name, 2): _FINE if kind.fine else _COARSE for name, kind in REGION_TYPES.items()},
    },
    thresholds={
        **{(name, 1): (4971, 19971, 149971) for name in REGION_TYPES},
        **{(name, 2): _DETAILED[kind.fine] for name, kind in REGION_TYPES.items()},
    },
)
PRESETS: Mapping[str, ProductSettings[Place]] = {"": ProductSettings(), "ddhc-a-2020": DDHC_A_2020}


def parse_place(text: str) -> Place:
    """Return the region type and level that a text of the settings names.

    >>> parse_place("PR-STATE-2")
    ('PR-STATE', 2)
    """
    name, _, level = text.rpartition("-")
    if name not in REGION_TYPES or level not in ("1", "2"):
        known = [f"{name}-{level}" for name in REGION_TYPES for level in (1, 2)]
        raise InputError(
            f"{text!r} is no region type with a level",
            why="a budget and thresholds belong to one of each",
            fix=did_you_mean(text, known),
        )
    return name, int(level)


# What a run measures and pays for: the region types and levels of a census with their budgets, thresholds and noise.

Amounts = dict[Place, tuple[Fraction, tuple[int, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One region type and level with its budget; None is infinite."""

    kind: RegionType
    level: int
    budget: Fraction | None
    thresholds: tuple[int, ...]
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


def set_amounts(config: SafeTabPConfig) -> Amounts:
    """Return budget and thresholds of every region type and level that has a budget."""
    usual = PRESETS[config.preset]
    own = {parse_place(name): Fraction(value) for name, value in config.budget.items()}
    money = {at: paid for at, paid in replace_budgets(usual.budgets, own, config.total).items() if paid}
    if not money:
        raise BudgetError(
            "no table has a budget",
            why="neither a preset nor the setting budget gives one",
            fix='preset = "ddhc-a-2020", or budget = { "STATE-2" = "2" }',
        )
    steps = {
        **usual.thresholds,
        **{
            parse_place(name): parse_thresholds(name, text, THRESHOLDS_PER_PLACE)
            for name, text in config.thresholds.items()
        },
    }
    for name, level in money:
        if (name, level) not in steps:
            raise InputError(
                f"{name}-{level} has a budget and no thresholds",
                why="they decide which groups are shown by sex and age",
                fix=f'thresholds = {{ "{name}-{level}" = "471,971,6971" }}',
            )
    return {at: (paid, steps[at]) for at, paid in money.items()}


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


# State the promise of a SafeTab-P run: its specification, its account and what must be said with it.

PROVED_FACTOR, PUBLISHED_FACTOR = (
    SAFETAB_P_CONVERSION.proved.times,
    SAFETAB_P_CONVERSION.published.times,
)  # what ρ² is multiplied by for a changed record


def housing_unit_margins(census: "Census", counted: str) -> tuple[Margin, ...]:
    """Return the housing units by the lowest level of areas, the invariant that the paper lists for SafeTab.

    Nothing is computed from them, and no table shows them; the promise also holds without them (``invariants = "none"``).
    """
    if not census.schema.spine:
        return ()
    record, leaf = find_root(census.schema), census.schema.spine[-1]
    if record.name == counted:  # a census of persons alone has no housing units
        return ()
    where = None
    if record.kinds is not None:
        homes = (*record.kinds.occupied, *record.kinds.vacant, *record.kinds.housing_units)
        where = {record.kinds.column: [str(level) for level in homes]}
    return (Margin(record.name, (leaf,), where, Phrase("safetab.homes", level=leaf)),)


def build_specification(
    census: "Census",
    allotment: Apportionment,
    record: str,
    compared: NeighbourKind,
    absent: tuple[str, ...],
    *,
    stated: KnownInvariants,
    released: Views,
) -> Specification:
    """Return the promise for persons added or removed, or for persons changed (Theorem 2)."""
    changed = compared == "changed"
    spent, definition = allotment.total_budget(), allotment.definition
    paid = spent * PROVED_FACTOR if changed and spent is not None else spent
    premetric: RecordPremetric = Hamming(record) if changed else SymmetricDifference(record)
    homes = housing_unit_margins(census, record) if stated == "housing-units" else ()
    source = "safetab.source.changed" if changed else "safetab.source.added"
    return Specification(
        domain=census.domain,
        multiverse=Multiverse.of(*homes, *tree_invariants(census)),
        input_premetric=premetric,
        output_premetric=choose_premetric(definition),
        budget=make_budget(paid, definition),
        evidence=Evidence(status="proved", source=Phrase(source)),
        notes=(*_write_notes(allotment, spent, absent, homes=bool(homes)), *census.notes),
        released=released,
    )


def _write_notes(
    allotment: Apportionment, spent: Fraction | None, absent: tuple[str, ...], *, homes: bool
) -> tuple[str, ...]:
    notes: list[str] = [Phrase("safetab.note.public"), Phrase("safetab.note.dropped")]
    if homes:
        notes.append(Phrase("safetab.note.homes"))
    if spent is not None and allotment.definition == "zcdp":
        published, proved = (str(Budget.of(spent * times)) for times in (PUBLISHED_FACTOR, PROVED_FACTOR))
        counted = str(Budget.of(spent))
        notes.append(Phrase("safetab.note.factors", counted=counted, published=published, proved=proved))
    elif spent is not None:
        figures = (str(Budget.of(spent)), str(Budget.of(2 * spent)))
        notes.append(Phrase("safetab.note.pure", counted=figures[0], changed=figures[1]))
    if all(allotment.split_programs()):
        notes.append(Phrase("safetab.note.apart"))
    if absent:
        notes.append(Phrase("safetab.note.absent", types=", ".join(absent)))
    return tuple(notes)


def build_ledger(allotment: Apportionment, compared: NeighbourKind, limit: Budget, by: str) -> Ledger:
    """Return the account of a run: one line for each region type and level of the larger program."""
    times = PROVED_FACTOR if compared == "changed" else 1
    account = Ledger(limit=limit, output_premetric=choose_premetric(allotment.definition))
    if allotment.total_budget() is None:
        return account.spend(by, "exact counts", Budget.infinite())
    larger = max(
        allotment.split_programs(), key=lambda lines: sum((line.budget or 0 for line in lines), Fraction(0))
    )
    for line in larger:
        amount = None if line.budget is None else line.budget * times
        account = account.spend(by, line.name, make_budget(amount, allotment.definition))
    return account
