"""Compile kernels with one set of rules: no GIL, no bounds checks, cached, no fastmath.

Kernels that gather sums handle four numbers at a time (``add_four`` and the like): the compiler moves four neighbours
at once only inside long loops, so these operations say it. Each number is computed as if it were alone.

A kernel is compiled, or loaded from the cache, when it is first called: numba takes half a second of processor time to
import and as much again to load its first kernel, which a run that calls none does not pay.
"""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, update_wrapper
from numbers import Number
from pathlib import Path
from threading import Lock, Timer
from time import monotonic
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])

_ROW, _COLUMN, _MATRIX, _CUBE = "float64[::1]", "int64[::1]", "float64[:, ::1]", "float64[:, :, ::1]"
_NESTING = f"Tuple(({_COLUMN}, {_COLUMN}, {_COLUMN}, int32[:, ::1]))"
_BOUNDS = f"Tuple((int32[:, ::1], {_CUBE}, {_CUBE}, {_CUBE}, {_ROW}))"
# (module, kernel) → the types that it is called with; of all kernels it takes longest to compile, about 15 seconds
SLOWEST_KERNELS = {
    ("stirred.mechanisms.topdown.solve.descent", "descend"): (
        f"({_MATRIX}, {_MATRIX}, {_MATRIX}, {_ROW}, {_NESTING}, {_CUBE}, {_MATRIX}, {_ROW}, {_BOUNDS}, "
        "float64, float64, int64)"
    ),
}


_compile_lock = Lock()

# Compiling takes a minute on a new machine and nothing afterwards: whoever waits is told once, if it takes long.

COMPILING = "compiling, first time only"
QUIET_SECONDS = 1.0  # of compiling that nobody is told about
_told: list[Callable[[], None]] = []  # what is called when compiling takes longer


@contextmanager
def tell_compiling(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` once, from another thread, if kernels that no cache has are compiled for long in the block."""
    _told.append(tell)
    try:
        yield
    finally:
        if tell in _told:
            _told.remove(tell)


class CompileClock:
    """Adds up the seconds of compiling and tells those who wait; loading from the cache is no compiling."""

    def __init__(self) -> None:
        self.spent = 0.0
        self._depth = 0
        self._began = 0.0
        self._timer: Timer | None = None

    def begin(self) -> None:
        """Start the clock; kernels within kernels are compiled in the time of the outer one."""
        self._depth += 1
        if self._depth == 1:
            self._began = monotonic()
            self._timer = Timer(max(0.0, QUIET_SECONDS - self.spent), self._tell)
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        """Stop the clock."""
        self._depth -= 1
        if self._depth == 0:
            self.spent += monotonic() - self._began
            if self._timer is not None:
                self._timer.cancel()

    @staticmethod
    def _tell() -> None:
        while _told:
            _told.pop()()


_clock = CompileClock()


@cache
def _listen_to_compiler() -> None:
    """Let the compiler start and stop the clock."""
    events: Any = importlib.import_module("numba.core.event")

    class ClockListener(events.Listener):  # type: ignore[misc]
        def on_start(self, event: object) -> None:  # noqa: ARG002
            _clock.begin()

        def on_end(self, event: object) -> None:  # noqa: ARG002
            _clock.end()

    events.register("numba:compile", ClockListener())


class Kernel:
    """A function over arrays that is compiled when it is first called, by a caller or by another kernel."""

    def __init__(self, function: Callable[..., object]) -> None:
        update_wrapper(self, function)
        self._dispatcher: Any = None

    def __call__(self, *arguments: object) -> object:
        return (self._dispatcher or self._compile())(*arguments)

    def __getattr__(self, name: str) -> Any:
        # numba asks a global of a kernel for ``_numba_type_``: so kernels that call kernels find the compiled one
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._dispatcher or self._compile(), name)

    def __reduce__(self) -> str:
        return str(self.__qualname__)

    def _compile(self) -> Any:
        import numba

        with _compile_lock:
            if self._dispatcher is None:
                _listen_to_compiler()
                function = self.__wrapped__
                try:
                    made = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
                    _mark_cache(made, function)
                except RuntimeError:  # a kernel typed at a prompt has no file, so it cannot be cached
                    made = numba.njit(nogil=True, error_model="numpy")(function)
                self._dispatcher = made
        return self._dispatcher


def _mark_cache(made: Any, function: Callable[..., object]) -> None:
    """Let the cache of a kernel be out of date when anything that is compiled into it has changed.

    Numba itself looks at the kernel's own file; the kernels it calls and the numbers it names may come from others. The
    version is the first thing it compares: the rest of an old index may name types that no longer exist.
    """
    file = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if file is not None:
        file._version = (file._version, *list_dependencies(function))


def list_dependencies(function: Callable[..., object]) -> tuple[str, ...]:
    """Return what a compiled kernel depends on: the files of its kernels and the global numbers they name.

    >>> any("kernels.py" in part for part in list_dependencies(list_dependencies))
    True
    """
    parts, seen, waiting = {_stamp_file(__file__)}, set(), [function]
    while waiting:
        one = waiting.pop()
        code, known = one.__code__, one.__globals__
        if code in seen:
            continue
        seen.add(code)
        parts.add(_stamp_file(code.co_filename))
        for name in code.co_names:
            value = known.get(name)
            if isinstance(value, Kernel | FourWide):
                waiting.append(value.__wrapped__)
            elif isinstance(value, Number | str | tuple):
                parts.add(f"{name} = {value!r}")
    return tuple(sorted(parts))


def _stamp_file(name: str) -> str:
    try:
        found = Path(name).stat()
    except OSError:  # typed at a prompt
        return name
    return f"{name} {found.st_mtime_ns} {found.st_size}"


def compile_kernel(function: F) -> F:
    """Compile a pure kernel over arrays; floating point stays in the order written.

    >>> @compile_kernel
    ... def double(x): return 2 * x
    >>> int(double(21))
    42
    """
    return cast("F", Kernel(function))


class FourWide:
    """An operation of kernels on four neighbouring numbers; called outside of them it does the same with NumPy."""

    def __init__(self, function: Callable[..., None]) -> None:
        update_wrapper(self, function)
        self._type: Any = None

    def __call__(self, *arguments: Any) -> None:
        self.__wrapped__(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name != "_numba_type_":  # numba asks a global of a kernel for its type
            raise AttributeError(name)
        with _compile_lock:
            self._type = self._type or _four_wide(self.__name__)
        return self._type


def _four_wide(name: str) -> Any:
    """Return the type by which numba knows the operation: arrays and places, the first array is written."""
    from llvmlite import ir
    from numba import types
    from numba.core.registry import cpu_target
    from numba.extending import intrinsic

    four = ir.VectorType(ir.DoubleType(), 4)

    def made(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        places, numbers = [], []
        for at in range(0, len(arguments), 2):
            array = context.make_array(signature.args[at])(context, builder, arguments[at])
            places.append(builder.bitcast(builder.gep(array.data, [arguments[at + 1]]), ir.PointerType(four)))
            numbers.append(builder.load(places[-1]))
            numbers[-1].align = 8  # four numbers begin anywhere
        value = numbers[1] if len(numbers) == 2 else builder.fmul(numbers[1], numbers[2])
        if name != "scale_four":
            value = builder.fadd(numbers[0], value)
        builder.store(value, places[0]).align = 8
        return context.get_dummy_value()

    def typed(_: Any, y: Any, i: Any, x: Any, k: Any) -> Any:  # noqa: ARG001
        return types.void(y, types.int64, x, types.int64), made

    def typed_three(_: Any, y: Any, i: Any, x: Any, k: Any, w: Any, j: Any) -> Any:  # noqa: ARG001
        return types.void(y, types.int64, x, types.int64, w, types.int64), made

    operation = intrinsic(typed if name == "add_four" else typed_three)
    cpu_target.typing_context.refresh()
    return cpu_target.typing_context.resolve_value_type(operation)


@FourWide
def add_four(y: Any, i: int, x: Any, k: int) -> None:
    """Add four numbers in place: y[i : i + 4] += x[k : k + 4]."""
    y[i : i + 4] += x[k : k + 4]


@FourWide
def scale_four(y: Any, i: int, x: Any, k: int, w: Any, j: int) -> None:
    """Write four products: y[i : i + 4] = x[k : k + 4] · w[j : j + 4]."""
    y[i : i + 4] = x[k : k + 4] * w[j : j + 4]


@FourWide
def add_products(y: Any, i: int, x: Any, k: int, w: Any, j: int) -> None:
    """Add four products in place: y[i : i + 4] += x[k : k + 4] · w[j : j + 4]."""
    y[i : i + 4] += x[k : k + 4] * w[j : j + 4]


def kernels_are_loaded() -> bool:
    """Return whether this process has imported numba already; results never depend on it."""
    return "numba" in sys.modules


def compile_slowest() -> None:
    """Compile the slowest kernels, or load them from the cache, before there are records to call them with."""
    for (module, name), types in SLOWEST_KERNELS.items():
        getattr(importlib.import_module(module), name).compile(types)
