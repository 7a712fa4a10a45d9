"""Promises between neighbours only: stated as such, and carried to larger distances only where neighbours connect."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from stirred.errors import IncompatibleError, SpecificationError
from stirred.publish.registry import About, registry_entry
from stirred.spec import (
    Answer,
    Approximate,
    Budget,
    Constraint,
    Domain,
    Hamming,
    InputPremetric,
    Margin,
    Multiplicative,
    Multiverse,
    Neighbours,
    NormalizedRenyi,
    OutputPremetric,
    RecordType,
    Specification,
    SymmetricDifference,
    Variable,
    input_premetrics,
)
from stirred.spec.card import Card, bound_odds
from stirred.spec.files import dumps, from_json, to_json
from stirred.spec.verdict import Verdict

TOY = Domain(
    name="toy",
    record_types=(
        RecordType(
            name="household", variables=tuple(Variable(name=n, levels=("0", "1")) for n in ("h", "s"))
        ),
    ),
)
HOUSEHOLD = Hamming("household")
SWAP = Multiverse.of(Margin("household", ("h",)), Margin("household", ("s",)))
HOMES = Multiverse.of(Margin("household"))
FREE = Multiverse.none()


def stated(
    unit: InputPremetric,
    measure: OutputPremetric | None = None,
    multiverse: Multiverse = FREE,
    domain: Domain = TOY,
) -> Specification:
    return Specification(
        domain=domain,
        multiverse=multiverse,
        input_premetric=unit,
        output_premetric=measure or Multiplicative(),
        budget=Budget.log(3),
    )


def test_the_whole_distance_gives_the_one_of_neighbours() -> None:
    for measure in (Multiplicative(), NormalizedRenyi(), Approximate("1/10")):
        for multiverse in (FREE, SWAP):
            everywhere = stated(HOUSEHOLD, measure, multiverse)
            near = stated(Neighbours(HOUSEHOLD), measure, multiverse)
            assert everywhere.per(Neighbours(HOUSEHOLD)).budget == Budget.log(3)
            assert everywhere.implies(near)


def test_back_only_where_neighbours_connect() -> None:
    for measure in (Multiplicative(), NormalizedRenyi(), Approximate("1/10")):
        for multiverse in (FREE, Multiverse.of(Margin("household"))):
            found = stated(Neighbours(HOUSEHOLD), measure, multiverse).per(HOUSEHOLD)
            assert (found.budget, found.output_premetric) == (Budget.log(3), measure)
            assert any("neighbours reach every distance" in note for note in found.notes)
        with pytest.raises(IncompatibleError, match="invariants may not hold on the way"):
            stated(Neighbours(HOUSEHOLD), measure, SWAP).per(HOUSEHOLD)
    answer = stated(Neighbours(HOUSEHOLD), multiverse=SWAP).implies(stated(HOUSEHOLD, multiverse=SWAP)).answer
    assert answer is not Answer.YES
    # adding or removing changes the number of records, so no two data sets of one number are neighbours
    added = SymmetricDifference("household")
    assert stated(Neighbours(added)).per(added).budget == Budget.log(3)
    with pytest.raises(IncompatibleError, match="on the way"):
        stated(Neighbours(added), multiverse=Multiverse.of(Margin("household"))).per(added)


def test_what_is_in_the_way() -> None:
    rule = Constraint(words="records come in pairs", record_type="household")
    for domain, why in (
        (replace(TOY, constraints=(rule,)), "rules of the domain"),
        (
            replace(TOY, record_types=(*TOY.record_types, RecordType(name="group quarters"))),
            "other records than households",
        ),
    ):
        with pytest.raises(IncompatibleError, match=why):
            stated(Neighbours(HOUSEHOLD), domain=domain).per(HOUSEHOLD)
    with pytest.raises(IncompatibleError, match="neighbours under"):
        stated(Neighbours(Hamming("household", copies=2))).per(Hamming("household", copies=2))


@dataclass(frozen=True)
class Lone(OutputPremetric):
    """A premetric of one's own that is not known to have group privacy."""

    symbol = "D_lone"


def test_a_premetric_without_group_privacy_stays_with_neighbours() -> None:
    mine = stated(Neighbours(HOUSEHOLD), Lone())
    with pytest.raises(IncompatibleError, match="group privacy"):
        mine.per(HOUSEHOLD)
    assert (mine + mine).budget == Budget.log(9)
    assert mine.per(Neighbours(HOUSEHOLD)) == mine


def test_another_unit_among_neighbours() -> None:
    both = replace(TOY, record_types=(*TOY.record_types, RecordType(name="person")), largest_household=4)
    near = stated(Neighbours(HOUSEHOLD), domain=both)
    # one person's change alters one household: neighbours stay neighbours, also inside the universes of a swap
    kept = Neighbours(Hamming("person"))
    assert near.per("person").input_premetric == kept
    assert near.per("person").budget == Budget.log(3)
    assert stated(Neighbours(HOUSEHOLD), domain=both, multiverse=SWAP).per("person").budget == Budget.log(3)
    # a move alters two households, which is two steps between neighbours
    moving = stated(Neighbours(HOUSEHOLD), domain=both, multiverse=HOMES).per("person", link="free")
    assert (moving.input_premetric, moving.budget) == (
        Neighbours(Hamming("person", link="free")),
        Budget.log(9),
    )
    with pytest.raises(IncompatibleError, match="no neighbours"):
        stated(Neighbours(HOUSEHOLD), domain=both, multiverse=SWAP).per("person", link="free")
    # and it may found a household of its own
    with pytest.raises(IncompatibleError, match="different numbers of households"):
        near.per("person", link="free")
    approximate = stated(Neighbours(HOUSEHOLD), Approximate("1/100"), HOMES, domain=both)
    assert approximate.per("person", link="free").output_premetric == Approximate("4/100")


def test_sums_are_about_neighbours_and_paths_run_where_a_part_was_stated() -> None:
    everywhere, near = stated(HOUSEHOLD), stated(Neighbours(HOUSEHOLD))
    assert (everywhere + near).input_premetric == Neighbours(HOUSEHOLD)
    assert (everywhere + near).budget == Budget.log(9)
    assert everywhere + near == near + everywhere
    assert (everywhere + near) + near == everywhere + (near + near)
    # inside the swap's universes there are no neighbours, but the noise was stated where there are
    swap = stated(HOUSEHOLD, multiverse=SWAP)
    assert (swap + near).per(HOUSEHOLD).budget == Budget.log(9)
    with pytest.raises(IncompatibleError):
        (swap + stated(Neighbours(HOUSEHOLD), multiverse=SWAP)).per(HOUSEHOLD)
    with pytest.raises(IncompatibleError, match="no rule relates"):
        near + stated(Neighbours(Hamming("business")))


def test_written_and_read_back() -> None:
    spec = stated(Neighbours(Hamming("person", link="free")), Approximate("1/10"), SWAP)
    assert from_json(to_json(spec)) == spec
    total = spec.given(Margin("household")) + spec
    assert from_json(to_json(total)) == total
    assert from_json(to_json(total)).parts == total.parts
    assert to_json(spec)["input_premetric"] == {
        "kind": "neighbours",
        "inner": {"kind": "hamming", "record_type": "person", "link": "free", "copies": 1},
    }
    assert dumps(spec) == dumps(from_json(to_json(spec)))
    assert str(spec).split(" | ")[2] == "d_Ham(person, may move), neighbours only"
    for wrong in ("household", Neighbours(HOUSEHOLD)):
        with pytest.raises(SpecificationError, match="needs an input premetric"):
            Neighbours(wrong)  # type: ignore[arg-type]


def test_the_card_and_the_registry_say_it() -> None:
    near = stated(Neighbours(HOUSEHOLD))
    assert bound_odds(near).factor.startswith("3.0")
    assert "no other change" in dict(Card(near).rows())["unit"]
    inside = stated(Neighbours(HOUSEHOLD), multiverse=SWAP)
    assert (
        bound_odds(inside).factor == "∞"
    )  # the smallest change is an exchange, and that is none between neighbours
    assert "Nothing is promised" in Card(inside).sentence()
    about = About(
        name="x",
        data_curators=("y",),
        description="z",
        intended_use="z",
        data_product_type="Dataset",
        data_product_region="r",
        publication_date="2030-01-01",
    )
    document = str(registry_entry(Card(stated(Neighbours(HOUSEHOLD), Approximate("1/3"))), about))
    assert "at distance 1 only" in document
    assert "0.333333333334" in document  # rounded up
    assert "at every distance" in str(registry_entry(Card(stated(HOUSEHOLD)), about))


# --- the rule itself, by looking at all data sets of up to four records over four cells


def data_sets(size: int) -> list[Counter[tuple[int, int]]]:
    cells = [(h, s) for h in (0, 1) for s in (0, 1)]
    return [Counter(records) for records in combinations_with_replacement(cells, size)]


def apart(x: Counter[tuple[int, int]], y: Counter[tuple[int, int]]) -> int:
    return (x - y).total()


def fixed(x: Counter[tuple[int, int]], multiverse: Multiverse) -> tuple[object, ...]:
    place = {"h": 0, "s": 1}
    return tuple(
        tuple(sorted(Counter(r[place[m.by[0]]] if m.by else 0 for r in x.elements()).items()))
        for i in multiverse
        for m in i.needs()
    )


def steps(
    universe: list[Counter[tuple[int, int]]], start: Counter[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """(distance, number of steps between neighbours inside the universe) to every data set; −1: none."""
    reached = {frozenset(start.items()): 0}
    front = [start]
    while front:
        x = front.pop(0)
        for y in universe:
            if apart(x, y) == 1 and frozenset(y.items()) not in reached:
                reached[frozenset(y.items())] = reached[frozenset(x.items())] + 1
                front.append(y)
    for y in universe:
        yield apart(start, y), reached.get(frozenset(y.items()), -1)


def connected(multiverse: Multiverse) -> bool:
    for size in range(1, 5):
        universes: dict[tuple[object, ...], list[Counter[tuple[int, int]]]] = {}
        for x in data_sets(size):
            universes.setdefault(fixed(x, multiverse), []).append(x)
        for universe in universes.values():
            if any(distance != count for x in universe for distance, count in steps(universe, x)):
                return False
    return True


MULTIVERSES = [FREE, Multiverse.of(Margin("household")), Multiverse.of(Margin("household", ("h",))), SWAP]


def rule_is_sound() -> bool:
    return all(
        connected(multiverse)
        for multiverse in MULTIVERSES
        if input_premetrics.neighbours_connect(TOY, multiverse, HOUSEHOLD)
    )


def test_neighbours_connect_where_the_rule_says_so() -> None:
    assert input_premetrics.neighbours_connect(TOY, FREE, HOUSEHOLD)
    assert rule_is_sound()
    assert not connected(SWAP)


def test_a_rule_that_always_says_yes_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_premetrics, "neighbours_connect", lambda *_: Verdict.yes("always"))
    assert not rule_is_sound()
    # and this is what it would claim: an exchange of two records is no step between neighbours
    assert stated(Neighbours(HOUSEHOLD), multiverse=SWAP).per(HOUSEHOLD).budget == Budget.log(3)


def test_constants() -> None:
    assert Neighbours(HOUSEHOLD).constant(HOUSEHOLD, TOY, FREE).along_paths
    assert Neighbours(HOUSEHOLD).constant(Neighbours(HOUSEHOLD), TOY, SWAP).factor == Fraction(1)
    assert not HOUSEHOLD.constant(Neighbours(HOUSEHOLD), TOY, SWAP).along_paths
    assert Neighbours(HOUSEHOLD).smallest_distance == "one household: its record changed (neighbours only)"
