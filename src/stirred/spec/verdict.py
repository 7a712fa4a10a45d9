"""The answer to a question about proofs: yes, no or unknown, with the rule used."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from stirred.spec.verdicts.derivation import Derivation


class Answer(Enum):
    """The three answers to a question about proofs."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer with its reason and its derivation; only a proved yes is truthy.

    >>> bool(Verdict.unknown("no rule relates the two"))
    False
    """

    answer: Answer
    because: str
    derivation: Derivation | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def yes(because: str, derivation: Derivation | None = None) -> "Verdict":
        return Verdict(Answer.YES, because, derivation)

    @staticmethod
    def no(because: str, derivation: Derivation | None = None) -> "Verdict":
        return Verdict(Answer.NO, because, derivation)

    @staticmethod
    def unknown(because: str) -> "Verdict":
        return Verdict(Answer.UNKNOWN, because)

    @property
    def why(self) -> str:
        """Return the derivation as a short tree; for "unknown" the reason alone."""
        return str(self.derivation) if self.derivation is not None else self.because

    def __bool__(self) -> bool:
        return self.answer is Answer.YES

    def __str__(self) -> str:
        first = f"{self.answer.value}: {self.because}"
        if self.derivation is None or not (self.derivation.premises or self.derivation.witness):
            return first
        return "\n".join([first, *(f"  {line}" for line in self.derivation.lines())])


def combine_verdicts(verdicts: Sequence[Verdict], otherwise: str, *, rule: str = "all of") -> Verdict:
    """Return yes if all are yes, no if one is no, else unknown, with the reason of the first that decides.

    >>> str(combine_verdicts([Verdict.yes("a"), Verdict.unknown("b")], "nothing is asked"))
    'unknown: b'
    """
    for answer in (Answer.NO, Answer.UNKNOWN):
        for verdict in verdicts:
            if verdict.answer is answer:
                return verdict
    because = "; ".join(dict.fromkeys(v.because for v in verdicts)) or otherwise
    steps = tuple(v.derivation for v in verdicts if v.derivation is not None)
    if len(steps) == 1 == len(verdicts):
        return Verdict.yes(because, steps[0])
    return Verdict.yes(
        because, Derivation(rule=rule, claim=because if not steps else "all of these hold", premises=steps)
    )
