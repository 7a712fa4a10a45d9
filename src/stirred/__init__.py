"""Stirred: formally private official statistics that keep some numbers exact."""

from importlib import import_module as _import_module

# name → room: nothing heavy is imported before it is used
_HOMES: dict[str, str] = {}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(_import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'stirred' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
