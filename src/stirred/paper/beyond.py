"""Set stirring beside the PSA at equal shares of moved households, in the paper's Tables 1, 2 and 5 and its Figure 1.

What one *exchange* of two households can lose is compared: it is the smallest change of a universe, and at Hamming
distance 2 it costs twice the paper's ε. Both columns are the sharpest proved losses of the same share on the same stratum.
"""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np

from stirred.catalog.products import MAX_STRATUM_2010, RATES_2010, WHAT_IF_RATES, WHAT_IFS
from stirred.chance import Key
from stirred.mechanisms.stirring.law import LawName, exchange_loss, weight_of_rate, weights_of_trades
from stirred.mechanisms.swap.bounds import margins_exact
from stirred.mechanisms.swap.budget import tight_budget
from stirred.mechanisms.swap.estimates import effective_rate
from stirred.paper.documents import DRAWN, state_number
from stirred.paper.massachusetts import PAPER_RATES, RATES, TENURES, Runs, census_1940, mape

Rows = list[dict[str, Any]]
BEYOND: Final = "beyond the paper"
MAX_SMALL_STRATUM: Final = 2_000  # records; beyond it the PSA moves its rate, to nine digits at one percent
CURVE_STRATUM: Final = 1_000  # records of the stratum that the figure shows
CURVE_SHARES: Final = tuple(Fraction(k, 200) for k in range(1, 160))
# name → the law of stirring, None for the PSA
METHODS: Final[dict[str, LawName | None]] = {
    "PSA": None,
    "stirring by cycles": "cycles",
    "stirring by tenure": "types",
}


def moved_by_swap(n: int, rate: Fraction) -> Fraction:
    """Return the share of a stratum that the PSA moves; in small strata it is below the rate, because none moves alone.

    >>> round(float(moved_by_swap(6, Fraction(1, 10))), 4), moved_by_swap(10**6, Fraction(1, 2))
    (0.0634, Fraction(1, 2))
    """
    return Fraction(float(effective_rate(n, rate))) if n <= MAX_SMALL_STRATUM else rate


def compare_rich(part: str, strata: str, n: int, share: Fraction) -> dict[str, Any]:
    """Return one row for a stratum of n records that all differ: the PSA and stirring by cycles.

    >>> row = compare_rich("Table 2", "largest stratum", 264_331, Fraction(1, 20))
    >>> row["psa"], row["computed"]
    (30.86, 15.43)
    """
    return _row(
        part,
        strata,
        "all different",
        n,
        share,
        psa=(tight_budget(n, share) * 2).upper(2),
        stirring=exchange_loss(weight_of_rate(n, moved_by_swap(n, share))).upper(2),
        law="cycles",
    )


def compare_two_types(
    part: str, strata: str, first: int, second: int, share: Fraction, *, law: str = "types"
) -> dict[str, Any]:
    """Return one row for a stratum of two types of records: the PSA's exact loss, and stirring by types or by cycles.

    >>> row = compare_two_types("Table 2", "of 7", 4, 3, Fraction(1, 4))
    >>> row["psa"], row["computed"]
    (3.64, 2.47)
    """
    moved = moved_by_swap(first + second, share)
    if law == "types":
        (weight,) = weights_of_trades(np.array([first]), np.array([second]), moved)
    else:
        weight = weight_of_rate(first + second, moved)
    return _row(
        part,
        strata,
        f"two types: {first:,} and {second:,}",
        first + second,
        share,
        psa=(margins_exact(first, second, share) * 2).upper(2),
        stirring=exchange_loss(weight).upper(2),
        law=law,
    )


def _row(
    part: str, strata: str, records: str, n: int, share: Fraction, *, psa: Any, stirring: Any, law: str
) -> dict[str, Any]:
    return {
        "of": part,
        "strata": strata,
        "records": records,
        "n": n,
        "share": str(share),
        "law": law,
        "psa": float(psa),
        **state_number(stirring, BEYOND),
    }


def stirring_beside_the_paper(*, ipums: Path | None = None) -> dict[str, Any]:
    """Compute the losses of one exchange for Tables 2 and 5 and the estimate of 2010, and two curves by share."""
    census, source = census_1940(ipums)
    tenure = _count_largest_stratum(census)
    rows: Rows = []
    for share in PAPER_RATES:
        rows.append(compare_rich("Table 2", "Massachusetts 1940, largest stratum", sum(tenure), share))
        # two types among many records: the law by cycles would lose more than the PSA, so types are stirred
        alone = "Massachusetts 1940, tenure alone"
        rows += [compare_two_types("Table 2", alone, *tenure, share, law=law) for law in ("types", "cycles")]
    for row in WHAT_IFS:
        rows += [
            compare_rich("Table 5", " × ".join(row.match), row.largest, share) for share in WHAT_IF_RATES
        ]
    rows += [
        compare_rich("Section 3.5", "2010: state × size", MAX_STRATUM_2010, share) for share in RATES_2010
    ]
    return {
        "name": "beyond",
        "title": "Beyond the paper: stirring beside the PSA at equal shares",
        "source": f"{source}; proof.md of Stirring; stratum sizes of Table 5 as the paper states them",
        "inputs": {"unit": "ε of one exchange of two households", "curve": CURVE_STRATUM},
        "rows": rows,
        "curve": _draw_curve(),
    }


def _count_largest_stratum(census: Any) -> tuple[int, int]:
    """Return the number of households of each tenure in the largest stratum of the demonstration."""
    counts = census.counts("household", ["size", "tenure"]).to_pylist()
    sizes: dict[Any, list[int]] = {}
    for row in counts:
        sizes.setdefault(row["size"], []).append(row["count"])
    first, second = max((some for some in sizes.values() if len(some) == 2), key=sum)
    return max(first, second), min(first, second)


def _draw_curve() -> Rows:
    """Return the loss of one exchange by share in one stratum whose records and places all differ.

    There no mechanism that leaves as many records at their place on average loses less: Theorem 4 of the note on stirring.
    """
    found: Rows = []
    for share in CURVE_SHARES:
        losses = {
            "PSA": tight_budget(CURVE_STRATUM, share) * 2,
            "stirring, and the least that is possible": exchange_loss(
                weight_of_rate(CURVE_STRATUM, moved_by_swap(CURVE_STRATUM, share))
            ),
        }
        found += [
            {"method": method, "percent": float(100 * share), "loss": float(loss.upper(4))}
            for method, loss in losses.items()
        ]
    return found


# Table 1 and Figure 1: what a stirring changes in county × tenure, beside a swap that moves the same share.


def stirred_1940(
    *, rate: Fraction = Fraction(1, 2), seed: int = 1, ipums: Path | None = None
) -> dict[str, Any]:
    """Compute Table 1 with stirring beside the PSA: county × tenure after one draw of each at the same share."""
    census, source = census_1940(ipums)
    loaded = Runs.of(census)
    before = loaded.table(loaded.county)
    key = Key.for_tests(seed).bind("1940", str(rate), 0)
    after = {
        "swapped": loaded.swap(rate, key),
        "stirred": loaded.stir(rate, key.bind("types"), "types"),
    }
    counties = sorted(census.counts("household", ["county"])["county"].to_pylist())
    rows: Rows = [
        {
            "county": county,
            "tenure": tenure,
            "true": int(before[i, j]),
            "swapped": int(after["swapped"][i, j]),
            **state_number(int(after["stirred"][i, j]), DRAWN),
        }
        for i, county in enumerate(counties)
        for j, tenure in enumerate(TENURES)
    ]
    return {
        "name": "beyond-1940",
        "title": "Beyond the paper: Table 1 stirred, beside the same share swapped",
        "source": source,
        "inputs": {"rate": str(rate), "seed": seed},
        "mape": {name: round(mape(before, table), 6) for name, table in after.items()},
        "loss": {
            name: _lose(method, loaded, rate)
            for name, method in (("swapped", "PSA"), ("stirred", "stirring by tenure"))
        },
        "rows": rows,
    }


def figure_stirred(
    *, seed: int = 1, runs: int = 20, rates: Sequence[Fraction] = RATES, ipums: Path | None = None
) -> dict[str, Any]:
    """Compute Figure 1 with stirring: what each method changes at eight shares, and what one exchange then loses."""
    census, source = census_1940(ipums)
    loaded = Runs.of(census)
    before = loaded.table(loaded.county)
    rows: Rows = []
    for rate in rates:
        for method, law in METHODS.items():
            found = np.array([mape(before, after) for after in loaded.runs(rate, runs, seed, law)])
            rows.append(
                {
                    "rate": str(rate),
                    "percent": float(100 * rate),
                    "method": method,
                    "loss": _lose(method, loaded, rate),
                    "lowest": round(float(found.min()), 6),
                    "highest": round(float(found.max()), 6),
                    **state_number(round(float(found.mean()), 6), BEYOND),
                }
            )
    return {
        "name": "beyond-mape",
        "title": "Beyond the paper: Figure 1 with stirring, and what one exchange loses",
        "source": f"{source}; the PSA by its sharpest proved bound for two tenures",
        "inputs": {"runs": runs, "seed": seed, "rates": [str(rate) for rate in rates]},
        "rows": rows,
    }


def _lose(method: str, loaded: Runs, rate: Fraction) -> float:
    """Return what one exchange of two households loses at most, in the stratum that loses most."""
    owned = np.bincount(loaded.strata, loaded.tenure == 0, minlength=loaded.sizes.size).astype(int)
    found = []
    for n, first in zip(loaded.sizes.astype(int).tolist(), owned.tolist(), strict=True):
        if not 0 < first < n:
            continue  # one tenure alone: an exchange changes nothing
        if method == "PSA":
            found.append((margins_exact(first, n - first, rate) * 2).upper(2))
        elif METHODS[method] == "cycles":
            found.append(exchange_loss(weight_of_rate(n, rate)).upper(2))
        else:
            (weight,) = weights_of_trades(np.array([first]), np.array([n - first]), rate)
            found.append(exchange_loss(weight).upper(2))
    return float(max(found))
