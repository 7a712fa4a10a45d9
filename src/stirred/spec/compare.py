"""Two specifications side by side: five verdicts, each with its reason, and an overall one only where it is proved."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stirred.spec.specification import Specification


class Relation(Enum):
    """How the first stands to the second."""

    STRONGER = "stronger"
    WEAKER = "weaker"
    EQUAL = "equal"
    INCOMPARABLE = "incomparable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One verdict of a comparison, with its sentence."""

    relation: Relation
    because: str

    def __str__(self) -> str:
        return f"{self.relation.value}: {self.because}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How the first specification stands to the second, part by part and overall."""

    first: "Specification"
    second: "Specification"
    parts: Mapping[str, Finding]  # domain, multiverse, input premetric, output premetric, budget
    overall: Finding
    warnings: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The overall verdict in one sentence."""
        return self.overall.because


def compare(first: "Specification", second: "Specification") -> Comparison:
    """Five verdicts on how ``first`` stands to ``second``."""
    nothing = Finding(Relation.UNKNOWN, "not yet decided")
    names = ("domain", "multiverse", "input premetric", "output premetric", "budget")
    return Comparison(first=first, second=second, parts=dict.fromkeys(names, nothing), overall=nothing)
