"""What a look-up says of an interval: what it is made to hold, and what was measured."""

from stirred.publish.packet.lookup import MEASURED, PublishedCell


def test_a_sentence_says_what_the_interval_was_measured_to_hold():
    cell = PublishedCell(
        table="t", where={"block": "1"}, count=3, weighted=None, estimate=2.5, standard_error=2.0, low=0.0, high=8.0,
        private=True,
    )  # fmt: skip
    said = "the interval from 0.0 to 8.0 is made to hold the true number of 95 in 100 cells published like this one"
    assert said in cell.sentence()
    lowest, _, highest = MEASURED.partition(" to ")
    assert int(lowest) < 95 < int(highest)
    assert f"({MEASURED} where that was measured" in cell.sentence()
