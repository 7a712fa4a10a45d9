"""Settings of pairwise swaps that the schema of a census suggests; who is at risk stays the office's decision."""

from collections.abc import Mapping

from stirred.census.codebook.schema import Schema
from stirred.errors import PlanError
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.swapping.config import SwapConfig
from stirred.mechanisms.swapping.proposal import propose_swap

REASON_PLACEHOLDER = "to be written: why these records are published without a finite budget"
UNDECIDED_SETTINGS = (
    "which variables make a record risky: nobody has to be swapped until they are named",
    "whether to publish without a finite budget, or to swap by permutation-swapping, which has one",
)


def propose_targeted(schema: Schema) -> Proposal:
    """Propose that partners agree on what a permutation swap would match, and that the finer areas move."""
    plain = propose_swap(schema, SwapConfig)
    matched = list(_read_names(plain, "match")) or list(_read_names(plain, "hold"))[:1]
    if not matched:
        raise _pairwise_schema_error(
            "partners must agree on a variable", 'name the size of households: size = "…"'
        )
    own = {
        "hierarchy": (_read_names(plain, "swap"), str(plain.reasons["swap"])),
        "similar": ([matched], "partners agree on these, so counts by them stay exact in every area"),
        "swaprate": ("1/20", "a start, not a choice"),
    }
    return _add_own_settings(plain, own)


def propose_2010(schema: Schema) -> Proposal:
    """Propose that no household leaves the coarsest area and that partners agree on one variable."""
    plain = propose_swap(schema, SwapConfig)
    state, *rest = [*_read_names(plain, "match"), *_read_names(plain, "hold")][:2] or [""]
    if state not in schema.spine or not rest:
        raise _pairwise_schema_error(
            "no household leaves the coarsest area, and partners agree on a variable",
            'name two levels of areas and the size of households: spine = ["region", "district"], size = "…"',
        )
    own = {
        "swap": (_read_names(plain, "swap"), str(plain.reasons["swap"])),
        "state": (state, "the coarsest area, with a number of swaps of its own"),
        "equal": (rest, "partners agree on it"),
        "rate": ("3/100", "within the 2 to 4 percent that the Bureau has named"),
    }
    return _add_own_settings(plain, own)


def _add_own_settings(plain: Proposal, own: Mapping[str, tuple[object, str]]) -> Proposal:
    """Join the settings that every swap has with those of a pairwise swap."""
    shared = {name: value for name, value in plain.settings.items() if name in ("resolution", "hold", "drop")}
    mine = {name: value for name, (value, _) in own.items()}
    reasons = {name: why for name, (_, why) in own.items()}
    return Proposal(
        settings={**mine, **shared, "without_guarantee": REASON_PLACEHOLDER},
        reasons={
            **{name: why for name, why in plain.reasons.items() if name in (*shared, "tables")},
            **reasons,
            "without_guarantee": "no budget is finite",
        },
        tables=plain.tables,
        undecided=(*UNDECIDED_SETTINGS, *plain.undecided),
    )


def _read_names(plain: Proposal, setting: str) -> list[str]:
    found = plain.settings.get(setting)
    return [str(name) for name in found] if isinstance(found, list) else []


def _pairwise_schema_error(why: str, fix: str) -> PlanError:
    return PlanError(
        "this mechanism cannot be proposed for this census",
        why=f"{why}, and census.toml has none",
        fix=f"{fix}; or choose another --mechanism",
    )
