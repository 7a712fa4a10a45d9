"""Invariants as a sentence names them: short, where the table beside it keeps the whole list of variables."""

from collections.abc import Sequence
from functools import reduce

from stirred.languages import Phrase, unit
from stirred.spec.domain import Domain
from stirred.spec.invariants.margins import Invariant, Margin, describe_table

MAX_VARIABLES_NAMED = 4  # as many variables as a reader keeps in mind


def abbreviate(invariant: Invariant, domain: Domain) -> str:
    """Return the label of an invariant, or its words with a long list of variables shortened.

    >>> domain = Domain(name="toy", spine=("state", "county", "tract", "block"))
    >>> print(abbreviate(Margin("household", ("state", "county", "tract", "block", "size")), domain))
    households by block × size
    """
    if not isinstance(invariant, Margin) or invariant.label or len(invariant.by) <= MAX_VARIABLES_NAMED:
        return invariant.words()
    return describe_table(invariant.record_type, _describe_variables(invariant, domain), invariant.where)


def _describe_variables(margin: Margin, domain: Domain) -> str:
    kept = _find_generating(margin, domain)
    if len(kept) <= MAX_VARIABLES_NAMED:
        return " × ".join(kept)
    if domain.has(margin.record_type):
        names = domain.record_type(margin.record_type).names() - domain.identifiers(margin.record_type)
        missing = _name_missing(names - domain.closure(margin.record_type, margin.by), domain)
        if len(missing) <= MAX_VARIABLES_NAMED:
            # in brackets: the sentence goes on with "and" and the next table
            kind = unit(margin.record_type, "all_variables")
            if not missing:
                return Phrase("invariant.all_variables", all_variables=kind)
            left_out = reduce(_join_comma, missing)
            return Phrase("invariant.all_variables_but", all_variables=kind, left_out=left_out)
    first = " × ".join(kept[: MAX_VARIABLES_NAMED - 1])
    return Phrase("invariant.more_variables", first=first, count=len(kept) - MAX_VARIABLES_NAMED + 1)


def _join_comma(first: str, second: str) -> str:
    return Phrase("lists.comma_pair", first=first, second=second)


def _name_missing(missing: frozenset[str], domain: Domain) -> list[str]:
    """Return the names of the variables that are left out, with the finer areas in one word."""
    start = next((place for place, level in enumerate(domain.spine) if level in missing), len(domain.spine))
    finer = frozenset(domain.spine[start:])
    if start == 0 or len(finer) < 2 or not finer <= missing:
        return _sort_variables(missing, domain)
    return [Phrase("invariant.areas_below", level=domain.spine[start - 1]), *sorted(missing - finer)]


def _find_generating(margin: Margin, domain: Domain) -> list[str]:
    """Return the variables that determine the others of the table, areas first."""
    kept = _sort_variables(frozenset(margin.by), domain)
    for name in list(kept):
        rest = tuple(other for other in kept if other != name)
        if name in domain.closure(margin.record_type, rest):
            kept.remove(name)
    return kept


def _sort_variables(names: frozenset[str], domain: Domain) -> list[str]:
    areas = [level for level in domain.spine if level in names]
    return [*areas, *sorted(names - {*areas})]


def join_words(words: Sequence[str]) -> str:
    """Join words to a list as in a sentence.

    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
