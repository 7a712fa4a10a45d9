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
        told = [mechanism.publishes(ground.census) for mechanism in plan.mechanisms]
        if any(one is None for one in told):
            return []
        variables: dict[str, list[str]] = {}
        for one in told:
            for record_type, names in (one or {}).items():
                variables[record_type] = list(dict.fromkeys([*variables.get(record_type, []), *names]))
        found = universe(whole, ground.census, variables=variables).measures
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
