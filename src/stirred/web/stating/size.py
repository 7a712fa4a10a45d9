"""How large the universe is: how many data sets agree on everything that is published exactly."""

from dataclasses import dataclass

from stirred.errors import StirredError
from stirred.publish.before.promise import state_promise
from stirred.publish.plan.description import Plan
from stirred.web.stating.ground import PromiseGround

MAX_MEASURES_SHOWN = 4  # measures


@dataclass(frozen=True, slots=True, kw_only=True)
class UniverseSize:
    """One way to count the data sets, in bits for each record."""

    name: str
    about: str
    value: str
    reason: str = ""


def make_not_counted(error: StirredError) -> UniverseSize:
    """Return the entry that replaces a number which cannot be computed."""
    return UniverseSize(name="not counted", about="", value="–", reason=error.what)


def measure_universe(plan: Plan, ground: PromiseGround) -> list[UniverseSize]:
    """Return the measures of the universe that a plan leaves; an error replaces a number."""
    from stirred.assess.universe import (
        measure_universe,  # slow to import, and the first page does not need it
    )

    try:
        whole = state_promise(plan, ground.census).whole
        if not whole.views:
            return []
        found = measure_universe(whole, ground.census).measures
    except StirredError as error:
        return [make_not_counted(error)]
    return [
        UniverseSize(
            name=one.name,
            about=one.about,
            value="–" if one.value is None else f"{one.value:.2f}",
            reason=str(one.reason or ""),
        )
        for one in found
        if one.unit == "bits per record"
    ][:MAX_MEASURES_SHOWN]
