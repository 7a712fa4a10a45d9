"""Invariants against budget: the same noise under invariants that differ by one, as data for a chart."""

from collections.abc import Callable, Iterable, Mapping

import polars as pl

from stirred.assess.risk import RiskMeasure
from stirred.assess.universe.measured import UniverseResult, measure_universe
from stirred.census import Census
from stirred.spec import Multiverse
from stirred.spec.multiverse import Invariant

SIZE, LABELLED = "tables that agree with the invariants (unlabelled)", "ways to assign all values (labelled)"
IMPLIED, CERTAIN = "records in cells whose count is implied", "records that certainly stand in a cell"
Attack = Callable[[Multiverse], RiskMeasure | None]


def variations(multiverse: Multiverse, more: Iterable[Invariant] = ()) -> dict[str, Multiverse]:
    """Return the invariants as they are, without each in turn, with each of ``more`` in turn, and none.

    >>> from stirred.spec import Margin
    >>> list(variations(Multiverse.of(Margin("person", ("block",)), Margin("person", ("state",)))))
    ['as stated', 'without persons by block', 'without persons by state', 'none']
    """
    found = {"as stated": multiverse}
    for invariant in multiverse:
        rest = [other for other in multiverse if other != invariant]
        found[f"without {invariant}"] = Multiverse.of(*rest)
    for invariant in more:
        found[f"with {invariant}"] = multiverse & invariant
    found["none"] = Multiverse.none()
    return found


def trade(
    sets: Mapping[str, Multiverse],
    census: Census,
    *,
    record_type: str,
    variables: Iterable[str],
    attack: Attack | None = None,
    samples: int = 200,
    seed: int = 1,
) -> pl.DataFrame:
    """Return universe size, implied cells and attack success for each set of invariants; all else is equal.

    ``variables`` are all that a record consists of, the same for every set. ``attack`` runs a mechanism with the same noise
    under a set of invariants and measures what it finds; without it those columns are empty.
    """
    names = list(variables)
    rows = []
    for label, multiverse in sets.items():
        found = measure_universe(
            multiverse,
            census,
            record_types=[record_type],
            variables={record_type: names},
            samples=samples,
            seed=seed,
        )
        hit = attack(multiverse) if attack is not None else None
        rows.append(
            {
                "invariants": label,
                **_columns("bits", found, LABELLED),
                **_columns("bits_unlabelled", found, SIZE),
                "bits_without_invariants": found.measure(LABELLED).baselines[0].value,
                "implied": found.measure(IMPLIED).value,
                "certain": found.measure(CERTAIN).value,
                "attack": hit.value if hit is not None else None,
                "attack_low": hit.low if hit is not None else None,
                "attack_high": hit.high if hit is not None else None,
            }
        )
    numbers = {name: pl.Float64 for name in rows[0] if name != "invariants"} if rows else {}
    return pl.DataFrame(rows, schema_overrides=numbers)


def _columns(name: str, found: UniverseResult, measure: str) -> dict[str, float | None]:
    value = found.measure(measure)
    return {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
