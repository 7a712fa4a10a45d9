"""Read records before the swap: their keyed digest and the fingerprints of what the swap keeps, in one pass."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.chance.multiset import MultisetDigest
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint, KeptReader, MemberReader, Scatter
from stirred.mechanisms.swapping.records.columns import Codes, Column
from stirred.mechanisms.swapping.records.digest import CodeWords, digest_words, make_hashers
from stirred.mechanisms.swapping.records.members import Members

ROWS_PER_DIGEST = 1 << 16  # rows digested together: their words stay in the cache


@dataclass(frozen=True, slots=True)
class SurveyPart:
    """Digest sum and fingerprints of some records."""

    total: MultisetDigest
    prints: list[Fingerprint]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFingerprints:
    """The digest and the fingerprints of the records before the swap."""

    digest: bytes
    homes: list[Fingerprint]  # of the kept tables, and at the end of identifiers with all that is held
    people: list[Fingerprint]  # of each linked type, with the identifiers they belong to


@dataclass(frozen=True, slots=True)
class HomeSurvey:
    """Digest records of the swapped type and take their fingerprints."""

    key: Key
    columns: Mapping[str, Column]
    ids: NDArray[np.uint64]
    words: Mapping[str, CodeWords]
    kept: KeptReader

    @staticmethod
    def of(
        key: Key,
        columns: Mapping[str, Column],
        ids: NDArray[np.uint64],
        names: Sequence[str],
        kept: KeptReader,
    ) -> "HomeSurvey":
        """Prepare to read these records."""
        both = make_hashers(key)
        words = {name: CodeWords.of(columns[name], both) for name in names}
        return HomeSurvey(key, columns, ids, words, kept)

    def digest_slice(self, rows: slice) -> SurveyPart:
        """Digest a slice of the records."""
        total = self.key.multiset()
        variables = ((words, self.columns[name].codes[rows]) for name, words in self.words.items())
        total.update([self.ids[rows], *digest_words(variables, rows.stop - rows.start)])
        return SurveyPart(total, self.kept.prints(self.columns, rows, self.ids[rows]))


@dataclass(frozen=True, slots=True)
class MemberSurvey:
    """Digest linked records, each with the identifier of its household, and take their fingerprint."""

    key: Key
    words: Mapping[str, CodeWords]
    reader: MemberReader

    @staticmethod
    def of_members(key: Key, group: Members, scatter: Scatter) -> "MemberSurvey":
        """Prepare to read packed members."""
        both = make_hashers(key)
        words = {
            digit.name: CodeWords.of_digit(digit, both, holds_empty=digit.name in group.empty)
            for digit in group.digits
        }
        return MemberSurvey(key, words, MemberReader.of(scatter, group))

    @staticmethod
    def of_columns(
        key: Key, columns: Mapping[str, Column], names: Sequence[str], scatter: Scatter
    ) -> "MemberSurvey":
        """Prepare to read members as columns."""
        both = make_hashers(key)
        words = {name: CodeWords.of(columns[name], both) for name in names}
        return MemberSurvey(key, words, MemberReader(scatter, scatter.words(columns, names)))

    def digest_slice(self, codes: Mapping[str, Codes], owners: NDArray[np.uint64]) -> SurveyPart:
        """Digest some members, from their codes and the identifiers of their households."""
        total = self.key.multiset()
        if owners.size:
            variables = ((words, codes[name]) for name, words in self.words.items())
            total.update([owners, *digest_words(variables, owners.size)])
        return SurveyPart(total, [self.reader.prints(codes, owners)])


def add_parts(key: Key, parts: Iterable[SurveyPart], number: int) -> tuple[MultisetDigest, list[Fingerprint]]:
    """Add up the digests and the fingerprints of all parts."""
    whole, prints = key.multiset(), [Fingerprint() for _ in range(number)]
    for part in parts:
        whole.merge(part.total)
        prints = [a + b for a, b in zip(prints, part.prints, strict=True)]
    return whole, prints
