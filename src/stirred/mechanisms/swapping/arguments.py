"""Refuse arguments of a swap that contradict themselves, before any census is seen."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from stirred.errors import InputError, PrivacyError, did_you_mean, require_kind

UNTOUCHED_CHOICES = ("publish", "drop", "refuse")


def refuse_text(label: str, value: object) -> None:
    """Refuse a single text in place of a list of names: its letters would be read as names."""
    if isinstance(value, str):
        raise InputError(
            f"{label}={value[:40]!r} is one text",
            why="its letters would be read as names",
            fix=f'{label}=["{value[:40]}"]',
        )
    if value is not None:
        require_kind(label, value, Sequence, wanted="a list of names", fix=f'{label}=["county"]')


def require_arguments(
    lists: Mapping[str, Sequence[str] | None],
    tables: Sequence[Sequence[str]],
    *,
    microdata: bool,
    untouched: str,
) -> None:
    """Raise an error unless every list is a list, something is released, and ``untouched`` is known."""
    for label, value in lists.items():
        refuse_text(label, value)
        for name in value or ():
            require_kind(f"an entry of {label}", name, str, wanted="a name", fix=f'{label}=["county"]')
    refuse_text("tables", tables)
    for by in tables:
        refuse_text("an entry of tables", by)
    require_kind("microdata", microdata, bool, wanted="True or False", fix="microdata=True")
    if untouched not in UNTOUCHED_CHOICES:
        raise InputError(
            f"untouched={untouched!r} is unknown",
            why="it decides what happens to records that cannot be swapped",
            fix=did_you_mean(untouched, UNTOUCHED_CHOICES),
        )
    if not microdata and not tables:
        raise InputError(
            "nothing would be released",
            why="there are no tables, and microdata is off",
            fix='give tables=[["county", "tenure"]] or microdata=True',
        )


def require_reasons(columns: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """Return the columns that are released on purpose, each with its reason; one without a reason is refused.

    >>> require_reasons({"income": "public register"})
    {'income': 'public register'}
    """
    fix = 'release_identifiers={"income": "why it is published"}'
    if isinstance(columns, str) or not isinstance(columns, Mapping | Sequence):
        raise InputError(
            "release_identifiers has no reasons",
            why="it names the columns that identify records and are published all the same, each with its reason",
            fix=fix,
        )
    pairs = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns, "")
    for name, reason in pairs.items():
        if not isinstance(reason, str) or not reason.strip():
            raise InputError(
                f"{name} is released as an identifier without a reason",
                why="a column that tells who a record is, is published only with a written reason",
                fix=fix,
            )
    return pairs


def require_tables(tables: Sequence[Sequence[str]], released: Sequence[str]) -> None:
    """Raise an error if a table asks for a variable that is not released."""
    for name in (name for by in tables for name in by):
        if name not in released:
            raise InputError(
                f"a table asks for {name}",
                why="the release does not have this variable",
                fix=did_you_mean(name, released),
            )


def find_held_in_tables(tables: Sequence[Sequence[str]], others: set[str]) -> tuple[str, ...]:
    """Return the variables of the tables that are neither matched nor swapped, in their order."""
    return tuple(dict.fromkeys(name for by in tables for name in by if name not in others))


def require_inner_rate(rate: Fraction) -> None:
    """Raise an error if a rate makes some outputs impossible."""
    if rate in (0, 1):
        raise PrivacyError(
            f"a swap rate of {rate} protects nothing",
            why="with rate 0 no record moves, with rate 1 every one does: some outputs become impossible (ε = ∞)",
            fix="choose a rate strictly between 0 and 1",
        )
