"""The products of the 2020 census with switches: what publishing some of them together costs."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal

from stirred.catalog.products import PRODUCTS, Product
from stirred.catalog.releases import total
from stirred.spec import Specification
from stirred.spec.card.odds import DEFAULT_DELTA
from stirred.spec.numbers.budget import Budget
from stirred.spec.outputs.readings import reading

FIGURES: dict[str, Callable[[Product], Product]] = {
    "published": lambda product: product,
    "proved": Product.as_proved,
    "group-privacy": Product.by_group_privacy,
    "printed": Product.as_printed,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchedProduct:
    """One product, its figure, and whether it is counted."""

    product: Product
    key: str  # its name among the published ones, whatever figure is meant
    on: bool

    @property
    def rho_squared(self) -> Decimal:
        """Return ρ² of this product alone, rounded up."""
        return Budget.of(self.product.rho_squared).upper(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedProducts:
    """All switches, and the promise of those that are on; nothing where none is."""

    switches: Sequence[SwitchedProduct]
    figure: str
    specification: Specification | None

    @property
    def readings(self) -> tuple[Decimal, Decimal] | None:
        """Return ε at δ = 10⁻¹⁰ and distance 1, simple and tight; None where no product is chosen."""
        if self.specification is None:
            return None
        rho_squared = self.specification.rho_squared
        simple = reading(rho_squared, DEFAULT_DELTA, decimals=4).epsilon
        return simple, reading(rho_squared, DEFAULT_DELTA, tight=True, decimals=4).epsilon


def compose_products(chosen: Collection[str] | None, figure: str = "published") -> ComposedProducts:
    """Compose the chosen products, all of them where nothing was chosen yet.

    >>> compose_products(None).specification.rho_squared.upper(5), compose_products(None, "proved").specification.rho_squared.upper(5)
    (Decimal('55.37504'), Decimal('43.60112'))
    >>> compose_products(None, "group-privacy").specification.rho_squared.upper(5)
    Decimal('57.88960')
    >>> compose_products(None, "printed").specification.rho_squared.upper(3)
    Decimal('55.371')
    >>> compose_products({"pl-persons-2020"}).specification.rho_squared.upper(4)
    Decimal('2.5563')
    """
    known = figure if figure in FIGURES else "published"
    switches = [
        SwitchedProduct(
            product=FIGURES[known](product), key=product.name, on=chosen is None or product.name in chosen
        )
        for product in PRODUCTS
    ]
    on = [switch.product for switch in switches if switch.on]
    words = "the chosen products, composed"
    return ComposedProducts(switches=switches, figure=known, specification=total(on, words) if on else None)
