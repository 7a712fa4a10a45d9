"""Compile kernels with one set of rules: no GIL, no bounds checks, cached, no fastmath."""

import importlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])

_ROW, _COLUMN, _MATRIX, _CUBE = "float64[::1]", "int64[::1]", "float64[:, ::1]", "float64[:, :, ::1]"
_NESTING = f"Tuple(({_COLUMN}, {_COLUMN}, {_COLUMN}, int32[:, ::1]))"
_BOUNDS = f"Tuple((int32[:, ::1], {_CUBE}, {_CUBE}, {_CUBE}, {_ROW}))"
# (module, kernel) → the types that it is called with; of all kernels it takes longest to compile, about 15 seconds
SLOWEST = {
    ("stirred.mechanisms.topdown.solve.descend", "descend"): (
        f"({_MATRIX}, {_MATRIX}, {_MATRIX}, {_ROW}, {_NESTING}, {_CUBE}, {_MATRIX}, {_ROW}, {_BOUNDS}, "
        "float64, float64, int64)"
    ),
}


def compiled(function: F) -> F:
    """Compile a pure kernel over arrays; floating point stays in the order written.

    >>> @compiled
    ... def double(x): return 2 * x
    >>> int(double(21))
    42
    """
    made: Any
    try:
        made = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # a kernel typed at a prompt has no file, so it cannot be cached
        made = numba.njit(nogil=True, error_model="numpy")(function)
    return cast("F", made)


def compile_slowest() -> None:
    """Compile the slowest kernels, or load them from the cache, before there are records to call them with."""
    for (module, name), types in SLOWEST.items():
        getattr(importlib.import_module(module), name).compile(types)
