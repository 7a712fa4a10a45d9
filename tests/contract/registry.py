"""The mechanisms that keep the contract: add a line here and the whole suite runs over yours.

A case makes the mechanism anew for each test. Its match, swap and query variables are those of the suite's censuses (see
``test_contract.py``): state, county, tract; size, tenure; persons with age and sex.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.swapping import PermutationSwapping

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> Any:
    """A module of the examples folder, which is no package, loaded once."""
    module_name = f"stirred_examples_{name}"
    if module_name not in sys.modules:
        spec = spec_from_file_location(module_name, EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[module_name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[module_name])
    return sys.modules[module_name]


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism of the suite; ``make`` gives a fresh one."""

    name: str
    make: Callable[[], Mechanism]


CASES = [
    Case("own-mechanism", lambda: example("own_mechanism").NoisyCounts()),
    Case(
        "permutation-swapping",
        lambda: PermutationSwapping(match=["state", "size"], swap=["county", "tract"], rate="1/2"),
    ),
    Case(
        "permutation-swapping-tables",
        lambda: PermutationSwapping(
            match=["state", "size"],
            swap=["county", "tract"],
            rate="1/2",
            microdata=False,
            tables=[["county", "tenure"]],
        ),
    ),
]
