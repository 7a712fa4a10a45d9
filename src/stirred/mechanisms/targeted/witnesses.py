"""Pairs of data sets that show why a swap has no finite budget: an event that one of them makes impossible (proof.md)."""

from fractions import Fraction

Witness = dict[str, object]


def list_witnesses(first: Witness, *more: Witness | None) -> dict[str, object]:
    """Return the witnesses of a mechanism for programs: the first, and all others that hold too."""
    return {"witness": first, "more_witnesses": [witness for witness in more if witness]}


def witness_by_number(rate: Fraction, cycle: int = 2) -> Witness:
    """Return the witness of a certain number of swaps: a file is never released as it is."""
    n = max(1, -(-rate.denominator * cycle // (2 * rate.numerator)))
    return {
        "first": f"two areas of {n} households each, alike in all profiles and risks, no two of them with the same answer",
        "second": "the same households, one of each area in the place of the other",
        "distance": 2,
        "event": "the released records are those of the first",
        "chances": [0, "above 0"],
        "why": "a swap is certain, and every swap changes the records; of the second, it may be that one back",
    }


def witness_by_risk(k: int) -> Witness:
    """Return the witness of a certain selection: a rare household never stays."""
    return {
        "first": f"two areas of {max(k, 1) + 1} alike households each, one of them with a rare answer, in the first area",
        "second": "the same households, that one and one of the second area in each other's place",
        "distance": 2,
        "event": "the rare answer is released in the first area",
        "chances": [0, "above 0"],
        "why": "who is rare is swapped with certainty, to the other area",
    }


def witness_by_cycle(cycle: int) -> Witness:
    """Return the witness of disjoint cycles of at most n records: a circle of n + 1 is impossible.

    >>> witness_by_cycle(3)["distance"]
    2
    """
    n = cycle + 1
    return {
        "first": f"{n} households in {n} areas, alike in all profiles, no two of them with the same answer",
        "second": "the same households, the last two of them in each other's place",
        "distance": 2,
        "event": f"all {n} households of the first are turned in one circle, each to the place of the next",
        "chances": [0, "above 0"],
        "why": f"disjoint cycles of at most {cycle} records never make a circle of {n}; of the second, one cycle of "
        f"{cycle} makes the same records, with one household where it is",
    }


def witness_by_cap(cap: Fraction) -> Witness:
    """Return the witness of a capped number of swaps: an output with one swap more is impossible."""
    return {
        "first": f"a state of different households in which the cap {cap} allows m swaps, and the same event needs m + 1",
        "second": "the same households after one of these m + 1 swaps",
        "distance": 2,
        "event": "the records of the first after m + 1 disjoint swaps",
        "chances": [0, "above 0"],
        "why": "no release has more than m swaps; from the second, m are enough",
    }


def witness_by_model() -> Witness:
    """Return the witness of a model fitted without noise: a level that nobody has is never drawn."""
    return {
        "first": "no person in group quarters has the answer a",
        "second": "the same persons, one of whom has the answer a",
        "distance": 1,
        "event": "a person in group quarters is released with the answer a",
        "chances": [0, "above 0"],
        "why": "the model draws the levels that occur, and only these",
    }
