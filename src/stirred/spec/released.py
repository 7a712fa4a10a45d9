"""What of the data a release is computed from: its views, and the columns that they show.

A *view* is a table of one record type. The law of a release is a function of its views and of the invariants, and of nothing
else of the data: swapped records have one view with all released columns, noisy tables have one for each measured table.
A view of persons may show columns of their household, where persons are released with it. Two data sets of one universe
that agree on every view give the same release, so odds are read at the smallest change that some view shows.
A view that leaves out a column is safe (it notices less, and the distance is larger); one that adds a column is not.
"""

from collections.abc import Iterable, Sequence

from stirred.spec.domain import Domain
from stirred.spec.invariants.margins import Margin

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
