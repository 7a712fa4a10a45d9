"""Invariants as a sentence names them: short, where the table beside it keeps the whole list of variables."""

from collections.abc import Sequence
from functools import reduce

from stirred.languages import Phrase, unit
from stirred.spec.domain import Domain
from stirred.spec.invariants.margins import Invariant, Margin, table_words

MOST = 4  # as many variables as a reader keeps in mind


def brief(invariant: Invariant, domain: Domain) -> str:
    """A label where there is one; else a long list of variables told by what determines it, or by what it leaves out.

    >>> domain = Domain(name="toy", spine=("state", "county", "tract", "block"))
    >>> print(brief(Margin("household", ("state", "county", "tract", "block", "size")), domain))
    households by block × size
    """
    if not isinstance(invariant, Margin) or invariant.label or len(invariant.by) <= MOST:
        return invariant.words()
    return table_words(invariant.record_type, _variables(invariant, domain), invariant.where)


def _variables(margin: Margin, domain: Domain) -> str:
    kept = _generating(margin, domain)
    if len(kept) <= MOST:
        return " × ".join(kept)
    if domain.has(margin.record_type):
        names = domain.record_type(margin.record_type).names() - domain.identifiers(margin.record_type)
        missing = _told(names - domain.closure(margin.record_type, margin.by), domain)
        if len(missing) <= MOST:
            # in brackets: the sentence goes on with "and" and the next table
            kind = unit(margin.record_type, "all_variables")
            if not missing:
                return Phrase("invariant.all_variables", all_variables=kind)
            left_out = reduce(_comma, missing)
            return Phrase("invariant.all_variables_but", all_variables=kind, left_out=left_out)
    first = " × ".join(kept[: MOST - 1])
    return Phrase("invariant.more_variables", first=first, count=len(kept) - MOST + 1)


def _comma(first: str, second: str) -> str:
    return Phrase("lists.comma_pair", first=first, second=second)


def _told(missing: frozenset[str], domain: Domain) -> list[str]:
    """What is left out, with the finer areas in one word."""
    start = next((place for place, level in enumerate(domain.spine) if level in missing), len(domain.spine))
    finer = frozenset(domain.spine[start:])
    if start == 0 or len(finer) < 2 or not finer <= missing:
        return _ordered(missing, domain)
    return [Phrase("invariant.areas_below", level=domain.spine[start - 1]), *sorted(missing - finer)]


def _generating(margin: Margin, domain: Domain) -> list[str]:
    """The variables that determine the others of the table, areas first."""
    kept = _ordered(frozenset(margin.by), domain)
    for name in list(kept):
        rest = tuple(other for other in kept if other != name)
        if name in domain.closure(margin.record_type, rest):
            kept.remove(name)
    return kept


def _ordered(names: frozenset[str], domain: Domain) -> list[str]:
    areas = [level for level in domain.spine if level in names]
    return [*areas, *sorted(names - {*areas})]


def joined(words: Sequence[str]) -> str:
    """A list as a person says it.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
