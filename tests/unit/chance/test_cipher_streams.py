"""The bits are AES-256's, at the place they should be, however they are asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.chance import Key, Stream
from stirred.chance.streams import SLACK_BYTES, BlockCipher, Keystream
from stirred.errors import InputError

# NIST SP 800-38A, F.5.5 (CTR-AES256.Encrypt): key, first counter, plaintext and ciphertext of four blocks
KEY = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
COUNTER = 0xF0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF
PLAIN = bytes.fromhex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
CODED = bytes.fromhex(
    "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
    "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
)


def test_keystream_against_the_published_vector() -> None:
    buffer = bytearray(64 + SLACK_BYTES)
    Keystream(KEY, COUNTER).fill(buffer, 64)
    assert bytes(a ^ b for a, b in zip(PLAIN, buffer[:64], strict=True)) == CODED


def test_single_blocks_against_the_published_vector() -> None:
    # FIPS 197, Appendix C.3
    row = (
        np.frombuffer(bytes.fromhex("00112233445566778899aabbccddeeff"), dtype=np.uint64).reshape(1, 2).copy()
    )
    BlockCipher(bytes(range(32))).encrypt(row)
    assert row.tobytes().hex() == "8ea2b7ca516745bfeafc49904b496089"


@settings(deadline=None)
@given(st.integers(0, 300_000), st.integers(0, 300))
def test_any_place_can_be_read_alone(position: int, size: int) -> None:
    whole = np.frombuffer(Key.for_tests(1).stream("whole").bytes(300_400), dtype=np.uint8)
    assert (
        Key.for_tests(1).stream("whole").at(position).bytes(size)
        == whole[position : position + size].tobytes()
    )


def test_blocks_of_a_stream_are_its_keystream() -> None:
    stream = Key.for_tests(1).stream("s")
    numbers = np.array([0, 7, 3, 2**60, 7], dtype=np.uint64)
    for number, block in zip(numbers, stream.blocks(numbers), strict=True):
        assert stream.at(16 * int(number)).bytes(16) == block.tobytes()


def test_words_follow_each_other_and_are_aligned() -> None:
    a, b = (Key.for_tests(1).stream("s") for _ in range(2))
    assert np.concatenate([a.words32(5), a.words32(3)]).tobytes() == b.words32(8).tobytes()
    a.bytes(1)
    assert a.words64(1).tobytes() == b.at(40).bytes(8)


@pytest.mark.parametrize("n", [0, 1, 2, 4095, 4096, 4097, 10_000])
def test_blocks_do_not_depend_on_the_batch(n: int) -> None:
    key = Key.for_tests(1)
    ids = np.arange(n, dtype=np.uint64) * np.uint64(2**40 + 1)
    whole = key.blocks(("stratum", 1), ids)
    assert whole.shape == (n, 2)
    assert np.array_equal(key.blocks(("stratum", 1), ids[::-1])[::-1], whole)
    for i in {0, n // 2, n - 1} - {-1} if n else set():
        assert np.array_equal(key.blocks(("stratum", 1), ids[i : i + 1])[0], whole[i])
    assert len(np.unique(whole, axis=0)) == n


def test_blocks_refuse_wrong_room() -> None:
    with pytest.raises(InputError):
        Key.for_tests(1).blocks("a", np.arange(3, dtype=np.uint64), out=np.empty((2, 2), dtype=np.uint64))


def test_streams_refuse_negative_places_and_short_secrets() -> None:
    with pytest.raises(InputError):
        Key.for_tests(1).stream("a").at(-1)
    with pytest.raises(InputError):
        Stream(bytes(32))


def test_extensions_of_positions_and_levels_differ() -> None:
    stream = Key.for_tests(1).stream("a")
    found = {stream.extension(position, level) for position in (0, 4, 1 << 67) for level in range(3)}
    assert len(found) == 9
