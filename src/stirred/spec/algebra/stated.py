"""What the rules read of a specification.

A specification calls these rules (`+`, `given`, `per`, `implies`), so they cannot import it. They take anything with its
fields, and give back the same class.
"""

from dataclasses import Field
from typing import Any, ClassVar, Protocol, TypeVar

from stirred.spec.algebra.statement import BudgetFunction, Evidence, Part
from stirred.spec.domain import Domain
from stirred.spec.invariants.margins import Margin
from stirred.spec.multiverse import Multiverse
from stirred.spec.numbers.budget import Bound, Budget
from stirred.spec.outputs.divergences import OutputPremetric
from stirred.spec.premetrics import InputPremetric


class SpecificationFields(Protocol):
    """The fields of a `Specification` that the rules read; the class says what each of them means."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def domain(self) -> Domain: ...
    @property
    def multiverse(self) -> Multiverse: ...
    @property
    def input_premetric(self) -> InputPremetric: ...
    @property
    def output_premetric(self) -> OutputPremetric: ...
    @property
    def budget(self) -> Budget: ...
    @property
    def evidence(self) -> Evidence: ...
    @property
    def bounds(self) -> tuple[Bound, ...]: ...
    @property
    def untouched(self) -> tuple[str, ...]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def parts(self) -> tuple[Part, ...]: ...
    @property
    def varies(self) -> BudgetFunction | None: ...
    @property
    def measures(self) -> tuple[Margin, ...]: ...
    @property
    def released(self) -> tuple[Margin, ...]: ...
    @property
    def views(self) -> tuple[Margin, ...]: ...
    @property
    def statements(self) -> tuple[Part, ...]: ...


Spec = TypeVar("Spec", bound=SpecificationFields)
