"""The draw: strata kept, nobody fixed, nobody alone, and nothing that depends on order, chunks or threads."""

from fractions import Fraction

import numpy as np
import pytest

from stirred.chance import Key
from stirred.chance.uniform import threshold
from stirred.engine import Local
from stirred.mechanisms.swap import moves as moves_module
from stirred.mechanisms.swap.moves import Moves, draw_moves, multiply_high
from stirred.mechanisms.swap.strata import NO_STRATUM

RATE = Fraction(1, 5)


def drawn(
    ids: np.ndarray, strata: np.ndarray, rate: Fraction = RATE, workers: int = 1, seed: int = 1
) -> Moves:
    return draw_moves(
        Key.for_tests(seed),
        ids=ids.astype(np.uint64),
        strata=strata.astype(np.uint32),
        rate=rate,
        engine=Local(workers=workers),
    )


def as_map(ids: np.ndarray, moves: Moves) -> dict[int, int]:
    return dict(zip(ids[moves.receivers].tolist(), ids[moves.givers].tolist(), strict=True))


@pytest.fixture
def records() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    strata = np.sort(rng.zipf(1.4, 50_000) % 700)
    return rng.permutation(10**7)[: strata.size], np.unique(strata, return_inverse=True)[1]


def test_a_draw_deranges_within_strata_and_leaves_nobody_alone(
    records: tuple[np.ndarray, np.ndarray],
) -> None:
    ids, strata = records
    moves = drawn(ids, strata)
    assert moves.receivers.size > 5_000
    assert (strata[moves.receivers] == strata[moves.givers]).all()
    assert (moves.receivers != moves.givers).all()
    assert np.array_equal(np.sort(moves.receivers), np.sort(moves.givers))
    assert np.unique(moves.receivers).size == moves.receivers.size
    assert (np.bincount(strata[moves.receivers]) != 1).all()


def test_rows_chunks_and_threads_decide_nothing(
    records: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, strata = records
    expected = as_map(ids, drawn(ids, strata))
    assert as_map(ids, drawn(ids, strata, workers=3)) == expected
    order = np.random.default_rng(8).permutation(ids.size)
    assert as_map(ids[order], drawn(ids[order], strata[order])) == expected
    renamed = strata.max() - strata  # the codes of strata are names only
    assert as_map(ids, drawn(ids, renamed)) == expected
    monkeypatch.setattr(moves_module, "ROWS_PER_CIPHER_CALL", 977)
    assert as_map(ids, drawn(ids, strata, workers=2)) == expected
    assert as_map(ids, drawn(ids, strata, seed=2)) != expected


def test_other_strata_do_not_change_a_stratums_draw(records: tuple[np.ndarray, np.ndarray]) -> None:
    ids, strata = records
    whole = as_map(ids, drawn(ids, strata))
    mine = strata % 2 == 0
    alone = as_map(ids[mine], drawn(ids[mine], np.unique(strata[mine], return_inverse=True)[1]))
    chosen = set(ids[mine].tolist())
    assert alone == {a: b for a, b in whole.items() if a in chosen}


@pytest.mark.parametrize("n", [0, 1])
def test_no_record_or_one_record(n: int) -> None:
    assert drawn(np.arange(n), np.zeros(n)).receivers.size == 0


def test_strata_of_one_never_move_and_strata_of_two_exchange() -> None:
    ids = np.arange(3_000)
    strata = np.concatenate([np.arange(1_000), 1_000 + np.repeat(np.arange(1_000), 2)])
    moves = drawn(ids, strata, Fraction(1, 2))
    assert (moves.receivers >= 1_000).all()
    exchanged = as_map(ids, moves)
    assert len(exchanged) > 300
    assert all(exchanged[b] == a for a, b in exchanged.items())


def test_records_that_take_no_part_never_move() -> None:
    strata = np.zeros(2_000, np.uint32)
    strata[::2] = NO_STRATUM
    moves = drawn(np.arange(2_000), strata, Fraction(9, 10))
    assert moves.receivers.size > 800
    assert (moves.receivers % 2 == 1).all()
    assert (moves.givers % 2 == 1).all()


def test_rate_zero_moves_nobody_and_rate_one_everybody() -> None:
    strata = np.repeat(np.arange(50), 7)
    assert drawn(np.arange(350), strata, Fraction(0)).receivers.size == 0
    assert drawn(np.arange(350), strata, Fraction(1)).receivers.size == 350


class Scripted:
    """Words from a script where a test needs a rare event, from a key everywhere else."""

    def __init__(self, script: dict[tuple[str, int, int], tuple[int, int]]) -> None:
        self.script, self.key = script, Key.for_tests(3)
        self.asked: list[tuple[str, int]] = []

    def blocks(self, label: str, ids: np.ndarray, *, counter: int = 0) -> np.ndarray:
        words = self.key.blocks(label, ids, counter=counter).copy()
        self.asked.append((label, counter))
        for i, identifier in enumerate(ids.tolist()):
            if (label, identifier, counter) in self.script:
                words[i] = self.script[label, identifier, counter]
        return words


def scripted(
    script: dict[tuple[str, int, int], tuple[int, int]], n: int, rate: Fraction
) -> tuple[Moves, Scripted]:
    words = Scripted(script)
    moves = draw_moves(words, ids=np.arange(n, dtype=np.uint64), strata=np.zeros(n, np.uint32), rate=rate)
    return moves, words


def test_a_tie_with_the_threshold_is_decided_by_the_digits_that_follow() -> None:
    third = Fraction(1, 3)
    floor = threshold(third).first
    assert floor == 0x5555555555555555
    high = 2**64 - 1
    # 1/3 has the digits 0x5555… for ever, so after a tie a word below 0x5555… selects and one above does not
    for following, selected in ((floor - 1, True), (floor + 1, False), (0, True), (high, False)):
        script = {("swap/select", i, 0): (high, 0) for i in range(4)}
        script[("swap/select", 0, 0)] = (floor, 2**63)
        script[("swap/select", 1, 0)] = (0, 2**62)
        script[("swap/select", 2, 0)] = (0, 2**62)
        script[("swap/select/tie/0", 0, 0)] = (following, 0)
        moves, words = scripted(script, 4, third)
        assert ("swap/select/tie/0", 0) in words.asked
        assert (0 in moves.receivers) == selected
    script[("swap/select/tie/0", 0, 0)] = (floor, floor)  # tied again: the next block decides
    script[("swap/select/tie/0", 0, 1)] = (floor - 1, 0)
    moves, words = scripted(script, 4, third)
    assert ("swap/select/tie/0", 1) in words.asked
    assert 0 in moves.receivers


def test_at_a_tie_with_an_exact_threshold_nobody_is_selected() -> None:
    script = {("swap/select", i, 0): (2**64 - 1, 0) for i in range(3)} | {("swap/select", 0, 0): (2**63, 0)}
    moves, words = scripted(script, 3, Fraction(1, 2))
    assert moves.receivers.size == 0
    assert not any("tie" in label for label, _ in words.asked)


def test_exactly_one_selected_is_drawn_again() -> None:
    high = 2**64 - 1
    script = {("swap/select", i, 0): (high, 0) for i in range(3)} | {("swap/select", 1, 0): (0, 0)}
    script |= {("swap/select", 0, 1): (0, 0), ("swap/select", 1, 1): (high, 0), ("swap/select", 2, 1): (0, 0)}
    moves, words = scripted(script, 3, Fraction(1, 2))
    assert ("swap/select", 1) in words.asked
    assert sorted(moves.receivers.tolist()) == [0, 2]
    assert moves.rounds == 2


def test_an_uneven_word_fails_the_whole_try() -> None:
    # Three selected: step 2 multiplies by 3, and 2⁶⁴ mod 3 = 1, so exactly the word whose low half is 0 is uneven.
    script = {("swap/select", i, 0): (0, 2**62) for i in range(3)}
    script[("swap/select", 2, 0)] = (0, 0)
    _, words = scripted(script, 3, Fraction(1, 2))
    assert ("swap/derange", 0) in words.asked


@pytest.mark.parametrize(
    ("word", "bound"), [(0, 3), (2**64 - 1, 3), (0x123456789ABCDEF1, 10**9 + 7), (2**63, 2)]
)
def test_the_product_of_a_word_and_a_bound_is_exact(word: int, bound: int) -> None:
    high, low = multiply_high(np.uint64(word), np.uint64(bound))
    assert (int(high), int(low)) == divmod(word * bound, 2**64)


@pytest.mark.slow
def test_one_stratum_of_ten_million_and_ten_million_strata() -> None:
    n = 10_000_000
    ids = np.arange(n)
    one = drawn(ids, np.zeros(n), Fraction(1, 20))
    assert abs(one.receivers.size / n - 0.05) < 0.001  # 14 standard deviations
    assert (one.receivers != one.givers).all()
    many = drawn(ids, np.arange(n), Fraction(1, 20))
    assert many.receivers.size == 0
