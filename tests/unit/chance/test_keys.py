"""A key is secret, is bound to its run, and is sent nowhere by accident."""

import os
import pickle
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.chance import Key, bernoulli
from stirred.chance.keys import encode_name
from stirred.errors import InputError, PrivacyError, StirredError

PARTS = st.one_of(st.text(max_size=4), st.binary(max_size=4), st.integers(-(2**70), 2**70))


@settings(deadline=None)
@given(st.lists(PARTS, max_size=4), st.lists(PARTS, max_size=4))
def test_names_are_injective(one: list[str | bytes | int], other: list[str | bytes | int]) -> None:
    same = [(type(part), part) for part in one] == [(type(part), part) for part in other]
    assert (encode_name(tuple(one)) == encode_name(tuple(other))) == same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b"), ("ab",)),
        (("a", 1), ("a1",)),
        ((1,), ("1",)),
        ((1,), (-255,)),
        ((b"a",), ("a",)),
        ((), ("",)),
        ((127,), (128,)),
    ],
)
def test_names_that_look_alike_give_other_bits(
    one: tuple[str | int, ...], other: tuple[str | int, ...]
) -> None:
    key = Key.for_tests(1)
    assert key.stream(*one).bytes(32) != key.stream(*other).bytes(32)
    assert key.bind(*one) != key.bind(*other)


@pytest.mark.parametrize("part", [True, 1.5, None, ("a",)])
def test_names_refuse_what_has_no_canonical_form(part: object) -> None:
    with pytest.raises(InputError):
        Key.for_tests(1).stream(part)  # type: ignore[arg-type]


def test_numpy_integers_name_the_same_stream() -> None:
    key = Key.for_tests(1)
    assert key.stream("s", np.int32(7)).bytes(16) == key.stream("s", 7).bytes(16)  # type: ignore[arg-type]


def test_purposes_do_not_meet() -> None:
    key = Key.for_tests(1)
    found = [
        key.stream("x").bytes(32),
        key.bind("x").stream().bytes(32),
        key.digest(b"x"),
        key.blocks("x", np.arange(2, dtype=np.uint64)).tobytes(),
        key.blocks("x", np.arange(2, dtype=np.uint64), counter=1).tobytes(),
        key.multiset_digest([np.arange(2)]),
    ]
    assert len(set(found)) == len(found)


def test_only_keys_for_tests_are_not_private() -> None:
    assert Key.fresh().private
    assert Key.fresh().bind("swap").private
    assert not Key.for_tests(1).private
    assert not Key.for_tests(1).bind("swap").private
    assert Key.fresh() != Key.fresh()
    assert Key.for_tests(1) == Key.for_tests(1) != Key.for_tests(2)


def test_a_key_file_is_for_its_owner_alone_and_is_not_overwritten(tmp_path: Path) -> None:
    key, path = Key.fresh(), tmp_path / "run.key"
    key.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Key.load(path) == key
    assert Key.load(path).private
    with pytest.raises(PrivacyError):
        Key.fresh().save(path)
    assert Key.load(path) == key
    path.chmod(0o644)
    with pytest.raises(PrivacyError, match="others may read"):
        Key.load(path)


def test_a_key_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write a key"):
        Key.fresh().save(tmp_path / "no such folder" / "run.key")
    assert not list(tmp_path.iterdir())


def test_a_saved_test_key_stays_a_test_key(tmp_path: Path) -> None:
    Key.for_tests(3).save(tmp_path / "k")
    assert not Key.load(tmp_path / "k").private


@pytest.mark.parametrize(
    "text", ["", "hello", "stirred-key-1 private 00ff", "stirred-key-1 other " + "00" * 32, "00" * 32, "é"]
)
def test_a_damaged_key_file_is_named_and_not_shown(tmp_path: Path, text: str) -> None:
    path = tmp_path / "k"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(InputError, match="is not a key file") as caught:
        Key.load(path)
    assert "00ff" not in str(caught.value)


def test_a_missing_key_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Key.fresh\(\).save"):
        Key.load(tmp_path / "none")


def test_nothing_secret_is_shown(tmp_path: Path) -> None:
    key = Key.fresh()
    key.save(tmp_path / "k")
    secret = (tmp_path / "k").read_text().split()[-1]
    shown = [repr(key), str(key), f"{key}", key.fingerprint, repr(key.stream("a")), repr(key.multiset())]
    with pytest.raises(PrivacyError) as caught:
        pickle.dumps(key)
    shown.append(str(caught.value))
    with pytest.raises(StirredError) as length:
        Key(bytes.fromhex(secret)[:31])
    shown.append(str(length.value))
    for text in shown:
        assert secret[:8] not in text
        assert not hasattr(key, "__dict__")


def test_workers_get_the_key_of_one_run() -> None:
    run = Key.fresh().bind("swapping", "{}", b"digest")
    again = pickle.loads(pickle.dumps(run))
    assert again == run
    assert again.private
    assert again.stream("a").bytes(8) == run.stream("a").bytes(8)


def test_anything_changed_in_the_run_gives_other_bits() -> None:
    key = Key.for_tests(1)
    runs = [
        key.bind("topdown", '{"rho": "1"}', b"census"),
        key.bind("topdown", '{"rho": "2"}', b"census"),
        key.bind("topdown", '{"rho": "1"}', b"census, one record changed"),
        key.bind("swapping", '{"rho": "1"}', b"census"),
        key.bind("topdown", '{"rho": "1"}', b"census").bind("replicate", 1),
    ]
    assert len({run.stream("county", 1).bytes(16) for run in runs}) == len(runs)


def test_floats_are_refused() -> None:
    with pytest.raises(InputError, match="exact"):
        bernoulli(Key.for_tests(1).stream("a"), 0.05, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o610, 0o604, 0o602])
def test_a_key_file_that_the_group_or_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "run.key"
    before = os.umask(0)
    try:
        Key.fresh().save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(mode)
    with pytest.raises(PrivacyError, match="others may read"):
        Key.load(path)


@pytest.mark.parametrize("secret", [bytes(32), b"\xff" * 32, b"secret" * 5 + b"se"])
def test_a_key_that_is_no_secret_is_not_private(secret: bytes, tmp_path: Path) -> None:
    with pytest.raises(PrivacyError, match="no secret"):
        Key(secret)
    place = tmp_path / "k"
    place.write_text(f"stirred-key-1 private {secret.hex()}\n")
    place.chmod(0o600)
    with pytest.raises(PrivacyError, match="no secret"):
        Key.load(place)


@pytest.mark.parametrize("seed", [0, 1, 5, 4242, -3])
def test_a_key_for_tests_that_is_called_private_is_refused(seed: int, tmp_path: Path) -> None:
    place = tmp_path / "k"
    Key.for_tests(seed).save(place)
    assert not Key.load(place).private
    place.write_text(place.read_text().replace("tests", "private"))
    with pytest.raises(PrivacyError, match="called private"):
        Key.load(place)


@pytest.mark.parametrize("size", [0, 1, 47, 110, 111, 112, 127, 128, 129, 1000])
def test_another_process_computes_most_of_a_digest_without_the_key(size: int) -> None:
    """HMAC of the standard library is the oracle; blocks and padding end everywhere in a block."""
    key, body = Key.for_tests(3), bytes(range(251)) * 4
    start = pickle.loads(pickle.dumps(key.begin_digest()))
    inner = start.hash_parts([[body[: size // 2], body[size // 2 : size]], [], [b"next"]])
    assert key.end_digest(inner) == key.digest(body[:size], b"", b"next")
    assert key.end_digest(inner) != key.digest(body[:size] + b"next", b"", b"")


def test_what_another_process_gets_shows_nothing_of_the_key() -> None:
    key = Key.fresh()
    start = key.begin_digest()
    assert key._secret not in pickle.dumps(start)
    assert "state" not in repr(start)
