"""The counterfactual of an attack: the same release made without what a person told, and the same attack on it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.attack.linkage.guesses import modal_guess
from stirred.assess.attack.linkage.matching import link_records
from stirred.assess.attack.linkage.reidentification import LINK_KEYS
from stirred.census import Census
from stirred.errors import InputError

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeaveOneOut:
    """Success of the attack on each target, in a release with and in one without the target's values."""

    included: NDArray[np.bool_]
    left_out: NDArray[np.bool_]

    @property
    def excess(self) -> float:
        """Return how much more often the attack is right because the target took part."""
        return float(self.included.mean() - self.left_out.mean()) if self.included.size else 0.0

    def interval(self, *, seed: int = 1, runs: int = 1000, confidence: float = 0.95) -> tuple[float, float]:
        """Return the interval of the excess by a bootstrap of the targets."""
        draws = np.random.default_rng(seed)
        step = self.included.astype(np.float64) - self.left_out
        if not step.size:
            return -1.0, 1.0
        means = [float(step[draws.integers(0, step.size, step.size)].mean()) for _ in range(runs)]
        low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
        return float(low), float(high)


def choose_targets(truth: pl.DataFrame, among: NDArray[np.bool_], *, most: int, seed: int) -> Rows:
    """Choose the rows to leave out: at most one of each area, so that they do not interact."""
    draws = np.random.default_rng(seed)
    order = draws.permutation(truth.height)
    shuffled = truth.select("area").with_row_index(PLACE_COLUMN)[order].filter(pl.Series(among[order]))
    return (
        shuffled.unique("area", keep="first", maintain_order=True)[PLACE_COLUMN]
        .head(most)
        .to_numpy()
        .astype(np.int64)
    )


PLACE_COLUMN = "place"


def replace_secrets(
    census: Census, record_type: str, secret: tuple[str, ...], targets: Rows, donors: Rows
) -> Census:
    """Return the census in which each target has the secret values of a donor; all else stays."""
    record = census.schema.record(record_type)
    source = pl.DataFrame(census.source(record_type).collect())
    if source.height != census.count(record_type):
        raise InputError(
            "this census cannot be made without a person",
            why=f"its {record_type} records are read from a file that also holds others",
            fix=f"give {record_type} records a file or table of their own",
        )
    rows = np.arange(source.height)
    rows[targets] = donors
    columns = {variable.name: variable.source for variable in record.variables}
    changed = source.with_columns(
        [source[columns.get(name, name)].gather(rows).alias(columns.get(name, name)) for name in secret]
    )
    return replace(census, files={**census.files, record_type: changed.lazy()})


def choose_donors(truth: pl.DataFrame, targets: Rows, *, seed: int) -> Rows:
    """Choose for each target another record of its area at random, or of anywhere where it lives alone."""
    draws = np.random.default_rng(seed)
    places = truth.select("area").with_row_index(PLACE_COLUMN).group_by("area").agg(pl.col(PLACE_COLUMN))
    asked = truth.select("area")[targets].join(places, on="area", how="left", maintain_order="left")
    found = []
    for target, near in zip(targets.tolist(), asked[PLACE_COLUMN].to_list(), strict=True):
        others = [row for row in near if row != target]
        found.append(draws.choice(others) if others else draws.integers(0, truth.height))
    return np.asarray(found, dtype=np.int64)


def leave_one_out(
    census: Census,
    released_of: Callable[[Census], pl.DataFrame],
    truth: pl.DataFrame,
    targets: Rows,
    *,
    record_type: str,
    secret: tuple[str, ...],
    seed: int,
) -> LeaveOneOut:
    """Release and attack twice: the census, and the census without the targets' own values.

    ``released_of`` makes keyed records of a new release of a census. The targets are replaced all at once, one to an area.
    """
    changed = replace_secrets(census, record_type, secret, targets, choose_donors(truth, targets, seed=seed))
    right = []
    for one in (census, changed):
        released = released_of(one)
        asked = truth[targets]
        pairs = link_records(released, asked, LINK_KEYS, seed=seed)
        guess = np.array(modal_guess(asked, released).to_list(), dtype=object)
        guess[pairs["right"].to_numpy()] = released["secret"].gather(pairs["left"]).to_list()
        right.append(guess == np.array(asked["secret"].to_list(), dtype=object))
    return LeaveOneOut(included=right[0].astype(np.bool_), left_out=right[1].astype(np.bool_))
