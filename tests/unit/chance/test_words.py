"""Values as words: one rule for every type, wherever a value is stored."""

import numpy as np
import pyarrow as pa
import pytest

from stirred.chance.words import Hasher, combine_chunks, number_words
from stirred.errors import DataError


def test_all_nan_are_one_value() -> None:
    patterns = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001], np.uint64)
    words = number_words(pa.array(patterns.view(np.float64)))
    assert len(set(words.tolist())) == 1


def test_zero_has_no_sign() -> None:
    assert number_words(pa.array([0.0, -0.0])).tolist() == [0, 0]


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.date64(), pa.time32("s"), pa.timestamp("us"), pa.duration("ns")]
)
def test_times_are_whole_numbers(kind: pa.DataType) -> None:
    whole = pa.int32() if kind.bit_width == 32 else pa.int64()
    assert number_words(pa.array([86_400_000, None], whole).cast(kind)).tolist() == [86_400_000, 0]


def test_a_type_without_a_rule_is_refused() -> None:
    with pytest.raises(DataError, match="cannot be compared"):
        Hasher().words(pa.array([[1], [2]]))


def test_a_column_in_chunks_is_one_array() -> None:
    column = pa.chunked_array([["a"], [], ["b", None]])
    assert combine_chunks(column).to_pylist() == ["a", "b", None]
    assert combine_chunks(pa.chunked_array([], pa.string())).to_pylist() == []
