"""A fast reproducible generator for kernels: splitmix, with seed and step from a chance stream.

No guarantee depends on synthetic records, so speed matters most; every block group has its own pair of 64-bit words
from the key, so its records do not depend on order, chunks or threads.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel

Dice = NDArray[np.uint64]  # [position, step]; the step is odd


@compile_kernel
def draw_word(dice: Dice) -> int:
    """Return the next 64 bits (Steele, Lea, Flood 2014: splitmix)."""
    dice[0] += dice[1]
    z = dice[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))  # type: ignore[no-any-return]


@compile_kernel
def draw_unit(dice: Dice) -> float:
    """Return a uniform number in [0, 1)."""
    return (draw_word(dice) >> np.uint64(11)) * 1.1102230246251565e-16  # 2⁻⁵³


@compile_kernel
def draw_below(dice: Dice, bound: int) -> int:
    """Return a uniform integer in 0..bound-1."""
    return int(draw_unit(dice) * bound)


@compile_kernel
def draw_normal(dice: Dice) -> float:
    """Return a standard normal number (Box and Muller 1958)."""
    return np.sqrt(-2.0 * np.log(1.0 - draw_unit(dice))) * np.cos(6.283185307179586 * draw_unit(dice))  # type: ignore[no-any-return]


@compile_kernel
def pick_share(limits: NDArray[np.float64], u: float) -> int:
    """Return the first position whose cumulative share exceeds u."""
    last = limits.size - 1
    i = 0
    while i < last and u >= limits[i]:
        i += 1
    return i


@compile_kernel
def mix_word(value: int, salt: int) -> float:
    """Return a uniform number that depends only on a word and a salt."""
    z = np.uint64(value) ^ (np.uint64(salt + 1) * np.uint64(0x9E3779B97F4A7C15))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 1.1102230246251565e-16
