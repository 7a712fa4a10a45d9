"""Reading one table off another: the rules that need no linear algebra."""

from collections.abc import Sequence

from stirred.spec.domain import Domain
from stirred.spec.invariants.brief import abbreviate
from stirred.spec.invariants.margins import Margin
from stirred.spec.verdicts.derivation import Derivation

PERSON, HOUSEHOLD, QUARTERS = "person", "household", "group quarters"


def read_off(margin: Margin, wanted: Margin, domain: Domain) -> Derivation | None:
    """Derive the wanted table as sums of cells of a given one; None where its cells do not show enough.

    >>> toy = Domain(name="toy", spine=("county", "block"))
    >>> print(read_off(Margin("person", ("block",)), Margin("person", ("county",)), toy))
    persons by block determine persons by county (block → county) [read off]
    """
    if margin.record_type != wanted.record_type:
        return None
    have, want = margin.conditions(), wanted.conditions()
    constant = {v for v, values in have.items() if len(values) == 1}
    known = domain.closure(margin.record_type, (*margin.by, *constant))
    fixed = {v for v, values in want.items() if len(values) == 1}
    if not known.issuperset({*wanted.by} - fixed):
        return None
    for variable, values in have.items():
        asked = want.get(variable) or domain.levels(wanted.record_type, variable)
        if asked is None or not set(values).issuperset(asked):
            return None  # the given table leaves out records that the wanted one counts
    for variable, values in want.items():
        if variable not in known and not (variable in have and set(values).issuperset(have[variable])):
            return None  # the given table does not show who is to be left out
    wanted_variables = {*wanted.by, *want}
    steps = [
        str(rule)
        for rule in domain.rules(margin.record_type)
        if known.issuperset(rule.of)
        and {*rule.determines} - {*margin.by}
        and not wanted_variables <= {*margin.by}
    ]
    why = f" ({', '.join(dict.fromkeys(steps))})" if steps else ""
    claim = f"{abbreviate(margin, domain)} determine {abbreviate(wanted, domain)}{why}"
    return Derivation(rule="read off", claim=claim, facts={"given": margin, "wanted": wanted})


def derive_by_homes(margins: Sequence[Margin], wanted: Margin, domain: Domain) -> Derivation | None:
    """Derive persons by area from households by size and from tables of persons outside households, or None."""
    size, areas = domain.size_variable, {*wanted.by, *wanted.conditions()}
    if not size or wanted.record_type != PERSON or not domain.has(QUARTERS) or not areas <= {*domain.spine}:
        return None
    sized = Margin(HOUSEHOLD, (*wanted.by, size), wanted.where)
    for outside in [m for m in margins if counts_outside_homes(m, domain)]:
        rest = Margin(
            PERSON, wanted.by, {**wanted.conditions(), "quarters": outside.conditions()["quarters"]}
        )
        steps = [
            next((found for m in margins if (found := read_off(m, table, domain)) is not None), None)
            for table in (sized, rest)
        ]
        if all(step is not None for step in steps):
            claim = f"{abbreviate(wanted, domain)} are the persons of households (by {size}) and those in group quarters"
            facts = {"wanted": wanted, "given": (sized, rest)}
            return Derivation(
                rule="homes", claim=claim, premises=tuple(s for s in steps if s is not None), facts=facts
            )
    return None


def counts_outside_homes(margin: Margin, domain: Domain) -> bool:
    """Return whether a table counts exactly the persons who live outside households."""
    levels = domain.levels(PERSON, "quarters") or ()
    chosen = {*margin.conditions().get("quarters", ())}
    only = margin.record_type == PERSON and len(margin.conditions()) == 1
    return only and bool(chosen) and chosen == {*levels} - {HOUSEHOLD}


def derive_by_size(margin: Margin, wanted: Margin, domain: Domain) -> Derivation | None:
    """Derive persons by area from households by exact size (Σ size · households), or return None.

    Only for areas: a person's race is not the householder's, though the two columns may share a name.
    """
    size = domain.size_variable
    if not size or wanted.record_type != PERSON or margin.record_type != HOUSEHOLD:
        return None
    # people in group quarters of their own record type are in no household
    if domain.has(QUARTERS) or not {*domain.spine}.issuperset({*wanted.by, *wanted.conditions()}):
        return None
    sized = Margin(HOUSEHOLD, (*wanted.by, size), wanted.where)
    found = read_off(margin, sized, domain)
    if found is None:
        return None
    claim = f"{abbreviate(margin, domain)} determine {abbreviate(wanted, domain)} (each household counts for its {size})"
    facts = {"given": sized, "wanted": wanted, "size": size}
    return Derivation(rule="size", claim=claim, premises=(found,), facts=facts)
