"""Compare what users conclude before and after: relations, segregation, districts, regressions. Internal."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from stirred.assess.utility import Array
from stirred.census.schema import RecordSchema, Schema, VariableSchema

# The records that a question is about: occupied households, persons, those to which the variables apply.
#
# A vacant home has no race and no tenure; the code that stands for this in a file is not a group of people. Which
# records a question is about follows from the schema alone, so it is the same for the census and for every release:
#
# 1. Questions about households take the occupied ones: not those whose kind is vacant or group quarters, nor housing
#    units of size 0; where the schema lists no kinds, those of size 0 are left out. A question about persons does the
#    same if it asks for a variable of their household. A question that names the column of kinds takes all records.
# 2. A variable with ``not_applicable`` levels decides by itself: records with such a level are left out. So are records
#    in which a variable with ``missing = "keep"`` (not in universe) is empty.

PLURALS = {"household": "households", "person": "persons"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The records that a question is about, in words and as a condition."""

    words: str
    condition: pl.Expr
    columns: tuple[str, ...]  # that the condition reads

    def keep_cells(self, cells: pl.DataFrame, asked: Sequence[str]) -> pl.DataFrame:
        """Return the cells of the variables asked that count these records alone."""
        inside = cells.filter(self.condition)
        return inside.group_by(list(asked), maintain_order=True).agg(pl.col("count").sum())


def choose_scope(schema: Schema, record_type: str, asked: Sequence[str], there: Collection[str]) -> Scope:
    """Return the scope of a question; ``there`` are the columns that both census and release have.

    >>> from stirred.census.schema import Kinds
    >>> home = RecordSchema(name="household", kinds=Kinds(column="kind", occupied=(1,), vacant=(2,)))
    >>> choose_scope(Schema(name="toy", records=(home,)), "household", ["race"], ["race", "kind"]).words
    'occupied households'
    """
    record = schema.record(record_type)
    home = schema.record(record.linked_to) if record.linked_to in schema.record_types else record
    areas = {*schema.spine, *(off.name for off in schema.geography.off_spine)}
    conditions: list[pl.Expr] = []
    columns: list[str] = []
    applying = []
    for name in asked:
        variable = None if name in areas else find_variable(schema, record_type, name)
        if variable is not None and variable.not_applicable:
            conditions.append(~_is_in(name, variable.not_applicable))
            applying.append(name)
        elif variable is not None and variable.missing.policy == "keep":
            conditions.append(pl.col(name).is_not_null())
            applying.append(name)
    undecided = [name for name in asked if name not in areas and name not in applying]
    if record is home:
        asks_homes = bool(undecided) or not applying
    else:
        asks_homes = any(name in home.names and name not in record.names for name in undecided)
    words = PLURALS.get(record_type, f"{record_type} records")
    if asks_homes and not _asks_kind(home, asked):
        found = _occupied_condition(home, there)
        if found is not None:
            condition, needed = found
            conditions.append(condition)
            columns += needed
            words = f"occupied {words}" if record is home else f"{words} in occupied households"
        elif home.kinds is not None or home.size:
            words = f"{words}, vacant units included"
    if applying:
        words += f" to which {' and '.join(applying)} appl{'ies' if len(applying) == 1 else 'y'}"
    return Scope(
        words=words,
        condition=pl.all_horizontal(pl.lit(value=True), *conditions),
        columns=tuple(dict.fromkeys(columns)),
    )


def is_nominal(schema: Schema, record_type: str, name: str) -> bool | None:
    """Return whether the values of a variable have no order; None where the schema does not say."""
    if name in (*schema.spine, *(off.name for off in schema.geography.off_spine)):
        return True
    variable = find_variable(schema, record_type, name)
    return None if variable is None else variable.kind in ("category", "text")


def find_variable(schema: Schema, record_type: str, name: str) -> VariableSchema | None:
    """Return the variable of a record type, or of the record it is linked to, from the schema."""
    record = schema.record(record_type)
    found = _variable(record, name)
    if found is None and record.linked_to in schema.record_types:
        found = _variable(schema.record(record.linked_to), name)
    return found


def _variable(record: RecordSchema, name: str) -> VariableSchema | None:
    return next((variable for variable in record.variables if variable.name == name), None)


def _asks_kind(home: RecordSchema, asked: Sequence[str]) -> bool:
    return home.kinds is not None and home.kinds.column in asked


def _occupied_condition(home: RecordSchema, there: Collection[str]) -> tuple[pl.Expr, list[str]] | None:
    """Return the condition that a home is occupied and its columns; None where they are not released."""
    kinds, inhabited = home.kinds, pl.col(home.size) > 0
    if kinds is None:
        return (inhabited, [home.size]) if home.size and home.size in there else None
    if kinds.column not in there:
        return None
    condition = ~_is_in(kinds.column, (*kinds.vacant, *kinds.group_quarters))
    if not kinds.housing_units or home.size not in there:
        return condition, [kinds.column]
    return condition & (~_is_in(kinds.column, kinds.housing_units) | inhabited), [kinds.column, home.size]


def _is_in(name: str, levels: Sequence[str | int]) -> pl.Expr:
    return pl.col(name).cast(pl.String).is_in([str(level) for level in levels]).fill_null(value=False)


# Compare relations between variables in the protected file and in the original.


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its standard error and 95 % interval."""

    name: str
    value: float
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """Return value ± 1.96 standard errors."""
        return self.value - 1.959963985 * self.error, self.value + 1.959963985 * self.error


def count_records(frame: pl.DataFrame) -> pl.Expr:
    """Count the records in some rows: the sum of the column ``count`` if there is one, else the rows.

    >>> pl.DataFrame({"a": [1, 1], "count": [3, 4]}).select(count_records(pl.DataFrame({"count": [0]}))).item()
    7
    """
    return pl.col("count").sum() if "count" in frame.columns else pl.len()


def cross_table(frame: pl.DataFrame, first: str, second: str) -> Array:
    """Return the two-way table of counts (a column ``count`` weights the rows if there is one).

    >>> cross_table(pl.DataFrame({"a": [1, 1, 2], "b": ["x", "y", "y"]}), "a", "b").tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    counts = frame.group_by(first, second).agg(count_records(frame).cast(pl.Float64).alias("n"))
    wide = (
        counts.pivot(on=second, index=first, values="n", sort_columns=True)
        .sort(first)
        .drop(first)
        .fill_null(0)
    )
    return wide.to_numpy().astype(np.float64)


def cramers_v(table: Array) -> float:
    r"""Cramér's $V = \sqrt{\chi^2 / (N (\min(r, c) - 1))}$ of a two-way table.

    >>> cramers_v(np.array([[10.0, 0.0], [0.0, 10.0]]))
    1.0
    """
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    n, smaller = table.sum(), min(table.shape) - 1
    if smaller < 1 or n == 0:
        return float("nan")
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    return float(np.sqrt((np.square(table - expected) / expected).sum() / (n * smaller)))


def regression(frame: pl.DataFrame, outcome: str, regressors: Sequence[str]) -> list[Estimate]:
    """Fit least squares with an intercept; return estimates with robust (HC1) standard errors.

    Text columns enter as indicators of their levels but the first in the order of codes; a column ``count`` says how many
    records a row stands for.

    >>> f = pl.DataFrame({"y": [1.0, 2.0, 3.0, 4.1], "x": [0, 1, 2, 3]})
    >>> [round(e.value, 3) for e in regression(f, "y", ["x"])]
    [0.98, 1.03]
    """
    names, columns = ["intercept"], [np.ones(frame.height)]
    for name in regressors:
        if frame[name].dtype.is_numeric():
            names.append(name)
            columns.append(frame[name].to_numpy().astype(np.float64))
            continue
        for level in sort_levels(frame[name].cast(pl.String).unique().drop_nulls().to_list())[1:]:
            names.append(f"{name}={level}")
            columns.append(
                (frame[name].cast(pl.String) == level).fill_null(value=False).to_numpy().astype(np.float64)
            )
    X = np.column_stack(columns)
    y = frame[outcome].to_numpy().astype(np.float64)
    w = frame["count"].to_numpy().astype(np.float64) if "count" in frame.columns else np.ones(frame.height)
    bread = np.linalg.pinv((X * w[:, None]).T @ X)
    beta = bread @ (X.T @ (w * y))
    residual = y - X @ beta
    n = float(w.sum())
    scale = n / max(n - X.shape[1], 1.0)
    covariance = scale * bread @ ((X * (w * np.square(residual))[:, None]).T @ X) @ bread
    spread = np.sqrt(np.clip(np.diag(covariance), 0, None))
    return [
        Estimate(name=n, value=float(b), error=float(s)) for n, b, s in zip(names, beta, spread, strict=True)
    ]


def sort_levels(levels: Sequence[str]) -> list[str]:
    """Sort codes by their number where all are numbers, else by their text.

    >>> sort_levels(["10", "9"]), sort_levels(["b", "9"])
    (['9', '10'], ['9', 'b'])
    """
    number = all(level.removeprefix("-").isdecimal() for level in levels)
    return sorted(levels, key=(lambda level: (int(level), level)) if number else lambda level: (0, level))


def largest_levels(frame: pl.DataFrame, name: str, most: int) -> list[str]:
    """Return the levels of a variable with the most records, as text; ties go by the order of codes."""
    counts = dict(frame.group_by(pl.col(name).cast(pl.String)).agg(count_records(frame)).drop_nulls().rows())
    return sorted(sort_levels(list(counts)), key=lambda level: -counts[level])[:most]


def interval_overlap(first: Estimate, second: Estimate) -> float:
    """Return how much two 95 % intervals overlap, as the mean share of each (1: equal, ≤ 0: separate).

    >>> interval_overlap(Estimate(name="a", value=0.0, error=1.0), Estimate(name="a", value=0.0, error=1.0))
    1.0
    """
    (a, b), (c, d) = first.interval, second.interval
    if b == a or d == c:
        return float(a == c and b == d)
    common = min(b, d) - max(a, c)
    return float((common / (b - a) + common / (d - c)) / 2)


def propensity_score(
    original: pl.DataFrame, protected: pl.DataFrame, variables: Sequence[str]
) -> tuple[float, float]:
    r"""Return the propensity-score mean squared error and its ratio to the value expected by chance.

    The score of a cell is the share of protected records in it, so
    $\mathrm{pMSE} = \frac1N \sum_{\text{cells}} n (\hat p - c)^2$ with $c$ the overall share; under equality its mean is
    $(k-1)(1-c)^2 c / N$ for $k$ non-empty cells (Snoke et al. 2018).

    >>> f = pl.DataFrame({"a": ["x", "y"]})
    >>> propensity_score(f, f, ["a"])
    (0.0, 0.0)
    """
    keys = list(variables)
    sides = [
        part.group_by(keys).agg(count_records(part).alias(name))
        for part, name in ((original, "o"), (protected, "p"))
    ]
    both = sides[0].join(sides[1], on=keys, how="full", coalesce=True, nulls_equal=True)
    both = both.sort(keys, nulls_last=False).with_columns(pl.col("o", "p").fill_null(0))
    o, p = both["o"].to_numpy().astype(np.float64), both["p"].to_numpy().astype(np.float64)
    n = o + p
    share = p.sum() / n.sum()
    value = float((n * np.square(p / n - share)).sum() / n.sum())
    expected = (len(n) - 1) * (1 - share) ** 2 * share / n.sum()
    return value, float(value / expected) if expected > 0 else 0.0


# Segregation indices of groups over areas, as social scientists measure them.


def dissimilarity(first: Array, second: Array) -> float:
    r"""The index of dissimilarity $D = \tfrac12 \sum_i |a_i/A - b_i/B|$.

    >>> dissimilarity(np.array([10.0, 0.0]), np.array([0.0, 5.0]))
    1.0
    """
    a, b = first.sum(), second.sum()
    if a == 0 or b == 0:
        return float("nan")
    return float(np.abs(first / a - second / b).sum() / 2)


def entropy_index(counts: Array) -> float:
    r"""Theil's $H = \sum_i t_i (E - E_i) / (T E)$ for areas (rows) by groups (columns).

    >>> entropy_index(np.array([[10.0, 0.0], [0.0, 10.0]]))
    1.0
    >>> entropy_index(np.array([[5.0, 5.0], [5.0, 5.0]]))
    0.0
    """
    totals = counts.sum(axis=1)
    whole = totals.sum()
    overall = _entropy(counts.sum(axis=0, keepdims=True))[0]
    if whole == 0 or overall == 0:
        return float("nan")
    return float((totals * (overall - _entropy(counts))).sum() / (whole * overall))


def _entropy(counts: Array) -> Array:
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    result: Array = -(shares * logs).sum(axis=1)
    return result


# Measures for small areas: district deviations, impossible and improbable areas.


def redistricting_deviation(populations: Array) -> float:
    """Return the largest deviation between districts as a share of the ideal: (max − min) / mean.

    >>> redistricting_deviation(np.array([95.0, 105.0, 100.0]))
    0.1
    """
    return (
        float(np.ptp(populations) / populations.mean())
        if populations.size and populations.mean()
        else float("nan")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity:
    """A kind of impossible or improbable area, and in how many areas it occurs before and after."""

    name: str
    reference: int
    protected: int


def count_oddities(reference: pl.DataFrame, protected: pl.DataFrame) -> list[Oddity]:
    """Count the Bureau's improbable areas for the given columns, before and after.

    Known columns: households, persons, adults, males, women_18_44, children. One row per area.

    >>> f = pl.DataFrame({"households": [3], "persons": [2]})
    >>> count_oddities(f, f)[0]
    Oddity(name='more households than persons', reference=1, protected=1)
    """
    households, persons = pl.col("households"), pl.col("persons")
    rules: list[tuple[str, set[str], pl.Expr]] = [
        ("more households than persons", {"households", "persons"}, households > persons),
        ("persons but no household", {"households", "persons"}, (households == 0) & (persons > 0)),
        ("households but no person", {"households", "persons"}, (households > 0) & (persons == 0)),
        (
            "more than ten persons a household",
            {"households", "persons"},
            (persons > 10 * households) & (households > 0),
        ),
        ("everybody under 18", {"persons", "adults"}, (persons > 0) & (pl.col("adults") == 0)),
        (
            "all of one sex",
            {"persons", "males"},
            (persons > 5) & pl.col("males").is_in([0]) | (persons > 5) & (pl.col("males") == persons),
        ),
        (
            "children but no woman of 18 to 44",
            {"children", "women_18_44"},
            (pl.col("children") > 0) & (pl.col("women_18_44") == 0),
        ),
    ]
    known = set(reference.columns) & set(protected.columns)
    return [
        Oddity(name=name, reference=reference.filter(rule).height, protected=protected.filter(rule).height)
        for name, needs, rule in rules
        if needs <= known
    ]


# Compare conclusions of users before and after: segregation, regressions, districts, improbable areas. Internal.
#
# Records come one by one or as counted cells: a column ``count`` says how many records a row stands for. ``about``
# names the records that a number is about; it is part of every label.

Labels = Mapping[str, Mapping[str, str]]  # variable → level → its words


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedNumber:
    """A number that users publish, before and after; ``about`` names the records that it is about."""

    what: str
    about: str
    original: float
    protected: float

    @property
    def label(self) -> str:
        """Return the number's name with the records that it is about; labels are unique."""
        return f"{self.what}, {self.about}"

    @property
    def change(self) -> float:
        """Return the protected number less the original one."""
        return self.protected - self.original


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A regression coefficient before and after, and how far their 95 % intervals overlap."""

    model: str
    about: str
    original: Estimate
    protected: Estimate

    @property
    def overlap(self) -> float:
        """Return the overlap of the intervals: 1 if equal, 0 or below if separate."""
        return interval_overlap(self.original, self.protected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusions:
    """All compared conclusions for one release."""

    changes: tuple[ChangedNumber, ...] = ()
    coefficients: tuple[Coefficient, ...] = ()
    oddities: tuple[Oddity, ...] = ()


def compare_segregation(
    original: pl.DataFrame,
    protected: pl.DataFrame,
    area: str,
    group: str,
    *,
    about: str,
    labels: Labels | None = None,
) -> list[ChangedNumber]:
    """Compare Theil's entropy index over all groups, and the dissimilarity of the two largest groups."""
    found = []
    tables = [cross_table(frame, area, group) for frame in (original, protected)]
    h = [entropy_index(table) for table in tables]
    what = f"entropy index, {group} over {area}"
    found.append(ChangedNumber(what=what, about=about, original=h[0], protected=h[1]))
    groups = largest_levels(original, group, 2)
    if len(groups) == 2:
        d = [_compare_groups(frame, area, group, groups) for frame in (original, protected)]
        one, other = (_level_label(labels, group, level) for level in groups)
        what = f"dissimilarity of {one} and {other}, {group} over {area}"
        found.append(ChangedNumber(what=what, about=about, original=d[0], protected=d[1]))
    return found


def _level_label(labels: Labels | None, name: str, level: str) -> str:
    return (labels or {}).get(name, {}).get(level, level)


def _compare_groups(frame: pl.DataFrame, area: str, group: str, groups: Sequence[str]) -> float:
    areas = frame.select(area).unique().sort(area)
    sides = [
        areas.join(
            frame.filter(pl.col(group).cast(pl.String) == one).group_by(area).agg(len=count_records(frame)),
            on=area,
            how="left",
            nulls_equal=True,
        )
        .sort(area)["len"]
        .fill_null(0)
        .to_numpy()
        .astype(np.float64)
        for one in groups
    ]
    return dissimilarity(sides[0], sides[1])


def compare_districts(
    original: pl.DataFrame, protected: pl.DataFrame, level: str, *, about: str
) -> ChangedNumber:
    """Compare the largest deviation of areas from equal population, as a share of the ideal."""
    values = [
        redistricting_deviation(
            frame.group_by(level)
            .agg(len=count_records(frame))
            .sort(level)["len"]
            .to_numpy()
            .astype(np.float64)
        )
        for frame in (original, protected)
    ]
    return ChangedNumber(
        what=f"redistricting deviation over {level}", about=about, original=values[0], protected=values[1]
    )


def compare_coefficients(
    original: pl.DataFrame,
    protected: pl.DataFrame,
    outcome: str,
    regressors: Sequence[str],
    *,
    about: str,
    labels: Labels | None = None,
) -> list[Coefficient]:
    """Compare least-squares coefficients of both files; levels that one of them lacks are left out.

    Nominal variables, which come as text, enter as categories; a nominal outcome is the share of its largest level.
    """
    model = f"{outcome} on {', '.join(regressors)}"
    if not original[outcome].dtype.is_numeric() and (most := largest_levels(original, outcome, 1)):
        model = f"share of {outcome}={_level_label(labels, outcome, most[0])} on {', '.join(regressors)}"
        original, protected = (
            frame.with_columns(pl.col(outcome).cast(pl.String).eq(most[0]).cast(pl.Int64).fill_null(0))
            for frame in (original, protected)
        )
    before = {item.name: item for item in regression(original, outcome, regressors)}
    after = {item.name: item for item in regression(protected, outcome, regressors)}
    return [
        Coefficient(
            model=model,
            about=about,
            original=replace(before[name], name=_label_coefficient(name, labels)),
            protected=replace(after[name], name=_label_coefficient(name, labels)),
        )
        for name in before
        if name in after
    ]


def _label_coefficient(coefficient: str, labels: Labels | None) -> str:
    name, equals, level = coefficient.partition("=")
    return f"{name}={_level_label(labels, name, level)}" if equals else coefficient


def compare_propensity(
    original: pl.DataFrame, protected: pl.DataFrame, variables: Sequence[str], *, about: str
) -> ChangedNumber:
    """Compare the propensity-score ratio: 1 for two samples of one population, 0 for equal files."""
    _, ratio = propensity_score(original, protected, variables)
    what = f"propensity ratio over {', '.join(variables)}"
    return ChangedNumber(what=what, about=about, original=0.0, protected=ratio)
