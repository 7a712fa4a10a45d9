"""Exchanges against enumeration: the distance by search inside small universes, and every rule of the algebra on it."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import pytest

from stirred import Exchanges, Hamming, Margin, Specification
from stirred.errors import IncompatibleError
from stirred.spec import (
    Budget,
    Custom,
    Domain,
    Multiplicative,
    Multiverse,
    SymmetricDifference,
)
from stirred.spec.card import bound_odds
from stirred.spec.domain import RecordType, Variable
from stirred.spec.files import from_json, to_json
from stirred.spec.input_premetrics import ExchangeShape, find_exchanges
from stirred.spec.verdicts.checker.check import check_implication
from stirred.spec.verdicts.search import implies

NAMES = ("m", "h", "s", "d")
Data = tuple[tuple[str, ...], ...]


def toy(names: tuple[str, ...] = NAMES) -> Domain:
    """Return a domain of households with variables of two levels."""
    variables = tuple(Variable(name=name, levels=("0", "1")) for name in names)
    return Domain(name="toy", record_types=(RecordType(name="household", variables=variables),))


def tabulate(data: Data, table: Margin, names: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Count the records of a data set as the table does, with code of its own."""
    conditions = table.conditions()
    kept = [
        record
        for record in data
        if all(record[names.index(name)] in levels for name, levels in conditions.items())
    ]
    return tuple(
        sorted(Counter(tuple(record[names.index(name)] for name in table.by) for record in kept).items())
    )


def list_universes(tables: tuple[Margin, ...], names: tuple[str, ...], size: int) -> list[list[Data]]:
    """List the data sets of each universe with so many records."""
    found = defaultdict(list)
    for data in combinations_with_replacement(list(product("01", repeat=len(names))), size):
        found[tuple(tabulate(data, table, names) for table in tables)].append(data)
    return list(found.values())


def count_changed(one: Data, other: Data) -> int:
    """Return the Hamming distance of two data sets of one size."""
    return sum((Counter(one) - Counter(other)).values())


def search_exchanges(universe: list[Data]) -> Iterator[tuple[int, int | None]]:
    """Yield the number of changed records and the least number of exchanges of every pair of a universe."""
    near = {x: [y for y in universe if 0 < count_changed(x, y) <= 2] for x in universe}
    for start in universe:
        steps, edge = {start: 0}, [start]
        while edge:
            edge = [
                y for x in edge for y in near[x] if y not in steps and not steps.update({y: steps[x] + 1})
            ]
        for other in universe:
            if other > start:
                yield count_changed(start, other), steps.get(other)


def make(
    premetric: object,
    multiverse: Multiverse,
    epsilon: int | Fraction = 1,
    *,
    names: tuple[str, ...] = ("m", "h", "s"),
) -> Specification:
    """Return a promise of pure DP on the toy domain."""
    return Specification(
        domain=toy(names),
        multiverse=multiverse,
        input_premetric=premetric,  # type: ignore[arg-type]
        output_premetric=Multiplicative(),
        budget=Budget.of(epsilon),
    )


SWAP = Multiverse.of(Margin("household", ("m", "s")), Margin("household", ("m", "h")))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_pair_of_a_swaps_universe_is_within_the_bounds(size: int) -> None:
    names = ("m", "h", "s")
    tables = (Margin("household", ("m", "s")), Margin("household", ("m", "h")))
    pairs = [pair for universe in list_universes(tables, names, size) for pair in search_exchanges(universe)]
    assert pairs
    for changed, steps in pairs:
        assert steps is not None
        assert changed <= 2 * steps
        assert steps <= changed - 1


def test_the_upper_bound_is_attained_by_a_cycle_and_the_lower_by_two_exchanges() -> None:
    # three different records and three places in a circle: 2 exchanges for 3 changed records, no fewer
    names, tables = ("h", "s"), (Margin("household", ("h",)), Margin("household", ("s",)))
    records = list(product("abc", repeat=2))
    found = defaultdict(list)
    for data in combinations_with_replacement(records, 3):
        found[tuple(tabulate(data, table, names) for table in tables)].append(data)
    pairs = {pair for universe in found.values() for pair in search_exchanges(universe)}
    assert (3, 2) in pairs
    assert max(steps or 0 for changed, steps in pairs if changed == 3) == 2
    four = list_universes((Margin("household", ("h",)), Margin("household", ("s",))), ("h", "s"), 4)
    assert (4, 2) in {pair for universe in four for pair in search_exchanges(universe)}


def list_multiverses() -> list[tuple[Margin, ...]]:
    """List sets of two and three tables, with and without conditions, that a rule might take for a swap's."""
    by = [names for number in (1, 2, 3) for names in combinations(NAMES, number)]
    plain = [Margin("household", names) for names in by]
    staying = [
        Margin("household", names, {"h": ["0"]}) for names in (("h", "m", "s"), ("m", "s"), ("s",), NAMES)
    ]
    staying += [Margin("household", ("m", "h", "s"), {"s": ["0"]}), Margin("household", (), {"d": ["1"]})]
    pairs = list(combinations(plain, 2))
    return [*pairs[::2], *((*pair, more) for pair in pairs[3::11] for more in (*staying, plain[5], plain[8]))]


def test_where_the_rule_says_exchanges_connect_they_do() -> None:
    """Both rules, the algebra's and the checker's, are asked; a yes is held against search in all universes."""
    found = refused = 0
    for tables in list_multiverses():
        multiverse = Multiverse.of(*tables)
        shape = find_exchanges(toy(), multiverse, "household")
        mine, theirs = (
            make(premetric("household"), multiverse, names=NAMES) for premetric in (Exchanges, Hamming)
        )
        verdict = implies(mine, theirs)
        if isinstance(shape, str):
            refused += 1
            assert not verdict
            continue
        found += 1
        assert verdict
        assert not check_implication(mine, theirs, verdict)
        for universe in list_universes(tables, NAMES, 2 + found % 7 // 6):
            for changed, steps in search_exchanges(universe):
                assert steps is not None
                assert steps <= changed
    assert found > 20
    assert refused > 20


def test_overlapping_tables_of_records_that_stay_are_not_taken_for_granted() -> None:
    whole = ("m", "h", "s", "d")
    shape = (Margin("household", ("m", "s")), Margin("household", ("m", "h", "d")))
    apart = [Margin("household", whole, {"d": [level]}) for level in "01"]
    assert isinstance(find_exchanges(toy(), Multiverse.of(*shape, *apart), "household"), ExchangeShape)
    crossing = [Margin("household", whole, {"d": ["0"]}), Margin("household", whole, {"h": ["0"]})]
    assert find_exchanges(toy(), Multiverse.of(*shape, *crossing), "household") == (
        "the tables of records that stay may overlap"
    )


def test_a_promise_per_changed_record_doubles_per_exchange_and_an_exchanges_holds_per_record() -> None:
    per_record, per_exchange = make(Hamming("household"), SWAP), make(Exchanges("household"), SWAP)
    assert per_record.per(Exchanges("household")).budget == Budget.of(2)
    assert per_exchange.per(Hamming("household")).budget == Budget.of(1)
    assert per_exchange.per("household").input_premetric == Hamming("household")
    assert per_exchange.per(SymmetricDifference("household")).budget == Budget.of(Fraction(1, 2))
    for first, second, wanted in (
        (per_record, per_exchange.within(Budget.of(2)), True),
        (per_record, per_exchange, False),
        (per_exchange, per_record, True),
        (per_exchange.within(Budget.of(3)), per_record, False),
    ):
        verdict = implies(first, second)
        assert bool(verdict) is wanted
        assert not check_implication(first, second, verdict)
        assert verdict.answer.value in {"yes", "no"}


def test_what_is_between_stays_open() -> None:
    # per exchange 2 and per record 1: at three changed records two exchanges may lose 4, at two records 2 are allowed
    verdict = implies(make(Exchanges("household"), SWAP, 2), make(Hamming("household"), SWAP, 1))
    assert verdict.answer.value == "unknown"


def test_more_invariants_keep_a_promise_per_exchange_and_fewer_do_not() -> None:
    per_exchange = make(Exchanges("household"), SWAP)
    finer = make(Exchanges("household"), SWAP & Multiverse.of(Margin("household", ("h", "s"))))
    verdict = implies(per_exchange, finer)
    assert verdict
    assert not check_implication(per_exchange, finer, verdict)
    assert not implies(finer, per_exchange)


def test_releases_add_up_per_exchange_and_with_others_per_changed_record() -> None:
    per_record, per_exchange = make(Hamming("household"), SWAP), make(Exchanges("household"), SWAP)
    assert (per_exchange + per_exchange).input_premetric == Exchanges("household")
    assert (per_exchange + per_exchange).budget == Budget.of(2)
    both = per_exchange + per_record
    assert (both.input_premetric, both.budget) == (Hamming("household"), Budget.of(2))
    assert (per_record + per_exchange).budget == Budget.of(2)


def test_a_release_that_forbids_the_exchanges_of_another_is_added_up_per_changed_record() -> None:
    # with every two-way table exact no exchange is left: per exchange nothing would be promised any more
    one = make(Exchanges("household"), SWAP)
    other = make(
        Exchanges("household"),
        Multiverse.of(Margin("household", ("h", "m")), Margin("household", ("h", "s"))),
    )
    for both in (one + other, other + one):
        assert (both.input_premetric, both.budget) == (Hamming("household"), Budget.of(2))
    # what keeps persons with their household is said by one of two equal invariants, in either order
    silent, said = (Multiverse.of(*SWAP, Custom(name="x", keeps_with=kind)) for kind in ("", "household"))
    for joined in (silent & said, said & silent, Multiverse.join([silent, said])):
        assert isinstance(find_exchanges(toy(), joined, "household"), ExchangeShape)
    # a part is restated in its own universes, whatever the other release keeps
    per_record = make(Hamming("household"), Multiverse.of(Margin("household", ("h", "s"))))
    both = one + per_record
    assert both.budget == Budget.of(2)
    verdict = implies(both, make(Hamming("household"), both.multiverse, 2))
    assert verdict
    assert not check_implication(both, make(Hamming("household"), both.multiverse, 2), verdict)


def test_without_the_tables_of_a_swap_no_constant_is_known() -> None:
    free = make(Exchanges("household"), Multiverse.of(Margin("household", ("m",))))
    with pytest.raises(IncompatibleError, match="nothing shows that exchanges connect"):
        free.per(Hamming("household"))


def test_members_that_stay_with_their_household_are_declared() -> None:
    together = Custom(name="persons within households", determined_by=(Margin("household", ("h",)),))
    told = Custom(name=together.name, determined_by=together.determined_by, keeps_with="household")
    assert together == told
    silent, said = (Multiverse.of(*SWAP, Custom(name="x", keeps_with=kind)) for kind in ("", "household"))
    assert isinstance(find_exchanges(toy(), silent, "household"), str)
    assert isinstance(find_exchanges(toy(), said, "household"), ExchangeShape)


def test_the_odds_are_read_at_one_exchange() -> None:
    per_exchange = make(Exchanges("household"), SWAP)
    view = frozenset({Margin("household", ("m", "h", "s"))})
    odds = bound_odds(Specification(**{**_fields(per_exchange), "released": view}))
    assert odds.distance == 1
    assert odds.log_odds == 1
    assert odds.change.startswith("an exchange in which two households trade places")


def _fields(spec: Specification) -> dict[str, object]:
    names = ("domain", "multiverse", "input_premetric", "output_premetric", "budget")
    return {name: getattr(spec, name) for name in names}


def test_it_is_written_and_read() -> None:
    said = Multiverse.of(*SWAP, Custom(name="x", keeps_with="household"))
    spec = make(Exchanges("household"), said)
    again = from_json(to_json(spec))
    assert again == spec
    assert {getattr(i, "keeps_with", "") for i in again.multiverse} == {"", "household"}
