"""Look up one published number: which one to quote, its interval, its labels, and a sentence for a data user."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from stirred.census.schema import Schema, collect_labels, find_code
from stirred.errors import InputError, did_you_mean
from stirred.languages import Language, Phrase
from stirred.mechanisms.effect import (
    CLASS_NAMES,
    CLASS_STARTS,
    MAJORITY,
    NOMINAL_PERCENT,
    OTHER,
    TRUE_SIZE_COVERAGE,
    TWICE,
    find_kind,
    find_size_class,
    lookup_coverage,
    lookup_kind_coverage,
    write_range,
)
from stirred.mechanisms.exhibits import SELECTED_ROWS_KEY
from stirred.mechanisms.registry import list_coverage_of, list_measured_coverage
from stirred.publish.packet.checksums import public_part
from stirred.publish.packet.folder import Packet, replace_read_errors
from stirred.text_formats import parse_json, read_plain_text

if TYPE_CHECKING:
    import pyarrow as pa


# Which number of a published table to quote; tables as they are published, with no negative estimate.
#
# A swap brings records from elsewhere into each cell: the count $C$ of a true number $T$ has the mean $T + q(m - T)$,
# with $q$ the chance that a record moves and $m$ what the cell would hold if all records of a stratum were spread
# evenly. The estimate $E$ takes this pull back, so it has no bias, but its noise is $1/(1-q)$ times that of the count.
# With $s$ its standard error, $C - T = (E - T) - q(E - m)$ has the mean square $s^2 - 2qs^2 + \mathrm{E}[(E - C)^2]$:
# the count is nearer on average where the mean of $(E - C)^2$ is below $2qs^2$. All three numbers are public, and so
# is the rule, cell by cell: the count where $(E - C)^2 \le 2qs^2$. Measured: benchmarks/quoting.py,
# docs/benchmarks/accuracy.md.

QUOTE = "quote"  # the column of a published table that names the number to quote
RULE = Phrase("packet.readme.rule")
README_WIDTH, NAME_WIDTH = 118, 17  # of lines, and of the names of columns
README_COLUMNS = (
    ("count", "count"),
    ("weighted", "weighted"),
    ("estimate", "estimate"),
    ("standard_error", "standard_error"),
    ("variance", "variance"),
    ("low, high", "interval"),
    (QUOTE, "quote"),
)


def describe_tables(language: Language, methods: Sequence[str] = ()) -> str:
    """Return what tables/README.txt says: which number to quote, what columns mean, how often intervals are right.

    ``methods`` are the mechanisms of the release; without them all that were measured are told.
    """
    say = language.say
    fewest, most = TRUE_SIZE_COVERAGE
    lines = [say("packet.readme.rule"), "", *wrap(say("packet.readme.why"), README_WIDTH), ""]
    for name, key in README_COLUMNS:
        first, *rest = wrap(say(f"packet.readme.{key}"), README_WIDTH - NAME_WIDTH)
        lines += [f"{name:<{NAME_WIDTH}}{first}", *(" " * NAME_WIDTH + line for line in rest)]
    measured = list_coverage_of(methods)
    if not measured:
        told = say("report.coverage.unmeasured", nominal=NOMINAL_PERCENT)
        return "\n".join([*lines, "", *wrap(told, README_WIDTH), ""])
    lines += ["", *wrap(say("packet.readme.nominal", nominal=NOMINAL_PERCENT), README_WIDTH), ""]
    lines.append(f"{'':<36}{''.join(f'{name:>10}' for name in CLASS_NAMES)}")
    for one in measured:
        named = one.name if language.is_english else say(f"report.coverage.{one.key}")
        for level, row in one.levels.items():
            shown = say(f"report.coverage.{level.replace(' ', '_')}")
            lines.append(f"{f'{named}: {shown}':<36}" + "".join(f"{write_range(held):>10}" for held in row))
    lines += ["", *wrap(say("packet.readme.sizes", fewest=fewest, most=most), README_WIDTH), ""]
    return "\n".join(lines)


COLUMNS = describe_tables(Language.of("en"))
WIDE_INTERVAL = 20  # intervals at least this wide are shown in whole numbers: tenths would be false precision


def explain_number(
    *,
    count: float,
    estimate: float | None,
    standard_error: float | None,
    low: float | None = None,
    high: float | None = None,
    measure: Literal["count", "weighted"] = "count",
    quote: str | None = None,
) -> str:
    """Explain in one or two sentences which number to quote; ``count`` is that in column ``measure``.

    ``quote`` is what the table's own column says; packets of earlier versions have none, and theirs was the estimate.

    >>> explain_number(count=8, estimate=8.0, standard_error=0.0)
    'Quote 8: it is exact.'
    >>> print(explain_number(count=30, estimate=21.4, standard_error=3.0, low=15.5, high=27.3))
    Quote the estimate, 21.4 (15.5 to 27.3). The published count, 30, is for adding up; it lies outside the interval \
because the method pulls counts towards the average.
    >>> print(explain_number(count=80, estimate=74.38, standard_error=9.0, low=56.2, high=92.1))
    Quote the estimate, 74 (56 to 93). The published count, 80, is for adding up.
    >>> print(explain_number(count=75, estimate=74.38, standard_error=9.0, low=56.2, high=92.1, quote="count"))
    Quote the count, 75 (56 to 93). The estimate, 74, differs from it by less than its noise, so the count is likely to \
be nearer.
    """
    name, number = ("count", f"{count:,.0f}") if measure == "count" else ("total", f"{count:,.1f}")
    if quote == "neither" or (quote is None and standard_error == float("inf")):
        return f"Quote no number for this cell alone; the published {name}, {number}, is for adding up."
    if estimate is None or standard_error is None:
        return f"Quote {number}; how certain it is, the release does not say."
    if standard_error == 0:
        return f"Quote {number}: it is exact."
    if quote == measure:
        within = "" if low is None or high is None else f" ({_write_ends(low, high)})"
        other = _write_estimate(estimate, low, high).partition(" ")[0]
        return (
            f"Quote the {name}, {number}{within}. The estimate, {other}, differs from it by less than its noise, so the "
            f"{name} is likely to be nearer."
        )
    first = f"Quote the estimate, {_write_estimate(estimate, low, high)}. The published {name}, {number}, is for adding up"
    if low is None or high is None or low <= max(count, 0) <= high:
        return f"{first}."
    return f"{first}; it lies outside the interval because the method pulls {name}s towards the average."


def _write_estimate(estimate: float | None, low: float | None, high: float | None) -> str:
    """Write an estimate with its interval, in whole numbers where the interval is wide."""
    if low is None or high is None:
        return _round_number(estimate, ROUND_HALF_EVEN, wide=False)
    return f"{_round_number(estimate, ROUND_HALF_EVEN, wide=high - low >= WIDE_INTERVAL)} ({_write_ends(low, high)})"


def _write_ends(low: float, high: float) -> str:
    """Write the ends of an interval, rounded outwards."""
    wide = high - low >= WIDE_INTERVAL
    return f"{_round_number(low, ROUND_FLOOR, wide=wide)} to {_round_number(high, ROUND_CEILING, wide=wide)}"


def _round_number(number: float | None, rounding: str, *, wide: bool) -> str:
    return f"{Decimal(repr(number)).quantize(Decimal(1 if wide else '0.1'), rounding):,}"


def prepare_table(table: "pa.Table") -> "pa.Table":
    """Return the table to publish: estimates and intervals at or above 0, and the column ``quote``.

    >>> import pyarrow as pa
    >>> made = pa.table({"count": [0, 5], "estimate": [-0.2, 5.0], "standard_error": [0.1, 0.0],
    ...                  "low": [-0.4, 5.0], "high": [0.1, 5.0]})
    >>> prepare_table(made).to_pylist()[0]["estimate"], prepare_table(made).to_pylist()[1]["low"]
    (0.0, None)
    >>> prepare_table(made)["quote"].to_pylist()
    ['estimate', 'count']
    >>> from stirred.mechanisms.release import PULL_KEY  # records that moved with chance 1/2 pulled these counts
    >>> prepare_table(made.replace_schema_metadata({PULL_KEY: "1/2"}))["quote"].to_pylist()
    ['estimate', 'count']
    """
    measure = "weighted" if "weighted" in table.column_names else "count"
    if not {"estimate", "standard_error", "low", "high"} <= set(table.column_names):
        import pyarrow as pa

        said = pa.array([measure] * table.num_rows, pa.string())
        return _add_rule(table.append_column(QUOTE, said))
    frame = pl.DataFrame(pl.from_arrow(table))
    error = pl.col("standard_error")
    exact = error.fill_null(float("nan")) == 0
    from stirred.mechanisms.release import PULL_KEY  # it loads pyarrow, which a look-up need not

    pull = float(Fraction((table.schema.metadata or {}).get(PULL_KEY, b"0").decode()))
    nearer = (pl.col("estimate") - pl.col(measure)) ** 2 <= 2 * pull * error**2
    frame = frame.with_columns(
        pl.when(exact | error.is_null())
        .then(pl.lit(measure))
        .when(error.is_infinite())
        .then(pl.lit("neither"))
        .when(nearer if pull else pl.lit(False))
        .then(pl.lit(measure))
        .otherwise(pl.lit("estimate"))
        .alias(QUOTE)
    )
    frame = frame.with_columns(pl.col("estimate", "low", "high").clip(lower_bound=0.0))
    frame = frame.with_columns(pl.when(~exact).then(pl.col("low", "high")))
    made = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    return _add_rule(made.replace_schema_metadata(table.schema.metadata))


def _add_rule(table: "pa.Table") -> "pa.Table":
    """Return the table with the rule in the metadata of its Parquet file."""
    return table.replace_schema_metadata(
        {**(table.schema.metadata or {}), "stirred.quote": f"{RULE} {Phrase('packet.readme.why')}"}
    )


# The labels of a packet: words for the codes of its tables, so that people need no codebook.

LABELS = "labels.json"


Labels = Mapping[str, Mapping[str, Mapping[str, str]]]


def write_labels(public: Path, schema: Schema, more: Sequence[Labels] = ()) -> None:
    """Write the labels of the codebook, record type → variable → code → label; nothing where it has none.

    ``more`` are those of variables that a mechanism makes; for a variable of the census its codebook decides.
    """
    found = collect_labels(schema)
    for labels in more:
        for record, variables in labels.items():
            for name, words in variables.items():
                found.setdefault(record, {}).setdefault(name, dict(words))
    if found:
        text = json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True)
        (public / LABELS).write_text(text + "\n", encoding="utf-8")


def read_labels(packet: Path) -> dict[str, dict[str, str]]:
    """Return variable → code → label over all record types, without codes that are labelled differently."""
    try:
        document = parse_json(read_plain_text(public_part(packet) / LABELS))
    except (OSError, ValueError):
        return {}  # an earlier version wrote the packet, or its codebook has no labels
    found: dict[str, dict[str, str]] = {}
    apart: set[tuple[str, str]] = set()
    records = document.values() if isinstance(document, dict) else ()
    for variables in (record for record in records if isinstance(record, dict)):
        for name, labels in variables.items():
            for code, label in labels.items() if isinstance(labels, dict) else ():
                if found.setdefault(name, {}).setdefault(code, str(label)) != str(label):
                    apart.add((name, code))
    for name, code in apart:
        del found[name][code]
    return found


def encode_cell(packet: Path, where: Mapping[str, str]) -> dict[str, str]:
    """Return a cell with codes in place of labels."""
    labels = read_labels(packet)
    return {name: find_code(level, labels.get(name, {})) for name, level in where.items()}


def label_cell(packet: Path, where: Mapping[str, str]) -> dict[str, str]:
    """Return a cell with labels, where the codes have them."""
    labels = read_labels(packet)
    return {name: labels.get(name, {}).get(level, level) for name, level in where.items()}


def list_labels(packet: Path, where: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the labels that the levels of a cell's variables have."""
    labels = read_labels(packet)
    return {name: list(labels[name].values()) for name in where if name in labels}


# One published number, its interval and a sentence, for a data user.

MEASURES = ("count", "weighted", "estimate", "standard_error", "variance", "low", "high", "quote")
KIND_WORDS = {
    TWICE: "whose published share of the {level} is at least twice that of the {above}",
    MAJORITY: "that are more than half of the {level} and not twice their share of the {above}",
    OTHER: "that are at most half of the {level} and not twice their share of the {above}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCell:
    """A cell of a published table."""

    table: str
    where: Mapping[str, str]
    count: int
    weighted: float | None
    estimate: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    private: bool
    variance: float | None = None  # of the noise, where the mechanism states it
    quote: str | None = None  # the column to quote; packets of earlier versions have none
    mechanism: str | None = None  # that made the packet, where it is one
    kind_coverage: tuple[int, int] | None = None  # of cells of its kind, where that was measured
    kind_words: str = ""  # which cells these are

    def document(self) -> dict[str, object]:
        """Return the cell as plain values for programs."""
        return {
            "table": self.table,
            "where": dict(self.where),
            **{name: getattr(self, name) for name in MEASURES},
        }

    def sentences(self) -> list[str]:
        """Return sentences for people: the cell, the number to quote, the published one, and the interval."""
        cell = ", ".join(f"{name} = {level}" for name, level in self.where.items())
        said = [f"{self.table}: {cell}" + ("" if self.private else " (NOT PRIVATE: made with a test key)")]
        if self.weighted is not None:
            said.append(f"Published: {self.weighted:,.1f}, the weights of {self.count:,} records.")
        said.append(self.explain_number())
        if self.standard_error == 0:
            said.append("It is published as it was counted: an invariant.")
        elif self.standard_error == float("inf"):
            said.append("The release says nothing certain about this cell beyond its margins.")
        elif self.low is not None:
            said.append(self.describe_coverage())
        return said

    def describe_coverage(self) -> str:
        """Describe the nominal coverage of the interval, and the measured one where there is one."""
        made = f"The interval is made to hold the true number of {NOMINAL_PERCENT} in 100 cells published like this one"
        held = self.kind_coverage or lookup_coverage(
            list_measured_coverage(self.mechanism or ""), self.count, self.where
        )
        if held is None:
            return f"{made}."
        fewest, most = TRUE_SIZE_COVERAGE
        range_held = " to ".join(map(str, sorted(set(held))))
        few = f" of cells whose true number is 1 to 19, {fewest} to {most}."
        return (
            f"{made}; where that was measured, it did so for {range_held} of 100 cells published as "
            f"{CLASS_NAMES[find_size_class(self.count)]}{self.kind_words}"
            + (f";{few}" if self.low is not None and self.low < CLASS_STARTS[3] else ".")
        )

    def explain_number(self) -> str:
        """Explain which number of the cell to quote, and why."""
        weighted = self.weighted is not None
        return explain_number(
            count=self.weighted if self.weighted is not None else self.count,
            estimate=self.estimate,
            standard_error=self.standard_error,
            low=self.low,
            high=self.high,
            measure="weighted" if weighted else "count",
            quote=self.quote,
        )


def _find_kind_coverage(packet: Packet, table: str, where: Mapping[str, str], count: int) -> dict[str, Any]:
    """Return the coverage of cells of this kind and which cells these are, where that was measured.

    The kind is computed from the released records alone, so it says nothing that they do not say.
    """
    entries, counted = packet.mechanisms(), packet.receipt().get("tables")
    record_type = counted.get(table) if isinstance(counted, dict) else None
    if len(entries) != 1 or record_type is None:
        return {}
    measured = list_measured_coverage(str(entries[0].get("name")))
    for level, above in dict.fromkeys((one.level, one.above) for each in measured for one in each.kinds):
        shares = count_shares(packet, str(record_type), where, level, above)
        if shares is None:
            continue
        kind = find_kind(*shares)
        held = lookup_kind_coverage(measured, count, where, kind, entries[0].get("settings") or {})
        if held is not None:
            words = KIND_WORDS[kind].format(level=level.replace("_", " "), above=above.replace("_", " "))
            return {"kind_coverage": held, "kind_words": f", {words}"}
    return {}


def count_shares(
    packet: Packet, record_type: str, where: Mapping[str, str], level: str, above: str
) -> tuple[int, int, int, int] | None:
    """Count the released records of a cell, of its area, and of both in the area above; None where they are not told."""
    path = packet.public / "data" / f"{record_type}.parquet"
    more = [name for name in where if name != level]
    if level not in where or not more or not path.exists():
        return None
    with replace_read_errors(f"data/{path.name}"):
        records = pl.scan_parquet(path / "*.parquet" if path.is_dir() else path)
        if not {*where, above} <= set(records.collect_schema().names()):
            return None
        here = pl.col(level).cast(pl.String) == where[level]
        parent = records.filter(here).select(above).head(1).collect()
        if parent.is_empty():
            return None
        cell = pl.all_horizontal(pl.col(name).cast(pl.String) == where[name] for name in more)
        around = records.filter(pl.col(above) == parent[above][0])
        found = around.select((here & cell).sum(), area=here.sum(), above=cell.sum(), all=pl.len()).collect()
    first, second, third, fourth = found.row(0)
    return first, second, third, fourth


def look_up(folder: Path, where: Mapping[str, str], *, table: str | None = None) -> PublishedCell:
    """Return the cell in the one table that has just these variables, or in the table named."""
    packet = Packet(folder)
    receipt = packet.receipt()
    names = [table] if table else packet.table_names()
    makers = {str(entry.get("name")) for entry in packet.mechanisms()}
    if table and table not in packet.table_names():
        raise InputError(
            f"the packet has no table {table}",
            why="no published table has this name",
            fix=did_you_mean(table, packet.table_names()),
        )
    for name in names:
        frame = packet.frame(name)
        variables = [column for column in frame.columns if column not in MEASURES]
        if set(variables) != set(where):
            continue
        frame = frame.with_columns(pl.col(variables).cast(pl.String))
        rows = frame.filter(*[pl.col(key) == level for key, level in where.items()])
        for key, level in where.items():
            levels = frame[key].drop_nulls().unique().to_list()
            if level not in levels:
                raise InputError(
                    f"{name} has no {key} {level}",
                    why="no published cell has this level",
                    fix=did_you_mean(level, levels[:2000]),
                )
        if rows.is_empty() and packet.has_mark(name, SELECTED_ROWS_KEY):
            raise InputError(
                f"{name} does not show this cell",
                why="small or empty cells of this table are left out, so a missing row is not a count of 0",
                fix="look up a cell that is shown, or a larger area",
            )
        values: dict[str, Any] = (
            dict.fromkeys(MEASURES[1:])
            if rows.is_empty()
            else {m: rows[m][0] if m in rows.columns else None for m in MEASURES[1:]}
        )
        return PublishedCell(
            table=name,
            where=where,
            count=0 if rows.is_empty() else int(rows["count"][0]),
            private=bool(receipt.get("private", False)),
            mechanism=makers.pop() if len(makers) == 1 else None,
            **values,
            **_find_kind_coverage(packet, name, where, 0 if rows.is_empty() else int(rows["count"][0])),
        )
    names = packet.table_names()
    known = {column for name in names for column in packet.frame(name).columns} - set(MEASURES)
    for key in where:
        if known and key not in known:  # only what failed is suggested for
            raise InputError(
                f"no published table has a variable {key}",
                why=f"{', '.join(sorted(set(where) - {key})) or 'nothing else'} was asked for with it",
                fix=did_you_mean(key, known),
            )
    raise InputError(
        "no published table has just these variables",
        why=f"asked for {', '.join(sorted(where))}",
        fix=f"the packet has: {', '.join(names)}"
        if names
        else "the packet has no tables: name them in the plan ([[table]]), or count the records",
    )
