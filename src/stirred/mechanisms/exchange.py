"""How released records changed places: the law of one record, for those who correct for it or try to undo it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    r"""Records of a stratum exchange the values of some variables; rate, strata and variables are public.

    In a stratum of n records each is selected with chance ``selected(n)`` $= q$, and a selected record takes the value t
    with chance $n_t / (n - 1)$ if its own is another one.
    """

    record_type: str
    match: tuple[str, ...]
    moving: tuple[str, ...]
    selected: Callable[[ArrayLike], NDArray[np.float64]]
