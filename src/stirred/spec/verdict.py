"""The answer to a question about proofs: yes, no or unknown, with the rule used."""

from dataclasses import dataclass
from enum import Enum


class Answer(Enum):
    """Three answers; "unknown" is one of them."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer with its reason; only a proved yes is truthy.

    >>> bool(Verdict.unknown("no rule relates the two"))
    False
    """

    answer: Answer
    because: str

    @staticmethod
    def yes(because: str) -> "Verdict":
        return Verdict(Answer.YES, because)

    @staticmethod
    def no(because: str) -> "Verdict":
        return Verdict(Answer.NO, because)

    @staticmethod
    def unknown(because: str) -> "Verdict":
        return Verdict(Answer.UNKNOWN, because)

    def __bool__(self) -> bool:
        return self.answer is Answer.YES

    def __str__(self) -> str:
        return f"{self.answer.value}: {self.because}"


def all_of(verdicts: "list[Verdict]", otherwise: str) -> Verdict:
    """Yes if all are yes; no if one is no; else unknown. The first that decides gives the reason.

    >>> str(all_of([Verdict.yes("a"), Verdict.unknown("b")], "nothing is asked"))
    'unknown: b'
    """
    for answer in (Answer.NO, Answer.UNKNOWN):
        for verdict in verdicts:
            if verdict.answer is answer:
                return verdict
    return Verdict.yes("; ".join(dict.fromkeys(v.because for v in verdicts)) or otherwise)
