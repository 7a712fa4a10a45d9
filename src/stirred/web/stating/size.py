"""How large the universe is: how many data sets agree on everything that is published exactly."""

from dataclasses import dataclass

from stirred.errors import StirredError
from stirred.publish.before.promise import stated
from stirred.publish.plan.description import Plan
from stirred.web.stating.ground import StatedGround

SHOWN = 4  # measures


@dataclass(frozen=True, slots=True, kw_only=True)
class UniverseSize:
    """One way to count the data sets, in bits for each record."""

    name: str
    about: str
    value: str
    reason: str = ""


def not_counted(error: StirredError) -> UniverseSize:
    """What stands in the place of a number that cannot be had."""
    return UniverseSize(name="not counted", about="", value="–", reason=error.what)


def size_of(plan: Plan, ground: StatedGround) -> list[UniverseSize]:
    """The measures of the universe that a plan leaves; an error is told in the place of a number."""
    from stirred.assess.universe import universe  # slow to import, and the first page does not need it

    try:
        whole = stated(plan, ground.census).whole
        if not whole.views:
            return []
        found = universe(whole, ground.census).measures
    except StirredError as error:
        return [not_counted(error)]
    return [
        UniverseSize(
            name=one.name,
            about=one.about,
            value="–" if one.value is None else f"{one.value:.2f}",
            reason=str(one.reason or ""),
        )
        for one in found
        if one.unit == "bits per record"
    ][:SHOWN]
