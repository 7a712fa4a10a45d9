"""State the promise of a TopDown run: its specification, ledger and notes, from the workload and the rules alone."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.errors import PrivacyError
from stirred.languages import Phrase
from stirred.mechanisms.release import Check
from stirred.mechanisms.topdown.accounting import cost_by_level, epsilon
from stirred.mechanisms.topdown.inside import MultiverseCost, cost_in_multiverse, is_in_parts
from stirred.mechanisms.topdown.rules.record import Record, declare_multiverse, source_columns
from stirred.mechanisms.topdown.tree.geounits import ALIASES, require_order
from stirred.mechanisms.topdown.workload.options import SpineOptions
from stirred.mechanisms.topdown.workload.workload import Workload
from stirred.spec import Budget, Evidence, Hamming, Ledger, NormalizedRenyi, Specification
from stirred.spec.released import Views, largest_views, make_view

if TYPE_CHECKING:
    from stirred.census import Census, Schema


def build_budget(rho_squared: Fraction | None) -> Budget:
    """Return ρ, the square root of the usual zCDP parameter; None means no noise."""
    return Budget.infinite() if rho_squared is None else Budget.sqrt(rho_squared)


def build_specification(
    census: "Census",
    workload: Workload,
    rho_squared: Fraction | None,
    notes: tuple[str, ...],
    *,
    options: SpineOptions | None = None,
) -> Specification:
    """Return ρ-DP(X, D_c, d_Ham(person), D_nor) of one workload; ``options`` is the measured tree."""
    require_order(workload.levels, census.schema.spine)
    unit = find_unit(workload, census.schema)
    if unit == workload.record:
        evidence = Evidence(status="proved", source=Phrase("topdown.source.proved"))
    else:
        evidence = Evidence(status="published", source=Phrase("topdown.source.published"))
    return Specification(
        domain=census.domain,
        multiverse=declare_multiverse(census, workload, options),
        input_premetric=Hamming(unit),
        output_premetric=NormalizedRenyi(),
        budget=build_budget(rho_squared),
        evidence=evidence,
        notes=(*notes, *note_moved_shares(census, workload, options), *census.notes),
        released=list_views(census, workload, options),
    )


def list_views(census: "Census", workload: Workload, options: SpineOptions | None = None) -> Views:
    """Return the measured queries as tables of the census's areas and columns; records follow from them.

    Of areas that the census does not have (parts of areas, and areas made for the tree) only the sum is taken.
    """
    domain, spine = census.domain, census.schema.spine
    here = {level: _find_level(level, spine) for level in workload.levels}
    where = {name: tuple(str(v) for v in values) for name, values in workload.where}
    found = []
    for place, level in enumerate(workload.levels):
        # the share of a level that the census lacks is spent below it, else above
        near = [*workload.levels[place:], *reversed(workload.levels[:place])]
        areas = [here[name] for name in near if here[name]][:1]
        if is_in_parts(workload, level, options, spine):
            areas = []
        found += [
            make_view(domain, workload.record, (*areas, *source_columns(workload, query.name)), where)
            for query in workload.queries
            if workload.rho(level, query.name)
        ]
    return largest_views(domain, found)


def _find_level(level: str, spine: Sequence[str]) -> str:
    """Return the census's own name of a level, or nothing."""
    return next((name for name in (level, *ALIASES.get(level, ())) if name in spine), "")


def find_unit(workload: Workload, schema: "Schema") -> str:
    """Return the unit of the promise: a person, where the census has persons."""
    return "person" if "person" in schema.record_types else workload.record


def find_proved_cost(
    workload: Workload, options: SpineOptions | None, schema: "Schema"
) -> MultiverseCost | None:
    """Return the cost inside the multiverse where it is proved and smaller than the total, else None."""
    found = cost_in_multiverse(workload, options, schema.spine)
    return found if found.saving and find_unit(workload, schema) == workload.record else None


def note_determined(workload: Workload, found: MultiverseCost, schema: "Schema") -> tuple[str, ...]:
    """Return notes on measured queries that the invariants determine, with the proved smaller figure."""
    if not found.saving or find_unit(workload, schema) != workload.record:
        return ()
    queries = ", ".join(f"{query} ({level})" for level, query in found.free)
    words = Phrase(
        "topdown.inside.note",
        name=workload.name,
        queries=queries,
        rho_squared=Decimal(str(Budget.of(found.rho_squared))),
        exact=str(found.rho_squared),
        epsilon=Decimal(format_epsilon(epsilon(found.rho_squared))),
        stated=Decimal(str(Budget.of(workload.rho_squared))),
    )
    return (words,)


def format_epsilon(number: Decimal) -> str:
    """Return an ε with two digits, rounded up."""
    return str(number.quantize(Decimal("0.01"), rounding=ROUND_CEILING))


def note_moved_shares(
    census: "Census", workload: Workload, options: SpineOptions | None = None
) -> tuple[str, ...]:
    """Return notes on where the ρ² of missing levels is spent; a split area is measured in parts."""
    added = options.extra_levels if options else ()
    split = options.split_at if options and options.aian else None
    present = [
        any(n in (*census.schema.spine, *added) for n in (level, *ALIASES.get(level, ())))
        for level in workload.levels
    ]
    notes = []
    for i, level in enumerate(workload.levels):
        if not present[i] and cost_by_level(workload)[level]:
            lower = [
                name for name, here in zip(workload.levels[i + 1 :], present[i + 1 :], strict=True) if here
            ]
            upper = [name for name, here in zip(workload.levels[:i], present[:i], strict=True) if here]
            if lower or upper:
                target = lower[0] if lower else upper[-1]
                key = "topdown.note.missing_above_parts" if target == split else "topdown.note.missing_level"
                words = Phrase(key, name=workload.name, level=level, target=target)
                notes.append(words)
    return tuple(notes)


def build_ledger(workloads: list[tuple[Workload, MultiverseCost | None]], limit: Budget) -> Ledger:
    """Return the account of a run: a line per level of each workload, and one for what invariants determine.

    The lines add up to the stated total; without the lines of determined queries they add up to the cost inside the
    multiverse. None means no noise.
    """
    account = Ledger(limit=limit, output_premetric=NormalizedRenyi())
    for workload, found in workloads:
        if found is None:
            account = account.spend("topdown", f"{workload.name}: exact answers", Budget.infinite())
            continue
        for level, part in cost_by_level(workload).items():
            free = {query: share for (own, query), share in found.free.items() if own == level}
            charged = part - sum(free.values(), Fraction(0))
            if charged:
                account = account.spend("topdown", f"{workload.name}: {level}", Budget.sqrt(charged))
            for query, share in free.items():
                on = f"{workload.name}: {level}, {query} (determined by the invariants: free inside the multiverse)"
                account = account.spend("topdown", on, Budget.sqrt(share))
    return account


def approve(stated: Specification, checks: tuple[Check, ...], record: Record) -> None:
    """Refuse a run that used more invariants than it states, or that did not keep one."""
    more = set(record.multiverse) - set(stated.multiverse)
    if more:
        raise PrivacyError(
            "the run used an invariant that its specification does not list",
            why="; ".join(sorted(i.words() for i in more)),
            fix="report this; nothing was released",
        )
    broken = [check.invariant for check in checks if not check.kept]
    if broken:
        raise PrivacyError(
            "an invariant was not kept", why=broken[0], fix="report this; nothing was released"
        )
