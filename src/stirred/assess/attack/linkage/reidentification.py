"""Who is found by linking: putative and confirmed records, precision and recall, beside every guess."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.attack.linkage.guesses import find_modes, majority_guess, modal_guess, proportional_guess
from stirred.assess.attack.linkage.intervals import bootstrap_interval, wilson_interval
from stirred.assess.attack.linkage.matching import link_records
from stirred.assess.utility.tables import BLOCK_BINS, bin_labels

Flags = NDArray[np.bool_]
LINK_KEYS = ("exact", "classed")
ATTACK, MODAL, PROPORTIONAL, MAJORITY, CEILING = (
    "attack",
    "modal guess",
    "proportional guess",
    "majority of the address",
    "attack on the truth",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkOutcome:
    """For each person of the truth, by row: whether a link (or guess) was made, and whether it is right."""

    putative: Flags
    confirmed: Flags


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reidentification:
    """The outcome of each method for each person, and the groups that it is reported by."""

    area: NDArray[np.int64]
    listed: Flags  # in the attacker's file
    groups: Mapping[tuple[str, str], Flags]
    found: Mapping[str, LinkOutcome]

    def counts(self, group: tuple[str, str], method: str) -> tuple[int, int, int]:
        """Return the persons of a group, those a method links, and those it is right about."""
        members, found = self.groups[group], self.found[method]
        return (
            int(members.sum()),
            int((members & found.putative).sum()),
            int((members & found.confirmed).sum()),
        )

    def precision(self, group: tuple[str, str], method: str) -> float | None:
        """Return the share of right links among the linked persons."""
        _, putative, confirmed = self.counts(group, method)
        return confirmed / putative if putative else None

    def recall(self, group: tuple[str, str], method: str) -> float | None:
        """Return the share of persons of the group that are linked and right."""
        persons, _, confirmed = self.counts(group, method)
        return confirmed / persons if persons else None

    def interval(
        self, group: tuple[str, str], method: str, *, of: str, seed: int = 1, confidence: float = 0.95
    ) -> tuple[float, float]:
        """Return the interval of ``precision`` or ``recall`` by a bootstrap of whole areas."""
        members, found = self.groups[group], self.found[method]
        base = members & found.putative if of == "precision" else members
        areas = int(self.area.max(initial=-1)) + 1
        hits = np.bincount(self.area[members & found.confirmed], minlength=areas).astype(np.float64)
        trials = np.bincount(self.area[base], minlength=areas).astype(np.float64)
        held = trials > 0
        return bootstrap_interval(hits[held], trials[held], seed=seed, confidence=confidence)

    def table(self) -> pl.DataFrame:
        """Return one row for each group and method, with Wilson's intervals."""
        rows = []
        for group, members in self.groups.items():
            for method in self.found:
                persons, putative, confirmed = self.counts(group, method)
                rows.append(
                    {
                        "group": group[0],
                        "class": group[1],
                        "method": method,
                        "persons": persons,
                        "listed": int((members & self.listed).sum()),
                        "putative": putative,
                        "confirmed": confirmed,
                        "precision": self.precision(group, method),
                        "recall": self.recall(group, method),
                        **dict(
                            zip(
                                ("precision_low", "precision_high"),
                                wilson_interval(confirmed, putative),
                                strict=True,
                            )
                        ),
                        **dict(
                            zip(
                                ("recall_low", "recall_high"),
                                wilson_interval(confirmed, persons),
                                strict=True,
                            )
                        ),
                    }
                )
        return pl.DataFrame(rows, infer_schema_length=None)


def reidentify(
    released: pl.DataFrame,
    truth: pl.DataFrame,
    attackers: pl.DataFrame,
    *,
    seed: int,
    unique_areas: pl.Series | None = None,
) -> Reidentification:
    """Link released (or reconstructed) records to an attacker's file and compare what he learns with the truth.

    All three are keyed by ``LinkVariables.keyed``; ``attackers`` has a column ``person``, the row of the truth that a record
    is about. ``unique_areas`` are the areas whose reconstruction is proved to be the only one.
    """
    people = attackers["person"].to_numpy().astype(np.int64)
    listed = np.zeros(truth.height, dtype=np.bool_)
    listed[people] = True
    own = truth[people]
    right_place = (own["area"] == attackers["area"]) & (own["classed"] == attackers["classed"])
    at_address = (own["area"] == attackers["area"]).to_numpy()
    pairs = link_records(released, attackers, LINK_KEYS, seed=seed)
    rows = pairs["right"].to_numpy()
    asked = attackers[rows]
    guessed = {
        ATTACK: released["secret"].gather(pairs["left"]),
        MODAL: modal_guess(asked, released),
        PROPORTIONAL: proportional_guess(asked, released, seed=seed + 1),
    }
    found = {
        name: _score_guess(truth, people[rows], guess, right_place.to_numpy()[rows])
        for name, guess in guessed.items()
    }
    found[MAJORITY] = _score_guess(truth, people, majority_guess(attackers, released), at_address)
    best = link_records(truth, attackers, LINK_KEYS, seed=seed + 2)
    rows = best["right"].to_numpy()
    found[CEILING] = _score_guess(
        truth, people[rows], truth["secret"].gather(best["left"]), right_place.to_numpy()[rows]
    )
    area = truth["area"].rank("dense").to_numpy().astype(np.int64) - 1
    return Reidentification(area=area, listed=listed, groups=group_people(truth, unique_areas), found=found)


def group_people(truth: pl.DataFrame, unique_areas: pl.Series | None = None) -> dict[tuple[str, str], Flags]:
    """Group people by mode of their area, uniqueness on what is known, and size of the area."""
    flags = truth.join(
        find_modes(truth, "area").select("area", "mode"), on="area", how="left", maintain_order="left"
    )
    flags = flags.select(
        (pl.col("secret") == pl.col("mode")).alias("modal"),
        (pl.len().over("classed") == 1).alias("unique"),
        pl.len().over("area").alias("size"),
        pl.lit(None, pl.Boolean).alias("proved")
        if unique_areas is None
        else pl.col("area").is_in(unique_areas.implode()).alias("proved"),
    )
    modal, unique = flags["modal"].to_numpy(), flags["unique"].to_numpy()
    everyone = np.ones(truth.height, dtype=np.bool_)
    groups: dict[tuple[str, str], Flags] = {
        ("all", "all"): everyone,
        ("mode", "modal"): modal,
        ("mode", "nonmodal"): ~modal,
        ("unique", "unique"): unique,
        ("unique", "not unique"): ~unique,
        ("mode and unique", "nonmodal unique"): ~modal & unique,
    }
    if unique_areas is not None:
        proved = flags["proved"].to_numpy().astype(np.bool_)
        groups["area", "one reconstruction"] = proved
        groups["mode, unique and area", "nonmodal unique, one reconstruction"] = ~modal & unique & proved
    size = flags["size"].to_numpy()
    classes = np.searchsorted(np.asarray(BLOCK_BINS[2:]), size, side="right")
    for index, label in enumerate(bin_labels(BLOCK_BINS)[1:]):
        groups["size", label] = classes == index
    return groups


def _score_guess(
    truth: pl.DataFrame, people: NDArray[np.int64], guess: pl.Series, placed: Flags
) -> LinkOutcome:
    putative = np.zeros(truth.height, dtype=np.bool_)
    confirmed = np.zeros(truth.height, dtype=np.bool_)
    made = guess.is_not_null().to_numpy()
    right = (guess == truth["secret"].gather(people)).fill_null(value=False).to_numpy()
    putative[people] = made
    confirmed[people] = made & right & placed
    return LinkOutcome(putative=putative, confirmed=confirmed)
