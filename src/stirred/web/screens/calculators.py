"""Calculators: pages that anyone can use without data; every number comes from the library."""

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stirred.errors import InputError, StirredError
from stirred.web.calculators.conversions import converted
from stirred.web.calculators.curve import drawn, swap_curve
from stirred.web.calculators.products import FIGURES, composed
from stirred.web.calculators.strata import EXAMPLE, strata_budget
from stirred.web.jobs.commands import ShownCommand
from stirred.web.pages import fragment, page
from stirred.web.stating.answer import Refusal

LONGEST = 100_000  # characters of a typed value
MOST_SHOWN, LINE = 40, "\n"  # strata that are written out as Python
Values = dict[str, Any]  # what a template is given


def routes() -> list[Route]:
    """The addresses of this screen."""
    return [
        Route("/calculators", start),
        Route("/calculators/curve", curve),
        Route("/calculators/zcdp", zcdp),
        Route("/calculators/products", products),
        Route("/calculators/strata", strata),
    ]


def start(request: Request) -> Response:
    """What can be computed without data."""
    return page(request, "calculators.html.j2", title="Calculators")


def curve(request: Request) -> Response:
    """ε against the swap rate for a stratum of b records, with both rates of a budget."""
    asked = _asked(request, {"b": "264331", "rate": "0.05", "epsilon": ""})

    def answer() -> Values:
        found = swap_curve(asked["b"], asked["rate"], asked["epsilon"])
        command = ("budget", "--stratum", str(found.b), "--rate", str(found.rate))
        python = (
            "from stirred.mechanisms.swapping.budget.by_size import theorem_1, tight\n\n"
            f'print(theorem_1({found.b}, "{found.rate}").upper(4), tight({found.b}, "{found.rate}").upper(4))'
        )
        return {"found": found, "chart": drawn(found), "shown": [ShownCommand(words=command, python=python)]}

    return _answered(request, "curve", "Budget of a swap", asked, answer)


def zcdp(request: Request) -> Response:
    """ρ² as (ε, δ) at several distances, and a pure ε as ρ²."""
    asked = _asked(request, {"kind": "zcdp", "amount": "293764/114921", "delta": "1e-10"})

    def answer() -> Values:
        found = converted(asked["amount"], asked["delta"], asked["kind"])
        python = (
            "from stirred import Budget\n"
            "from stirred.spec.outputs.readings import reading\n\n"
            f'print(reading(Budget.of("{found.rho_squared.exact}"), "{found.delta}", tight=True, decimals=4).epsilon)'
        )
        return {"found": found, "python": python}

    return _answered(request, "zcdp", "Readings of a budget", asked, answer)


def products(request: Request) -> Response:
    """The products of 2020, switched on and off."""
    asked = _asked(request, {"figure": "published", "asked": ""})
    chosen = set(request.query_params.getlist("product")) if asked["asked"] else None

    def answer() -> Values:
        found = composed(chosen, asked["figure"])
        names = [switch.key for switch in found.switches if switch.on]
        if not names:
            return {"found": found}
        if found.figure == "published":
            return {"found": found, "shown": [ShownCommand(words=("spec", "compose", *names))]}
        python = (
            "from stirred.catalog.products import PRODUCTS\nfrom stirred.catalog.releases import total\n\n"
            f"chosen = {names}\n"
            f"products = [product.{FIGURES[found.figure].__name__}() for product in PRODUCTS if product.name in chosen]\n"
            'print(total(products, "the chosen products, composed").rho_squared.upper(5))'
        )
        return {"found": found, "python": python}

    return _answered(request, "products", "The 2020 census, product by product", asked, answer)


def strata(request: Request) -> Response:
    """A swap whose strata are typed."""
    asked = _asked(request, {"strata": EXAMPLE, "rate": "0.05"})

    def answer() -> Values:
        found = strata_budget(asked["strata"], asked["rate"])
        python = (
            "from stirred.mechanisms.swapping.budget.claim import Stratum, bounds, claim\n\n"
            f"strata = [\n{''.join(f'    {one},{LINE}' for one in found.strata[:MOST_SHOWN])}]\n"
            f'print(claim(bounds(strata, "{found.rate}")).budget.upper(4))'
        )
        return {"found": found, "python": python if len(found.strata) <= MOST_SHOWN else ""}

    return _answered(request, "strata", "Strata of your own", asked, answer)


def _asked(request: Request, defaults: dict[str, str]) -> dict[str, str]:
    found = {name: request.query_params.get(name, value) for name, value in defaults.items()}
    if any(len(value) > LONGEST for value in found.values()):
        raise InputError("a value is too long", why="a calculator takes short texts", fix="shorten it")
    return found


def _answered(
    request: Request, name: str, title: str, asked: dict[str, str], answer: Callable[[], Values]
) -> Response:
    """The page, or only its answer for the script; a refusal stands where the answer would."""
    refusal, values = None, Values()
    try:
        values = answer()
    except StirredError as error:
        refusal = Refusal.of(error)
    if request.query_params.get("part") == "answer":
        return fragment(
            request, f"calculator_{name}_answer.html.j2", asked=asked, refusal=refusal, inside=True, **values
        )
    shown = values.pop("shown", ())
    return page(
        request,
        f"calculator_{name}.html.j2",
        title=title,
        shown=shown,
        asked=asked,
        refusal=refusal,
        status=422 if refusal else 200,
        **values,
    )
