"""Refuse arguments of a swap that contradict themselves, before any census is seen."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from stirred.errors import InputError, PrivacyError, did_you_mean, require_kind

UNTOUCHED = ("publish", "drop", "refuse")


def no_text(label: str, value: object) -> None:
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
    """Every list is a list, something is released, and ``untouched`` is known."""
    for label, value in lists.items():
        no_text(label, value)
        for name in value or ():
            require_kind(f"an entry of {label}", name, str, wanted="a name", fix=f'{label}=["county"]')
    no_text("tables", tables)
    for by in tables:
        no_text("an entry of tables", by)
    require_kind("microdata", microdata, bool, wanted="True or False", fix="microdata=True")
    if untouched not in UNTOUCHED:
        raise InputError(
            f"untouched={untouched!r} is unknown",
            why="it decides what happens to records that cannot be swapped",
            fix=did_you_mean(untouched, UNTOUCHED),
        )
    if not microdata and not tables:
        raise InputError(
            "nothing would be released",
            why="there are no tables, and microdata is off",
            fix='give tables=[["county", "tenure"]] or microdata=True',
        )


def require_tables(tables: Sequence[Sequence[str]], released: Sequence[str]) -> None:
    """Raise an error if a table asks for a variable that is not released."""
    for name in (name for by in tables for name in by):
        if name not in released:
            raise InputError(
                f"a table asks for {name}",
                why="the release does not have this variable",
                fix=did_you_mean(name, released),
            )


def held_by_tables(tables: Sequence[Sequence[str]], others: set[str]) -> tuple[str, ...]:
    """The variables of the tables that are neither matched nor swapped, in their order."""
    return tuple(dict.fromkeys(name for by in tables for name in by if name not in others))


def require_inner_rate(rate: Fraction) -> None:
    """Raise an error if a rate makes some outputs impossible."""
    if rate in (0, 1):
        raise PrivacyError(
            f"a swap rate of {rate} protects nothing",
            why="with rate 0 no record moves, with rate 1 every one does: some outputs become impossible (ε = ∞)",
            fix="choose a rate strictly between 0 and 1",
        )
