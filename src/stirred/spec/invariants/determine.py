"""Whether tables of one record type determine another table of it: by linear algebra on the finite model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from stirred.spec.domain import Domain
from stirred.spec.invariants.axes import Model
from stirred.spec.invariants.margins import Margin
from stirred.spec.invariants.rank import Row, Span, build_rows
from stirred.spec.verdicts.witness import DataSet, Witness

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedTable:
    """A signed table that every given table sums to zero: numbers on cells, alternating in plain variables."""

    model: Model
    cells: tuple[tuple[Mapping[str, str], int], ...]
    alternating: frozenset[str]


def find_keys(margin: Margin, model: Model, cells: Sequence[Mapping[str, str]]) -> list[Key | None]:
    """Return the cell of the margin under which each cell of the model is counted; plain variables are ignored."""
    inside = model.list_restricted()
    shown = [name for name in margin.by if name in inside]
    conditions = margin.conditions()
    return [
        tuple(cell[name] for name in shown) if all(cell[n] in v for n, v in conditions.items()) else None
        for cell in cells
    ]


def build_table_rows(margin: Margin, model: Model, cells: Sequence[Mapping[str, str]]) -> dict[Key, Row]:
    return build_rows(find_keys(margin, model, cells))


def find_combinations(
    given: Sequence[Margin], wanted: Margin, model: Model
) -> "dict[Key, dict[object, object]] | SignedTable":
    """Return each row of the wanted table as a combination of given rows, or a signed table that refutes it.

    Only given tables that show all plain variables of the wanted one can contribute to its part that is zero-sum in
    each of them; and that part contains the others.
    """
    cells = model.cells()
    shown = model.find_shown_parts(wanted.by)
    span = Span()
    for place, margin in enumerate(given):
        if model.find_shown_parts(margin.by) >= shown:
            for key, row in build_table_rows(margin, model, cells).items():
                span.add((place, key), row)
    found: dict[Key, dict[object, object]] = {}
    for key, row in build_table_rows(wanted, model, cells).items():
        combination = span.find_combination(row)
        if combination is None:
            vector = span.find_kernel_vector(row)
            table = tuple((cells[place], n) for place, n in sorted(vector.items()))
            return SignedTable(
                model=model, cells=table, alternating=_find_fewest_parts(given, table, shown, model)
            )
        found[key] = dict(combination)
    return found


def _sums_to_zero(margin: Margin, table: Sequence[tuple[Mapping[str, str], int]], model: Model) -> bool:
    sums: dict[Key, int] = {}
    places = find_keys(margin, model, [cell for cell, _ in table])
    for key, (_, n) in zip(places, table, strict=True):
        if key is not None:
            sums[key] = sums.get(key, 0) + n
    return not any(sums.values())


def _find_fewest_parts(
    given: Sequence[Margin],
    table: Sequence[tuple[Mapping[str, str], int]],
    shown: frozenset[str],
    model: Model,
) -> frozenset[str]:
    """Return the fewest plain variables to alternate in so that every given table sums to zero."""
    needed = [shown - model.find_shown_parts(m.by) for m in given if not _sums_to_zero(m, table, model)]
    for number in range(len(shown) + 1):
        for chosen in combinations(sorted(shown), number):
            if all({*chosen} & hidden for hidden in needed):
                return frozenset(chosen)
    raise AssertionError("a table that shows every plain variable sums the vector to zero by itself")


def generate_pairs(
    signed: SignedTable, domain: Domain, wanted: Margin, names: frozenset[str]
) -> Iterator[Witness]:
    """Yield pairs of data sets whose difference is the signed table, then those with records changed in place.

    In place means that each record of x becomes one of x' by a change of one plain variable (and of what determines
    it), so that identifiers can be kept and tables of other record types stay the same.
    """
    yield _write_pair(signed, domain, names, flip=None)
    for flip in sorted(signed.model.find_shown_parts(wanted.by)):
        more = SignedTable(model=signed.model, cells=signed.cells, alternating=signed.alternating | {flip})
        yield _write_pair(more, domain, names, flip=flip)


def _write_pair(signed: SignedTable, domain: Domain, names: frozenset[str], flip: str | None) -> Witness:
    kind = signed.model.record_type
    order = sorted(signed.alternating)
    identifiers = domain.identifiers(kind) & names
    sides: tuple[list[tuple[dict[str, str], int]], ...] = ([], [])
    plain = sorted(names - {name for cell, _ in signed.cells for name in cell} - identifiers)
    shown = {name: _order_parts(domain, kind, name) for name in plain}
    numbers: dict[tuple[object, ...], int] = {}
    for place, (cell, n) in enumerate(signed.cells):
        for bits in product((0, 1), repeat=len(order)):
            own = dict(zip(order, bits, strict=True))
            record = dict(cell)
            for name in plain:
                parts = signed.model.parts.get(name, frozenset())
                record[name] = make_label(domain, kind, name, shown[name], own, parts)
            positive = (n > 0) == (sum(bits) % 2 == 0)
            side = sides[1 if positive else 0]
            if flip is None or not identifiers:
                side.append((record, abs(n)))
                continue
            # the two records that differ in the flipped variable alone are one and the same household
            rest = tuple(bit for part, bit in own.items() if part != flip)
            first = numbers.setdefault((place, rest), len(numbers) * 1000)
            for copy in range(abs(n)):
                side.append(({**record, **{name: f"{name} {first + copy + 1}" for name in identifiers}}, 1))
    return Witness(DataSet.of(kind, sides[0]), DataSet.of(kind, sides[1]))


def _order_parts(domain: Domain, kind: str, name: str) -> list[str]:
    """Return the own parts that a variable shows, coarse ones first."""
    return sorted(domain.closure(kind, (name,)), key=lambda part: (len(domain.closure(kind, (part,))), part))


def make_label(
    domain: Domain, kind: str, name: str, shown: Sequence[str], own: Mapping[str, int], parts: frozenset[str]
) -> str:
    """Return a value of a plain variable for the own parts it shows; a listed level where the domain has one."""
    profile = next((part for part in sorted(parts) if part.startswith("profile of ") and part in own), None)
    if profile is not None:
        return f"{name} of profile {own[profile] + 1}"
    levels = domain.levels(kind, name)
    if levels is not None and len(shown) == 1 and len(levels) > own.get(name, 0):
        if name == "occupancy" and "vacant" in levels and name not in own:
            return "vacant"  # a vacant unit concerns nobody else
        return levels[own.get(name, 0)]
    return f"{name} " + ".".join(str(own.get(part, 0) + 1) for part in shown)
