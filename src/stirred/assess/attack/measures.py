"""Measures of risk from the tables of an attack, each with its interval and what a guess finds."""

import polars as pl

from stirred.assess.attack.linkage.intervals import normalised, wilson
from stirred.assess.attack.linkage.leave_one_out import LeaveOneOut
from stirred.assess.attack.linkage.reidentification import (
    ATTACK,
    CEILING,
    MAJORITY,
    MODAL,
    PROPORTIONAL,
    Reidentification,
)
from stirred.assess.risk import Baseline, RiskMeasure, named

EVERYONE, EXPOSED = ("all", "all"), ("mode and unique", "nonmodal unique")
PROVED = ("mode, unique and area", "nonmodal unique, one reconstruction")
ABOUT = {
    EVERYONE: named("about.all"),
    EXPOSED: named("about.exposed"),
    PROVED: named("about.proved"),
}
GUESSES = (MODAL, PROPORTIONAL, MAJORITY, CEILING)


def linkage_measures(found: Reidentification, *, source: str) -> list[RiskMeasure]:
    """Recall and precision of an attack on all and on the exposed, and its normalised risk; ``source`` names the records."""
    made = []
    for group in (EVERYONE, EXPOSED, PROVED):
        if group not in found.groups:
            continue
        for name in ("recall", "precision"):
            value = getattr(found, name)(group, ATTACK)
            low, high = found.interval(group, ATTACK, of=name) if value is not None else (None, None)
            guesses = [(guess, getattr(found, name)(group, guess)) for guess in GUESSES]
            made.append(
                RiskMeasure(
                    name=named(name, source=source),
                    about=ABOUT[group],
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
        made.append(_normalised(found, group, source))
    return made


def _normalised(found: Reidentification, group: tuple[str, str], source: str) -> RiskMeasure:
    """How far the attack is above a proportional guess, of what is possible: (a − c) / (1 − c), by recall."""
    persons, _, hits = found.counts(group, ATTACK)
    _, _, guessed = found.counts(group, PROPORTIONAL)
    name = named("normalised", source=source)
    if not persons:
        return RiskMeasure(
            name=name, about=ABOUT[group], kind="absolute", value=None, unit="share", reason="there are none"
        )
    halves = []
    for method in (ATTACK, PROPORTIONAL):
        low, high = found.interval(group, method, of="recall")
        halves.append((high - low) / 2)
    risk, low, high = normalised(
        hits / persons, guessed / persons, attack_half=halves[0], control_half=halves[1]
    )
    return RiskMeasure(
        name=name,
        about=ABOUT[group],
        kind="absolute",
        value=risk,
        low=low,
        high=high,
        unit="share",
        baselines=(Baseline(name=PROPORTIONAL, value=0.0),),
    )


def reconstruction_measures(areas: pl.DataFrame, *, whole: bool) -> list[RiskMeasure]:
    """From the published tables alone: how many areas have one reconstruction, and how far two can differ.

    ``whole`` says that all areas were reconstructed; otherwise the interval is also about those that were not.
    """
    known, proved = int(areas["unique"].is_not_null().sum()), int(areas["unique"].sum() or 0)
    low, high = proved / max(areas.height, 1), (proved + areas.height - known) / max(areas.height, 1)
    if not whole:
        low, high = wilson(proved, areas.height)[0], wilson(proved + areas.height - known, areas.height)[1]
    missing = areas.height - known
    made = [
        RiskMeasure(
            name=named("one_reconstruction"),
            about=named("about.areas"),
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
                name=named("two_reconstructions"),
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
    """How many true records are among those released or reconstructed, one for one, secret and all."""
    persons, hits = int(agreed["records"].sum()), int(agreed[column].sum())
    low, high = wilson(hits, persons)
    return RiskMeasure(
        name=named("agreement", source=source),
        about=named("about.classes") if column == "classed" else ABOUT[EVERYONE],
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
    """How much more often the attack is right because a person took part."""
    low, high = found.interval()
    many = found.included.size
    return RiskMeasure(
        name=named("excess"),
        about=ABOUT[EXPOSED],
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
