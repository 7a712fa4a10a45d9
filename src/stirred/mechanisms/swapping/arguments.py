"""Refuse arguments of a swap that contradict themselves, before any census is seen."""

from collections.abc import Mapping, Sequence

from stirred.errors import InputError, did_you_mean, require_kind

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
