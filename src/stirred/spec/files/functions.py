"""Budget functions as JSON and back: the law of b with exact rates, and the statistic b."""

from typing import Any

from stirred.spec.algebra.statement import BudgetFunction
from stirred.spec.laws.sizes import SizeLaw
from stirred.spec.laws.stratum import LargestStratum
from stirred.spec.multiverse import Restriction
from stirred.spec.numbers.budget import Budget
from stirred.spec.numbers.numerals import write_fraction

Json = Any


def function_to_json(function: BudgetFunction | None) -> Json:
    """Return a budget function as JSON; absent fields are left out.

    >>> function = BudgetFunction(law=SizeLaw("by-size", "1/20"), b=9)
    >>> function_to_json(function)["law"], function_from_json(function_to_json(function)) == function
    ({'kind': 'by-size', 'rate': '1/20', 'highest': '1/20'}, True)
    """
    if function is None:
        return None
    found: dict[str, Json] = {
        "words": function.words,
        "universe": function.universe,
        "least": function.least.to_json(),
        "most": function.most.to_json(),
    }
    if function.law is not None:
        law = function.law
        found["law"] = {
            "kind": law.kind,
            "rate": write_fraction(law.rate),
            "highest": write_fraction(law.highest),
        }
    if function.statistic is not None:
        found["statistic"] = _statistic(function.statistic)
    if function.b is not None:
        found["b"] = function.b
    if function.realised:
        found["realised"] = function.realised
    return found


def function_from_json(document: Json) -> BudgetFunction | None:
    """Read a budget function from its JSON document; older files have words and no law."""
    if document is None:
        return None
    law, statistic = document.get("law"), document.get("statistic")
    return BudgetFunction(
        words=document["words"],
        universe=document["universe"],
        least=Budget.from_json(document["least"]),
        most=Budget.from_json(document["most"]),
        law=None if law is None else SizeLaw(law["kind"], law["rate"], law["highest"]),
        statistic=None if statistic is None else _statistic_from(statistic),
        b=document.get("b"),
        realised=document.get("realised", ""),
    )


def _statistic(statistic: LargestStratum) -> Json:
    return {
        "kind": "largest-stratum",
        "record_type": statistic.record_type,
        "match": list(statistic.match),
        "hold": list(statistic.hold),
        "swap": list(statistic.swap),
        "where": None if statistic.where is None else _restriction(statistic.where),
        "without": [_restriction(restriction) for restriction in statistic.without],
    }


def _restriction(restriction: Restriction) -> Json:
    return {name: list(values) for name, values in restriction.conditions}


def _statistic_from(document: Json) -> LargestStratum:
    return LargestStratum(
        document["record_type"],
        document["match"],
        document["hold"],
        document["swap"],
        document["where"],
        document["without"],
    )
