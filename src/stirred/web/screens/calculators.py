"""Calculators: pages that anyone can use without data; every number comes from the library."""

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stirred.errors import InputError, StirredError
from stirred.web.calculators import (
    EXAMPLE,
    FIGURES,
    compose_products,
    convert_budget,
    draw_curve,
    strata_budget,
    swap_curve,
)
from stirred.web.commands import ShownCommand
from stirred.web.pages import fragment, page
from stirred.web.promise import Refusal

MAX_VALUE_CHARACTERS = 100_000  # characters of a typed value
MOST_SHOWN, LINE = 40, "\n"  # strata that are written out as Python
Values = dict[str, Any]  # what a template is given


def calculator_routes() -> list[Route]:
    """Return the addresses of this screen."""
    return [
        Route("/calculators", start),
        Route("/calculators/curve", curve),
        Route("/calculators/zcdp", zcdp),
        Route("/calculators/products", products),
        Route("/calculators/strata", strata),
    ]


def start(request: Request) -> Response:
    """Show what can be computed without data."""
    return page(request, "calculators.html.j2", title="Calculators")


def curve(request: Request) -> Response:
    """Show ε against the swap rate for a stratum of b records, with both rates of a budget."""
    asked = _read_query(request, {"b": "264331", "rate": "0.05", "epsilon": ""})

    def answer() -> Values:
        found = swap_curve(asked["b"], asked["rate"], asked["epsilon"])
        command = ("budget", "--stratum", str(found.b), "--rate", str(found.rate))
        python = (
            "from stirred.mechanisms.swap.budget import theorem_1, tight\n\n"
            f'print(theorem_1({found.b}, "{found.rate}").upper(4), tight({found.b}, "{found.rate}").upper(4))'
        )
        return {
            "found": found,
            "chart": draw_curve(found),
            "shown": [ShownCommand(words=command, python=python)],
        }

    return _respond(request, "curve", "Budget of a swap", asked, answer)


def zcdp(request: Request) -> Response:
    """Show ρ² as (ε, δ) at several distances, and a pure ε as ρ²."""
    asked = _read_query(request, {"kind": "zcdp", "amount": "293764/114921", "delta": "1e-10"})

    def answer() -> Values:
        found = convert_budget(asked["amount"], asked["delta"], asked["kind"])
        python = (
            "from stirred import Budget\n"
            "from stirred.spec.output_premetrics import reading\n\n"
            f'print(reading(Budget.of("{found.rho_squared.exact}"), "{found.delta}", tight=True, decimals=4).epsilon)'
        )
        return {"found": found, "python": python}

    return _respond(request, "zcdp", "Readings of a budget", asked, answer)


def products(request: Request) -> Response:
    """Show the products of 2020, switched on and off."""
    asked = _read_query(request, {"figure": "published", "asked": ""})
    chosen = set(request.query_params.getlist("product")) if asked["asked"] else None

    def answer() -> Values:
        found = compose_products(chosen, asked["figure"])
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

    return _respond(request, "products", "The 2020 census, product by product", asked, answer)


def strata(request: Request) -> Response:
    """Show the budget of a swap whose strata are typed."""
    asked = _read_query(request, {"strata": EXAMPLE, "rate": "0.05"})

    def answer() -> Values:
        found = strata_budget(asked["strata"], asked["rate"])
        python = (
            "from stirred.mechanisms.swap.bounds import bounds, claim\n"
            "from stirred.mechanisms.swap.strata import Stratum\n\n"
            f"strata = [\n{''.join(f'    {one},{LINE}' for one in found.strata[:MOST_SHOWN])}]\n"
            f'print(claim(bounds(strata, "{found.rate}")).budget.upper(4))'
        )
        return {"found": found, "python": python if len(found.strata) <= MOST_SHOWN else ""}

    return _respond(request, "strata", "Strata of your own", asked, answer)


def _read_query(request: Request, defaults: dict[str, str]) -> dict[str, str]:
    found = {name: request.query_params.get(name, value) for name, value in defaults.items()}
    if any(len(value) > MAX_VALUE_CHARACTERS for value in found.values()):
        raise InputError("a value is too long", why="a calculator takes short texts", fix="shorten it")
    return found


def _respond(
    request: Request, name: str, title: str, asked: dict[str, str], answer: Callable[[], Values]
) -> Response:
    """Render the page, or only its answer for the script; show a refusal in place of the answer."""
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
