"""Compile kernels with one set of rules: no GIL, no bounds checks, cached, no fastmath."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


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
