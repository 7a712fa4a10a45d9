"""What publishing several releases of the same data costs together."""

from collections.abc import Mapping
from functools import reduce

from stirred.errors import StirredError
from stirred.languages import Phrase
from stirred.report.texts import add_exception
from stirred.spec import Specification
from stirred.spec.card import Card


def write_joint_cost(specifications: Mapping[str, Specification]) -> str:
    """Return a sentence: the budget and the odds of all releases, or of those one promise can cover.

    Losses add up; releases whose promises are in different units stay apart, and the sentence says so.
    """
    if len(specifications) < 2:
        return ""
    groups: list[tuple[list[str], Specification]] = []
    for name, specification in specifications.items():
        for place, (names, whole) in enumerate(groups):
            both = _sum(whole, specification)
            if both is not None:
                groups[place] = ([*names, name], both)
                break
        else:
            groups.append(([name], specification))
    if len(groups) == 1:
        return _cost(*groups[0])
    costs = [_cost(names, whole) for names, whole in groups if len(names) > 1]
    alone = tuple(name for names, _ in groups if len(names) == 1 for name in names)
    apart = Phrase("report.together.apart", names=alone) if costs else Phrase("report.together.none")
    said: list[str] = [*costs, apart]
    return reduce(lambda first, second: Phrase("report.two", first=first, second=second), said)


def _sum(first: Specification, second: Specification) -> Specification | None:
    try:
        return first + second
    except StirredError:
        return None


def _cost(names: list[str], whole: Specification) -> str:
    card = Card(whole)
    what = card.bound_odds()
    if what.log_odds is None or what.log_odds.is_infinite():
        return Phrase("report.together.unlimited", names=tuple(names))
    cost = Phrase("report.together.cost", names=tuple(names), budget=card.shown_budget(), factor=what.factor)
    change = Phrase("report.first.protected.short", change=what.change)
    return add_exception(Phrase("report.two", first=cost, second=change), what)
