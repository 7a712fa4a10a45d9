"""Measures of risk from the tables of an attack, each with its interval and what a guess finds."""

import polars as pl

from stirred.assess.attack.linkage.intervals import normalise_risk, wilson_interval
from stirred.assess.attack.linkage.leave_one_out import LeaveOneOut
from stirred.assess.attack.linkage.reidentification import (
    ATTACK,
    CEILING,
    MAJORITY,
    MODAL,
    PROPORTIONAL,
    Reidentification,
)
from stirred.assess.risk import Baseline, RiskMeasure, name_measure

EVERYONE_GROUP, EXPOSED_GROUP = ("all", "all"), ("mode and unique", "nonmodal unique")
PROVED_GROUP = ("mode, unique and area", "nonmodal unique, one reconstruction")
PHRASE_BY_GROUP = {
    EVERYONE_GROUP: name_measure("about.all"),
    EXPOSED_GROUP: name_measure("about.exposed"),
    PROVED_GROUP: name_measure("about.proved"),
}
GUESSES = (MODAL, PROPORTIONAL, MAJORITY, CEILING)


def linkage_measures(found: Reidentification, *, source: str) -> list[RiskMeasure]:
    """Return recall, precision and normalised risk of an attack, for all and for exposed persons."""
    made = []
    for group in (EVERYONE_GROUP, EXPOSED_GROUP, PROVED_GROUP):
        if group not in found.groups:
            continue
        for name in ("recall", "precision"):
            value = getattr(found, name)(group, ATTACK)
            low, high = found.interval(group, ATTACK, of=name) if value is not None else (None, None)
            guesses = [(guess, getattr(found, name)(group, guess)) for guess in GUESSES]
            made.append(
                RiskMeasure(
                    name=name_measure(name, source=source),
                    about=PHRASE_BY_GROUP[group],
                    kind="absolute",
                    value=value,
                    low=low,
                    high=high,
                    unit="share",
                    baselines=tuple(
                        Baseline(name=guess, value=share) for guess, share in guesses if share is not None
                    ),
                    reason="" if value is not None else "nobody is linked",
                )
            )
        made.append(_measure_normalised(found, group, source))
    return made


def _measure_normalised(found: Reidentification, group: tuple[str, str], source: str) -> RiskMeasure:
    """Measure how far the recall exceeds a proportional guess: (a − c) / (1 − c)."""
    persons, _, hits = found.counts(group, ATTACK)
    _, _, guessed = found.counts(group, PROPORTIONAL)
    name = name_measure("normalised", source=source)
    if not persons:
        return RiskMeasure(
            name=name,
            about=PHRASE_BY_GROUP[group],
            kind="absolute",
            value=None,
            unit="share",
            reason="there are none",
        )
    halves = []
    for method in (ATTACK, PROPORTIONAL):
        low, high = found.interval(group, method, of="recall")
        halves.append((high - low) / 2)
    risk, low, high = normalise_risk(
        hits / persons, guessed / persons, attack_half=halves[0], control_half=halves[1]
    )
    return RiskMeasure(
        name=name,
        about=PHRASE_BY_GROUP[group],
        kind="absolute",
        value=risk,
        low=low,
        high=high,
        unit="share",
        baselines=(Baseline(name=PROPORTIONAL, value=0.0),),
    )


def reconstruction_measures(areas: pl.DataFrame, *, whole: bool) -> list[RiskMeasure]:
    """Measure how many areas have one reconstruction, and how far two can differ.

    ``whole`` says that all areas were reconstructed; otherwise the interval is also about those that were not.
    """
    known, proved = int(areas["unique"].is_not_null().sum()), int(areas["unique"].sum() or 0)
    low, high = proved / max(areas.height, 1), (proved + areas.height - known) / max(areas.height, 1)
    if not whole:
        low, high = (
            wilson_interval(proved, areas.height)[0],
            wilson_interval(proved + areas.height - known, areas.height)[1],
        )
    missing = areas.height - known
    made = [
        RiskMeasure(
            name=name_measure("one_reconstruction"),
            about=name_measure("about.areas"),
            kind="absolute",
            value=proved / areas.height if areas.height and not missing else None,
            low=low,
            high=high,
            unit="share",
            public=True,
            reason=f"{missing} of {areas.height} areas are not decided"
            if missing or not areas.height
            else "",
        )
    ]
    solved = areas.filter(pl.col("solvar_high").is_not_null() & (pl.col("records") > 0))
    persons = float(solved["records"].sum())
    if persons:
        bounds = [
            float((solved[name] * solved["records"]).sum()) / persons
            for name in ("solvar_low", "solvar_high")
        ]
        made.append(
            RiskMeasure(
                name=name_measure("two_reconstructions"),
                about="records of the areas that were reconstructed, at most",
                kind="absolute",
                value=bounds[0] if bounds[1] - bounds[0] < 1e-12 else None,
                low=bounds[0],
                high=bounds[1],
                unit="share",
                public=True,
                reason="" if bounds[1] - bounds[0] < 1e-12 else "the time limit came first in some areas",
            )
        )
    return made


def agreement_measure(
    agreed: pl.DataFrame, draws: dict[str, float], *, column: str, source: str
) -> RiskMeasure:
    """Measure how many true records are among those released or reconstructed, one for one."""
    persons, hits = int(agreed["records"].sum()), int(agreed[column].sum())
    low, high = wilson_interval(hits, persons)
    return RiskMeasure(
        name=name_measure("agreement", source=source),
        about=name_measure("about.classes") if column == "classed" else PHRASE_BY_GROUP[EVERYONE_GROUP],
        kind="absolute",
        value=hits / persons if persons else None,
        low=low,
        high=high,
        unit="share",
        baselines=tuple(
            Baseline(name=f"random draw of what is known, {name}", value=share)
            for name, share in draws.items()
        ),
        reason="" if persons else "there are no records",
    )


def left_out_measure(found: LeaveOneOut) -> RiskMeasure:
    """Measure how much more often the attack is right because a person took part."""
    low, high = found.interval()
    many = found.included.size
    return RiskMeasure(
        name=name_measure("excess"),
        about=PHRASE_BY_GROUP[EXPOSED_GROUP],
        kind="relative",
        value=found.excess if many else None,
        low=low,
        high=high,
        unit="share",
        baselines=(
            Baseline(name="right with the person", value=float(found.included.mean()) if many else 0.0),
            Baseline(name="right without the person", value=float(found.left_out.mean()) if many else 0.0),
        ),
        reason="" if many else "there is no such person",
    )
