"""Compile kernels with one set of rules: no GIL, no bounds checks, cached, no fastmath.

A kernel is compiled, or loaded from the cache, when it is first called: numba takes half a second of processor time to
import and as much again to load its first kernel, which a run that calls none does not pay.
"""

import importlib
import sys
from collections.abc import Callable
from functools import update_wrapper
from threading import Lock
from typing import Any, TypeVar, cast

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


_making = Lock()


class Kernel:
    """A function over arrays that is compiled when it is first called, by a caller or by another kernel."""

    def __init__(self, function: Callable[..., object]) -> None:
        update_wrapper(self, function)
        self._dispatcher: Any = None

    def __call__(self, *arguments: object) -> object:
        return (self._dispatcher or self._made())(*arguments)

    def __getattr__(self, name: str) -> Any:
        # numba asks a global of a kernel for ``_numba_type_``: so kernels that call kernels find the compiled one
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._dispatcher or self._made(), name)

    def __reduce__(self) -> str:
        return str(self.__qualname__)

    def _made(self) -> Any:
        import numba

        with _making:
            if self._dispatcher is None:
                function = self.__wrapped__
                try:
                    made = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
                except RuntimeError:  # a kernel typed at a prompt has no file, so it cannot be cached
                    made = numba.njit(nogil=True, error_model="numpy")(function)
                self._dispatcher = made
        return self._dispatcher


def compiled(function: F) -> F:
    """Compile a pure kernel over arrays; floating point stays in the order written.

    >>> @compiled
    ... def double(x): return 2 * x
    >>> int(double(21))
    42
    """
    return cast("F", Kernel(function))


def kernels_are_loaded() -> bool:
    """Whether this process has paid for numba already; results never depend on it."""
    return "numba" in sys.modules


def compile_slowest() -> None:
    """Compile the slowest kernels, or load them from the cache, before there are records to call them with."""
    for (module, name), types in SLOWEST.items():
        getattr(importlib.import_module(module), name).compile(types)
