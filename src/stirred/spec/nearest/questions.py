"""How near two data sets of one universe can be, asked on the finite model of one record type."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from stirred.spec.domain import PERSON, Domain
from stirred.spec.invariants.axes import Model, build_models
from stirred.spec.invariants.determine import SignedTable
from stirred.spec.multiverse import Margin
from stirred.spec.nearest.lightest import LightestVector, TableKeys, find_lightest

UNLISTED = "another variable"  # stands for what a domain without a list of variables may hold


@dataclass(frozen=True, slots=True, kw_only=True)
class LightestChange:
    """The lightest change that was found: its norm |x ⊖ x'| and what it looks like."""

    norm: int
    signed: SignedTable
    proved: bool  # no lighter one leaves the tables as they are
    free: bool  # it leaves alone what rules of the domain tie, and is possible wherever areas lie


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Tables of one record type in one domain; ``own`` says which of them were published of the unit itself."""

    domain: Domain
    kind: str
    margins: tuple[Margin, ...]
    own: frozenset[int]
    total: bool  # whether the distance fixes the number of records
    tied: frozenset[str] = frozenset()  # variables that rules of the domain tie to others: a pair avoids them

    def find_nearest(self) -> LightestChange | None:
        """Return the lightest change of all, or None where every universe is a single data set."""
        return self._find_over_models(
            lambda model: self._search(model, self._tables(model), self._parts(model), None)
        )

    def find_telling(self, *, shown_only: bool = False) -> LightestChange | None:
        """Return the heaviest among the lightest changes of each kind of records.

        Records are of one kind where the same own tables count them. For each kind the change is sought first among the
        variables that these tables show (all that a swap releases of them), then among all variables.
        """
        return self._find_over_models(lambda model: self._find_by_kind(model, shown_only=shown_only))

    def find_showing(self, view: Margin) -> LightestChange | None:
        """Return the lightest change that a released table shows, or None where the exact tables determine it."""
        return self._find_over_models(lambda model: self._find_in_view(model, view), view)

    def without_restrictions(self) -> "Question":
        """Return the question with larger tables: of all records, by all that tables show or are restricted by."""
        wider = tuple(Margin(self.kind, (*m.by, *m.conditions())) for m in self.margins)
        return replace(self, margins=wider)

    def outside_restrictions(self) -> "Question":
        """Return the question with the unrestricted tables only, which bind records outside every restriction."""
        kept = [place for place, margin in enumerate(self.margins) if margin.where is None]
        own = frozenset(new for new, place in enumerate(kept) if place in self.own)
        return replace(self, margins=tuple(self.margins[place] for place in kept), own=own)

    def _find_over_models(
        self, search: Callable[[Model], LightestChange | None], *more: Margin
    ) -> LightestChange | None:
        """Return the heaviest answer over the maps that the domain leaves open; proved where all agree."""
        found = [search(model) for model in build_models(self.domain, self.kind, (*self.margins, *more))]
        heaviest = max((change for change in found if change is not None), key=lambda c: c.norm, default=None)
        if heaviest is None:
            return None
        if None in found:  # areas may lie in each other so that nothing can change
            heaviest = replace(heaviest, free=False)
        same = all(change is not None and change.norm == heaviest.norm for change in found)
        return replace(heaviest, proved=heaviest.proved and same)

    def _find_by_kind(self, model: Model, *, shown_only: bool) -> LightestChange | None:
        tables = self._tables(model)
        signature = [
            frozenset(place for place in self.own if tables[place].keys[cell] is not None)
            for cell in range(len(model.cells()))
        ]
        found: list[LightestChange] = []
        proved = True
        for counted in sorted({*signature} - {frozenset[int]()}, key=sorted):
            group = [cell for cell, tables_of in enumerate(signature) if tables_of == counted]
            shown = frozenset[str]().union(*(tables[place].shown for place in counted))
            change = self._find_shown(model, tables, shown, group)
            if change is None and not shown_only:
                change = self._search(model, tables, self._parts(model), group)
            if change is not None:
                found.append(change)
                proved &= change.proved
        if found:
            heaviest = max(found, key=lambda change: change.norm)
            return replace(heaviest, proved=proved)
        return None if shown_only else self._search(model, tables, self._parts(model), None)

    def _find_shown(
        self, model: Model, tables: Sequence[TableKeys], shown: frozenset[str], group: Sequence[int]
    ) -> LightestChange | None:
        """Return the lightest change visible in this record type's tables, merging indistinguishable levels."""
        cells = model.cells()
        mine = {
            name for place in self.own for m in [self.margins[place]] for name in (*m.by, *m.conditions())
        }

        def rest(cell: int) -> tuple[str, ...]:
            return tuple(value for name, value in sorted(cells[cell].items()) if name not in mine)

        found: list[tuple[int, int, LightestChange]] = []
        for _, slice_ in groupby(sorted(range(len(cells)), key=rest), key=rest):
            columns: dict[tuple[object, ...], int] = {}
            for cell in slice_:
                columns.setdefault(tuple(table.keys[cell] for table in tables), cell)
            change = self._search(
                model, tables, shown, [c for c in columns.values() if c in {*group}], [*columns.values()]
            )
            if change is not None:
                counted = sum(table.keys[cell] is not None for table in tables for cell in columns.values())
                found.append((change.norm, counted, change))
        # of equally light changes, one among records that fewer tables count
        return min(found, key=lambda item: item[:2], default=(0, 0, None))[2]

    def _find_in_view(self, model: Model, view: Margin) -> LightestChange | None:
        """Return the lightest change that the view shows, merging cells that neither view nor tables tell apart."""
        cells = model.cells()
        tables, seen = self._tables(model), TableKeys.of(view, model, cells)
        columns: dict[tuple[object, ...], int] = {}
        for cell in range(len(cells)):
            columns.setdefault((seen.keys[cell], *(table.keys[cell] for table in tables)), cell)
        places = [*columns.values()]
        group = [cell for cell in places if seen.keys[cell] is not None]
        return self._search(model, tables, seen.shown, group, places, seen)

    def _search(
        self,
        model: Model,
        tables: Sequence[TableKeys],
        parts: frozenset[str],
        group: Sequence[int] | None,
        places: Sequence[int] | None = None,
        view: TableKeys | None = None,
    ) -> LightestChange | None:
        """Return the lightest change on these cells; prefer one that leaves tied variables alone."""
        cells = model.cells()
        kept = [*range(len(cells))] if places is None else [*places]
        among = [place for place, cell in enumerate(kept) if group is None or cell in {*group}]
        on = [table.on(kept) for table in tables]
        if self.total:
            on.append(TableKeys(((),) * len(kept), frozenset()))
        if not among:
            return None
        seen = None if view is None else view.on(kept).keys
        light = find_lightest(on, parts, among, len(kept), seen)
        if light is None:
            return None
        found = light
        if self._ties(model, light):
            found = find_lightest(on, parts - self.tied, among, len(kept), seen) or light
        vector = tuple((cells[kept[place]], number) for place, number in sorted(found.vector.items()))
        signed = SignedTable(model=model, cells=vector, alternating=found.alternating)
        proved = light.proved and found.norm == light.norm
        return LightestChange(
            norm=found.norm, signed=signed, proved=proved, free=not self._ties(model, found)
        )

    def _ties(self, model: Model, light: LightestVector) -> bool:
        """Return whether rules of the domain may forbid the change, as for a person of a larger household."""
        several = len(light.vector) > 1 or self.kind == PERSON
        return bool(light.alternating & self.tied or (several and model.list_restricted() & self.tied))

    def _tables(self, model: Model) -> list[TableKeys]:
        cells = model.cells()
        return [TableKeys.of(margin, model, cells) for margin in self.margins]

    def _parts(self, model: Model) -> frozenset[str]:
        """Return the own parts of all variables, without identifiers; also parts that no table shows."""
        if not self.domain.has(self.kind):
            return model.plain | {UNLISTED}
        named = {name for margin in self.margins for name in (*margin.by, *margin.conditions())}
        known = self.domain.closure(self.kind, [*named])
        others = self.domain.record_type(self.kind).names() - known - self.domain.identifiers(self.kind)
        (plain,) = build_models(self.domain, self.kind, [Margin(self.kind, others)])
        return model.plain | (plain.plain - known)
