"""Define invariants: tables of counts and inequalities released exactly; and the views of a release."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Protocol

from stirred.errors import SpecificationError, require_kind
from stirred.languages import Phrase, unit
from stirred.spec.domain import Domain

if TYPE_CHECKING:
    import pyarrow as pa


# Invariants: tables of counts, and other statistics that tables determine.


class SupportsCounts(Protocol):
    """The protocol by which spec reads a census: tables of counts."""

    def counts(
        self, record_type: str, by: Sequence[str], where: Mapping[str, Sequence[str]] | None = None
    ) -> "pa.Table": ...


@dataclass(frozen=True, slots=True)
class Restriction:
    """A restriction to records whose variables take one of these values.

    >>> print(Restriction.of({"kind": ["gq"]}))
    kind = gq
    """

    conditions: tuple[tuple[str, tuple[str, ...]], ...]

    @staticmethod
    def of(conditions: "Mapping[str, Iterable[str]] | Restriction") -> "Restriction":
        if isinstance(conditions, Restriction):
            return conditions
        return Restriction(
            tuple((name, tuple(sorted({*values}))) for name, values in sorted(conditions.items()))
        )

    def as_dict(self) -> dict[str, tuple[str, ...]]:
        return dict(self.conditions)

    def words(self) -> str:
        """Return the conditions in words."""
        each: list[str] = [describe_condition(name, values) for name, values in self.conditions]
        return reduce(_join_and, each) if each else ""

    def __str__(self) -> str:
        return self.words()


def describe_condition(variable: str, levels: Sequence[str]) -> Phrase:
    """Describe the condition that a variable takes one of these values.

    >>> describe_condition("kind", ("gq", "hh"))
    'kind = gq or hh'
    """
    values = reduce(_join_or, levels) if levels else ""
    return Phrase("invariant.condition", variable=variable, values=values)


def _join_or(first: str, second: str) -> str:
    return Phrase("lists.either", first=first, second=second)


def _join_and(first: str, second: str) -> str:
    return Phrase("lists.both", first=first, second=second)


class Invariant:
    """A statistic released exactly, hence unprotected; subclass it (frozen and hashable) for one of your own.

    `needs` are the margins that determine it: enough for every rule of `refines`.
    """

    __slots__ = ()

    def words(self) -> str:
        """Return the invariant in words; a ``Phrase`` is shown in the language of the card."""
        raise NotImplementedError

    def needs(self) -> "tuple[Margin, ...]":
        raise NotImplementedError

    def tabulate(self, counts: SupportsCounts) -> "pa.Table":
        raise NotImplementedError

    def identity(self) -> str:
        """Return a fixed text that identifies the invariant; it goes into digests, and labels do not change it."""
        return f"{type(self).__name__}:{self.words()}"

    def __str__(self) -> str:
        return self.words()


@dataclass(frozen=True, slots=True)
class Margin(Invariant):
    """A table of counts of one record type over some variables; over none it is the total.

    >>> print(Margin("household", ("size", "block")))
    households by block × size
    """

    record_type: str
    by: tuple[str, ...] = ()
    where: Restriction | None = None
    label: str = field(default="", compare=False)  # a name, no part of the meaning

    def __init__(
        self,
        record_type: str,
        by: Iterable[str] = (),
        where: "Restriction | Mapping[str, Iterable[str]] | None" = None,
        label: str = "",
    ) -> None:
        if isinstance(by, str):
            raise SpecificationError(
                f"by={by!r} is one text, not a list of variables",
                why="each letter would be read as a variable",
                fix=f'by=("{by}",)',
            )
        require_kind(
            "the record type of a margin",
            record_type,
            str,
            wanted="a text",
            fix='Margin("household", ("block",))',
            error=SpecificationError,
        )
        object.__setattr__(self, "record_type", record_type)
        object.__setattr__(self, "by", tuple(sorted({*by})))
        object.__setattr__(self, "where", Restriction.of(where) if where else None)
        object.__setattr__(self, "label", label)

    def conditions(self) -> dict[str, tuple[str, ...]]:
        return self.where.as_dict() if self.where else {}

    def needs(self) -> "tuple[Margin, ...]":
        return (self,)

    def words(self) -> str:
        if self.label:
            return self.label
        return describe_table(self.record_type, " × ".join(self.by), self.where)

    def identity(self) -> str:
        return f"Margin:{self.record_type}|{','.join(self.by)}|{self.where or ''}"

    def tabulate(self, counts: SupportsCounts) -> "pa.Table":
        return counts.counts(self.record_type, self.by, self.conditions() or None)

    def __str__(self) -> str:
        return self.words()


@dataclass(frozen=True, slots=True)
class Custom(Invariant):
    """Any other statistic that declares the margins which determine it.

    ``keeps_with`` names the record type of which it is the table of records together with their members, whole: the
    persons of each household with its held variables. Two records of that type may then exchange places.
    """

    name: str
    determined_by: tuple[Margin, ...] = ()
    description: str = field(default="", compare=False)
    keeps_with: str = field(default="", compare=False)

    def needs(self) -> tuple[Margin, ...]:
        return self.determined_by

    def words(self) -> str:
        return self.description or self.name

    def identity(self) -> str:
        return f"Custom:{self.name}|{';'.join(margin.identity() for margin in self.determined_by)}"

    def tabulate(self, counts: SupportsCounts) -> "pa.Table":
        del counts  # what it would be computed from; this class has no rule for it
        raise SpecificationError(
            f"cannot compute the invariant {self.name!r}",
            why="a Custom invariant states what determines it, not how it is computed",
            fix="subclass Invariant and write realised()",
        )

    def __str__(self) -> str:
        return self.words()


def describe_table(record_type: str, variables: str, where: Restriction | None = None) -> Phrase:
    """Describe a table of counts; without variables it is the number of records.

    >>> describe_table("household", "size", Restriction.of({"kind": ["gq", "hh"]}))
    'households by size where kind = gq or hh'
    """
    ones = unit(record_type, "ones")
    if where:
        told = where.words()
        if variables:
            return Phrase("invariant.table_where", ones=ones, variables=variables, condition=told)
        return Phrase("invariant.total_where", ones=ones, condition=told)
    if variables:
        return Phrase("invariant.table", ones=ones, variables=variables)
    return Phrase("invariant.total", ones=ones)


def pluralize(record_type: str) -> str:
    """Return the plural of a record type; group quarters stay as they are.

    >>> pluralize("person"), pluralize("group quarters")
    ('persons', 'group quarters')
    """
    return record_type if record_type.endswith("s") else record_type + "s"


# Inequality invariants: whether a table reaches a number, or another table, in each area.


@dataclass(frozen=True, slots=True)
class AtLeast(Invariant):
    r"""Whether one linear statistic reaches another in each area: $c(x) = 1[f(x) \le 0]$, $f$ = than − statistic.

    >>> print(AtLeast(Margin("household", ("block",)), 1))
    whether households by block are at least 1
    """

    statistic: Margin
    than: Margin | int = 1
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.than, bool) or (isinstance(self.than, int) and self.than < 1):
            raise SpecificationError(
                f"than={self.than} is no threshold",
                why="every count is at least 0, so nothing is decided below 1",
                fix="give than=1 or more",
            )
        if isinstance(self.than, Margin) and self.than.by != self.statistic.by:
            raise SpecificationError(
                "the two sides of an inequality invariant differ in their areas",
                why=f"{self.statistic.by} against {self.than.by}",
                fix="give both margins the same by=",
            )

    def needs(self) -> tuple[Margin, ...]:
        return (self.statistic, self.than) if isinstance(self.than, Margin) else (self.statistic,)

    def words(self) -> str:
        than = self.than.words() if isinstance(self.than, Margin) else self.than
        return self.label or Phrase("invariant.at_least", table=self.statistic.words(), than=than)

    def identity(self) -> str:
        than = self.than.identity() if isinstance(self.than, Margin) else self.than
        return f"AtLeast:{self.statistic.identity()}>={than}"

    def tabulate(self, counts: SupportsCounts) -> "pa.Table":
        return tabulate_inequality(self, counts)

    def __str__(self) -> str:
        return self.words()


def tabulate_inequality(invariant: AtLeast, counts: SupportsCounts) -> "pa.Table":
    """Return the answers to the inequality by area; areas with the usual answer are left out.

    Compared with a number, an area without records fails, so the areas that reach the number are listed. Compared with a
    margin, an area without records holds, so the areas that fail are listed. The table says nothing else about the counts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    by = list(invariant.statistic.by)
    left = _decode_columns(
        counts.counts(invariant.statistic.record_type, by, invariant.statistic.conditions() or None)
    )
    if not by:
        reached = _sum_counts(left) >= _read_threshold(invariant, counts)
        return pa.table({"holds": pa.array([reached])})
    if not isinstance(invariant.than, Margin):
        chosen = left.filter(pc.greater_equal(left["count"].cast(pa.int64()), invariant.than))
        return _list_areas(chosen, by, holds=True)
    right = _decode_columns(
        counts.counts(invariant.than.record_type, by, invariant.than.conditions() or None)
    )
    both = right.rename_columns([*by, "than"]).join(left, keys=by, join_type="left outer")
    missing = pc.less(pc.fill_null(both["count"].cast(pa.int64()), 0), both["than"].cast(pa.int64()))
    return _list_areas(both.filter(missing), by, holds=False)


def _decode_columns(table: "pa.Table") -> "pa.Table":
    """Return the table with dictionary columns decoded, because two files may code the same areas differently."""
    import pyarrow as pa

    columns = {
        name: table[name].cast(table.schema.field(name).type.value_type)
        if pa.types.is_dictionary(table.schema.field(name).type)
        else table[name]
        for name in table.column_names
    }
    return pa.table(columns)


def _sum_counts(table: "pa.Table") -> int:
    return sum(table["count"].to_pylist())


def _read_threshold(invariant: AtLeast, counts: SupportsCounts) -> int:
    if not isinstance(invariant.than, Margin):
        return invariant.than
    return _sum_counts(counts.counts(invariant.than.record_type, (), invariant.than.conditions() or None))


def _list_areas(table: "pa.Table", by: list[str], *, holds: bool) -> "pa.Table":
    import pyarrow as pa

    chosen = table.select(by).sort_by([(name, "ascending") for name in by])
    return chosen.append_column("holds", pa.array([holds] * chosen.num_rows, pa.bool_()))


# Invariants as a sentence names them: short, where the table beside it keeps the whole list of variables.

MAX_VARIABLES_NAMED = 4  # as many variables as a reader keeps in mind


def abbreviate(invariant: Invariant, domain: Domain) -> str:
    """Return the label of an invariant, or its words with a long list of variables shortened.

    >>> domain = Domain(name="toy", spine=("state", "county", "tract", "block"))
    >>> print(abbreviate(Margin("household", ("state", "county", "tract", "block", "size")), domain))
    households by block × size
    """
    if not isinstance(invariant, Margin) or invariant.label or len(invariant.by) <= MAX_VARIABLES_NAMED:
        return invariant.words()
    return describe_table(invariant.record_type, _describe_variables(invariant, domain), invariant.where)


def _describe_variables(margin: Margin, domain: Domain) -> str:
    kept = _find_generating(margin, domain)
    if len(kept) <= MAX_VARIABLES_NAMED:
        return " × ".join(kept)
    if domain.has(margin.record_type):
        names = domain.record_type(margin.record_type).names() - domain.identifiers(margin.record_type)
        missing = _name_missing(names - domain.closure(margin.record_type, margin.by), domain)
        if len(missing) <= MAX_VARIABLES_NAMED:
            # in brackets: the sentence goes on with "and" and the next table
            kind = unit(margin.record_type, "all_variables")
            if not missing:
                return Phrase("invariant.all_variables", all_variables=kind)
            return Phrase("invariant.all_variables_but", all_variables=kind, left_out=tuple(missing))
    first = " × ".join(kept[: MAX_VARIABLES_NAMED - 1])
    return Phrase("invariant.more_variables", first=first, count=len(kept) - MAX_VARIABLES_NAMED + 1)


def _name_missing(missing: frozenset[str], domain: Domain) -> list[str]:
    """Return the names of the variables that are left out, and the finer areas in one phrase at the end."""
    start = next((place for place, level in enumerate(domain.spine) if level in missing), len(domain.spine))
    finer = frozenset(domain.spine[start:])
    if start == 0 or len(finer) < 2 or not finer <= missing:
        return _sort_variables(missing, domain)
    return [*sorted(missing - finer), Phrase("invariant.areas_below", level=domain.spine[start - 1])]


def _find_generating(margin: Margin, domain: Domain) -> list[str]:
    """Return the variables that determine the others of the table, areas first."""
    kept = _sort_variables(frozenset(margin.by), domain)
    for name in list(kept):
        rest = tuple(other for other in kept if other != name)
        if name in domain.closure(margin.record_type, rest):
            kept.remove(name)
    return kept


def _sort_variables(names: frozenset[str], domain: Domain) -> list[str]:
    areas = [level for level in domain.spine if level in names]
    return [*areas, *sorted(names - {*areas})]


def join_words(words: Sequence[str]) -> str:
    """Join words to a list as in a sentence.

    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


# What of the data a release is computed from: its views, and the columns that they show.
#
# A *view* is a table of one record type. The law of a release is a function of its views and of the invariants, and of
# nothing else of the data: swapped records have one view with all released columns, noisy tables have one for each
# measured table. A view of persons may show columns of their household, where persons are released with it. Two data
# sets of one universe that agree on every view give the same release, so odds are read at the smallest change that
# some view shows. A view that leaves out a column is safe (it notices less, and the distance is larger); one that adds
# a column is not.

Views = tuple[Margin, ...]  # empty: not stated, so every variable of the domain may be released


def make_view(
    domain: Domain, record_type: str, columns: Iterable[str], where: dict[str, tuple[str, ...]] | None = None
) -> Margin:
    """Return the view of these columns without identifiers, and without columns that the domain does not list."""
    listed = domain.record_type(record_type).names() if domain.has(record_type) else frozenset()
    known = [name for name in columns if not listed or name in listed or name in domain.spine]
    return Margin(record_type, frozenset(known) - domain.identifiers(record_type), where or None)


def covers(domain: Domain, view: Margin, other: Margin) -> bool:
    """Return whether every change that the other view shows is seen in this one."""
    if view.record_type != other.record_type or view.where not in {None, other.where}:
        return False
    told = {*other.by} if view.where == other.where else {*other.by, *other.conditions()}
    return domain.closure(view.record_type, view.by) >= told


def largest_views(domain: Domain, views: Iterable[Margin]) -> Views:
    """Return the views that no other view covers, in a fixed order.

    >>> one, both = Margin("household", ("county",)), Margin("household", ("county", "tenure"))
    >>> [str(view) for view in largest_views(Domain(name="toy"), [one, both])]
    ['households by county × tenure']
    """
    kept: list[Margin] = []
    for view in sorted({*views}, key=lambda view: (-len(view.by), view.identity())):
        if not any(covers(domain, other, view) for other in kept):
            kept = [other for other in kept if not covers(domain, view, other)] + [view]
    return tuple(sorted(kept, key=Margin.identity))


def join_views(domain: Domain, each: Iterable[Views]) -> Views:
    """Return the views of several releases together; where one does not state them, nothing is stated."""
    found = [*each]
    return largest_views(domain, (view for views in found for view in views)) if all(found) else ()


def released_columns(domain: Domain, views: Sequence[Margin]) -> dict[str, tuple[str, ...]]:
    """Return the columns of each record type that leave; where no view is stated, all that the domain lists."""
    if not views:
        return {
            kind.name: tuple(v.name for v in kind.variables if v.name not in domain.identifiers(kind.name))
            for kind in domain.record_types
        }
    found: dict[str, dict[str, None]] = {}
    for view in views:
        found.setdefault(view.record_type, {}).update(dict.fromkeys((*view.by, *view.conditions())))
    return {kind: tuple(columns) for kind, columns in found.items()}
