"""Look up published specifications by name, and compare specifications."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Protocol, runtime_checkable

from stirred.catalog import releases
from stirred.catalog.entries import UNSTATED_BY_NAME, CatalogEntry, Row, unstated_row
from stirred.catalog.products import (
    DDHC_A,
    DELTA,
    MAX_STRATUM_2010,
    PAPER,
    PRODUCTS,
    RATES_2010,
    S_DHC,
    SOURCE_2010,
    STIRRED_SOURCE,
    UNSTATED,
    WHAT_IF_RATES,
    WHAT_IF_SOURCE,
    WHAT_IFS,
    Product,
    WhatIf,
)
from stirred.errors import InputError, did_you_mean, require_kind
from stirred.spec import Comparison, Specification
from stirred.spec import compare as compare_specifications
from stirred.spec.exact import parse_fraction
from stirred.spec.notebook import write_html_table

# The catalog itself: published specifications by name.

_BY_THEOREM = "ε by Theorem 1 from b and the swap rate"
_BY_SHARE = "ε of one exchange from b and the share that moves"
_HOUSEHOLDS = (
    "household parts count per person with constant 1 (a person's change leaves the household link alone, and the "
    "invariants fix the number of housing units and of facilities; without that no constant holds), then the ρ² add"
)


def _of_product(product: Product) -> CatalogEntry:
    # no second figure is shown beside one that was not converted, or beside one that is proved
    alone = product.conversion is None or product.figure != "published"
    proved, weaker = (None, None) if alone else (product.as_proved(), product.by_group_privacy())
    return CatalogEntry(
        name=product.name,
        title=product.title,
        source=product.source,
        conversion=product.conversion_words,
        make=lambda _: releases.product(product),
        published=product.published,
        product=product,
        with_proof=None if proved is None else lambda: releases.product(proved),
        by_group_privacy=None if weaker is None else lambda: releases.product(weaker),
    )


def _of_what_if(row: WhatIf) -> CatalogEntry:
    words = ["household size" if name == "size" else name.replace("_", " ") for name in row.match]
    return CatalogEntry(
        name=row.name,
        title=f"What if 2020 had swapped {row.swap[0].replace('_', ' ')} within {' × '.join(words)}",
        source=WHAT_IF_SOURCE,
        conversion=_BY_THEOREM,
        make=lambda rate: releases.what_if(row, WHAT_IF_RATES[0] if rate is None else rate),
        rates=WHAT_IF_RATES,
        b=row.largest,
        where=f"largest stratum: {row.largest:,} households ({row.where})",
        hypothetical=True,
    )


def _of_stirred(row: WhatIf) -> CatalogEntry:
    """Return the entry of the same row with stirring instead of the PSA, at equal shares of moved households."""
    plain = _of_what_if(row)
    return replace(
        plain,
        name=f"{row.name}-stirred",
        title=plain.title.replace("had swapped", "had stirred"),
        source=STIRRED_SOURCE,
        conversion=_BY_SHARE,
        make=lambda rate: releases.stirred_what_if(row, WHAT_IF_RATES[0] if rate is None else rate),
    )


_PL, _DHC = ("pl-persons-2020", "pl-units-2020"), ("dhc-persons-2020", "dhc-units-2020")
_sum = partial(CatalogEntry, conversion=_HOUSEHOLDS)
_whole_system = partial(_sum, published="2021-08-12", omits=UNSTATED)
_SUMS = (
    _sum(
        name="pl-2020",
        title="2020 Redistricting Data (P.L. 94-171)",
        source=f"sum of {' and '.join(_PL)}; {PAPER}, Theorem 2",
        make=lambda _: releases.pl(),
        published="2021-08-12",
        parts=_PL,
    ),
    _sum(
        name="dhc-2020",
        title="2020 Demographic and Housing Characteristics File (without the redistricting data)",
        source=f"sum of {' and '.join(_DHC)}; {PAPER}, Table 3",
        make=lambda _: releases.dhc(),
        published="2023-05-25",
        parts=_DHC,
    ),
    _sum(
        name="topdown-2020",
        title="2020 Redistricting Data and DHC together: all that the TopDown Algorithm made",
        source=f"sum of {', '.join((*_PL, *_DHC))}; {PAPER}, Theorem 2 and Table 3",
        make=lambda _: releases.topdown(),
        published="2023-05-25",
        parts=(*_PL, *_DHC),
    ),
    _whole_system(
        name="das-2020",
        title="The whole 2020 Disclosure Avoidance System, from the exact budgets",
        source=f"sum of the seven products; {PAPER}, Table 4",
        make=lambda _: releases.das_2020(),
        parts=tuple(product.name for product in PRODUCTS),
        with_proof=releases.das_2020_proved,
        by_group_privacy=releases.das_2020_by_group_privacy,
    ),
    _whole_system(
        name="das-2020-proved",
        title="The whole 2020 Disclosure Avoidance System, from the exact budgets and factors that are proved",
        source=f"sum of the seven products, DDHC-A times 2 instead of 4, S-DHC times 1/2 instead of 2; {PAPER}, Table 4",
        make=lambda _: releases.das_2020_proved(),
        parts=(
            *(product.name for product in PRODUCTS[:4]),
            "ddhc-a-2020-proved",
            "ddhc-b-2020",
            "sdhc-2020-proved",
        ),
    ),
    _whole_system(
        name="das-2020-group-privacy",
        title="The whole 2020 Disclosure Avoidance System, from the exact budgets and the guarantees of the code alone",
        source=f"sum of the seven products, S-DHC times 4 instead of 2; {PAPER}, Table 4",
        make=lambda _: releases.das_2020_by_group_privacy(),
        parts=(*(product.name for product in PRODUCTS[:-1]), "sdhc-2020-group-privacy"),
    ),
    _whole_system(
        name="das-2020-printed",
        title="The whole 2020 Disclosure Avoidance System, from the paper's rounded figures",
        source=f"{PAPER}, Table 4: 15.29 + 19.776 + 17.79 + 2.515",
        make=lambda _: releases.das_2020_printed(),
        parts=tuple(product.name for product in PRODUCTS),
    ),
    CatalogEntry(
        name="das-2010",
        title="The 2010 Disclosure Avoidance System, as if it had been a PSA",
        source=SOURCE_2010,
        conversion=_BY_THEOREM,
        make=lambda rate: releases.das_2010(RATES_2010[0] if rate is None else rate),
        rates=RATES_2010,
        b=MAX_STRATUM_2010,
        where="largest stratum: about 3.65 million households; 2% to 4% swapped, purportedly",
        published="2011-02-03",
    ),
)
_RESTATED = (DDHC_A.as_proved(), S_DHC.as_proved(), S_DHC.by_group_privacy())
_PRODUCTS = {product.name: _of_product(product) for product in (*PRODUCTS, *_RESTATED)}
_TOTALS = {entry.name: entry for entry in _SUMS}
_ORDER = (
    *(*_PL, "pl-2020", *_DHC, "dhc-2020", "topdown-2020"),
    *("ddhc-a-2020", "ddhc-a-2020-proved", "ddhc-b-2020"),
    *("sdhc-2020", "sdhc-2020-proved", "sdhc-2020-group-privacy"),
    *("das-2020", "das-2020-proved", "das-2020-group-privacy", "das-2020-printed", "das-2010"),
)


class Catalog(Mapping[str, Specification]):
    """Published specifications by name: ``catalog["das-2020"]``; a swap also at a rate: ``catalog["das-2010@1/25"]``.

    >>> from stirred.catalog import catalog
    >>> print(catalog["pl-persons-2020"].rho_squared.exact)
    293764/114921
    >>> catalog["whatif-state@1/2"].budget < catalog["whatif-state"].budget
    True
    >>> catalog["das-2002"]
    Traceback (most recent call last):
    ...
    stirred.errors.InputError: the catalog has no entry 'das-2002'
      why: an entry is asked for by its name
      fix: did you mean das-2020 or das-2010?
    """

    def __init__(self) -> None:
        known = {**_PRODUCTS, **_TOTALS}
        entries = [known[name] for name in _ORDER]
        self._entries = {
            entry.name: entry
            for entry in (*entries, *map(_of_what_if, WHAT_IFS), *map(_of_stirred, WHAT_IFS))
        }

    def __getitem__(self, name: str) -> Specification:
        if not isinstance(name, str) or name in self._entries or "@" not in name:
            return self.entry(name).specification
        plain, _, rate = name.rpartition("@")
        return self.entry(plain).at(parse_fraction(rate, "swap rate"))

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __repr__(self) -> str:
        return f"Catalog({len(self)} published specifications: {', '.join(self)})"

    def _repr_html_(self) -> str:
        """Return names and titles as HTML; budgets are computed only for a single entry."""
        rows = [(entry.name, entry.title, entry.published) for entry in self._entries.values()]
        return write_html_table("Catalog", rows, columns=("name", "title", "published"))

    def entry(self, name: str) -> CatalogEntry:
        """Return the entry with its source, readings and card."""
        require_kind("the name of an entry", name, str, wanted="a text", fix='catalog["das-2020"]')
        if name in self._entries:
            return self._entries[name]
        if name in UNSTATED_BY_NAME:
            raise InputError(
                f"nobody has stated a specification for {name}",
                why=f"{UNSTATED_BY_NAME[name].title} came from the same confidential file, at unknown cost",
                fix="in a sum it counts as unknown: stirred spec compose das-2020 " + name,
            )
        raise InputError(
            f"the catalog has no entry {name!r}",
            why="an entry is asked for by its name",
            fix=did_you_mean(name, self._entries),
        )

    @property
    def unstated(self) -> Mapping[str, str]:
        """Return the known releases whose cost is unknown: name → title."""
        return {name: unstated.title for name, unstated in UNSTATED_BY_NAME.items()}

    def rows(self, delta: Fraction = DELTA, names: Collection[str] = ()) -> list[Row]:
        """Return the entries named, or all, as plain values; those of unknown cost are last."""
        for name in names:
            if name not in UNSTATED_BY_NAME:
                self.entry(name)  # refuses what is not there
        stated = [entry.row(delta) for name, entry in self._entries.items() if name in names or not names]
        return stated + [
            unstated_row(entry, delta)
            for name, entry in UNSTATED_BY_NAME.items()
            if name in names or not names
        ]


catalog = Catalog()


# Compare specifications, which may be given by their names in the catalog.


@runtime_checkable
class SupportsSpecification(Protocol):
    """A value that states a specification, such as a release."""

    @property
    def specification(self) -> Specification:
        """Return the specification."""
        ...


def compare(
    first: Specification | SupportsSpecification | str, second: Specification | SupportsSpecification | str
) -> Comparison:
    """Compare two specifications, releases or catalog names; return five verdicts.

    >>> compare("whatif-state@1/2", "whatif-state@1/20").overall.relation.value
    'stronger'
    """
    return compare_specifications(_find_specification(first), _find_specification(second))


def _find_specification(given: object) -> Specification:
    if isinstance(given, Specification):
        return given
    if isinstance(given, str):
        return catalog[given]
    if isinstance(given, SupportsSpecification) and isinstance(given.specification, Specification):
        return given.specification
    raise InputError(
        "only specifications can be compared",
        why=f"this is of type {type(given).__name__}",
        fix='st.compare(release, "das-2020"): a specification, a release, or a name in list(st.catalog)',
    )
