"""One contract, every mechanism: invariants kept, promise first, same bytes for the same key, no leaks, no crashes."""

import json
import logging
import re
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from contract.registry import EVERY, UNBOUNDED, WITHOUT_NOISE, Case
from stirred.census import Census
from stirred.chance import Key
from stirred.errors import InputError, PrivacyError, StirredError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.registry import OWN_REGISTRATIONS
from stirred.mechanisms.release import Release
from stirred.mechanisms.topdown import TopDown
from stirred.spec import Custom, Multiverse, Specification
from stirred.spec.card import Card
from stirred.spec.files import dumps, from_json

SCHEMA: dict[str, Any] = {
    "name": "contract",
    "geography": {"spine": ["state", "county", "tract"]},
    "record": {"household": {"id": "hid"}, "person": {"household": "hid", "of": "household"}},
}
HOUSEHOLD = pa.schema(
    {"hid": pa.int64(), "state": pa.string(), "county": pa.string(), "tract": pa.string(), "size": pa.int64()}
).append(pa.field("tenure", pa.string()))
PERSON = pa.schema({"hid": pa.int64(), "age": pa.int64(), "sex": pa.string()})
SECRET = "SECRET-TENURE-VALUE"  # stands for a value of a confidential record


def census(n: int, *, tracts: int = 6, sizes: int = 3, tenure: tuple[str, ...] = ("own", "rent")) -> Census:
    """A small census in which every stratum of state × size has several households, if n allows."""
    rng = np.random.default_rng(n)  # answers that tell nothing of the place, or a swap would be undone
    tract = [i % tracts for i in range(n)]
    size = [1 + (i // tracts) % sizes for i in range(n)]
    household = pa.table(
        {
            "hid": [7 * i + 3 for i in range(n)],
            "state": [f"{t // 4}" for t in tract],
            "county": [f"{t // 2:02d}" for t in tract],
            "tract": [f"{t:03d}" for t in tract],
            "size": size,
            "tenure": [tenure[i] for i in rng.integers(0, len(tenure), n)],
        },
        schema=HOUSEHOLD,
    )
    owner = [i for i in range(n) for _ in range(size[i])]
    person = pa.table(
        {
            "hid": [7 * i + 3 for i in owner],
            "age": rng.integers(0, 20, len(owner)) * 2,
            "sex": ["f" if j % 2 else "m" for j, _ in enumerate(owner)],
        },
        schema=PERSON,
    )
    return Census.of(SCHEMA, {"household": household, "person": person})


CENSUSES = {
    "ordinary": lambda: census(120),
    "empty": lambda: census(0),
    "one record": lambda: census(1),
    "strata of one": lambda: census(3, tracts=1, sizes=3),
    "one area": lambda: census(40, tracts=1),
}
KEY_NUMBER = 11
KEY = Key.for_tests(KEY_NUMBER)


@pytest.fixture(params=EVERY, ids=lambda case: case.name)
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    case: Case = request.param
    return case.make()


@pytest.fixture(params=CENSUSES, ids=str)
def data(request: pytest.FixtureRequest) -> Census:
    return shared(request.param)


@pytest.fixture
def again(request: pytest.FixtureRequest, data: Census) -> Census:
    """Another census with the same records."""
    return CENSUSES[request.node.callspec.params["data"]]()


@cache
def shared(name: str) -> Census:
    """One census for many tests: it is checked once."""
    return CENSUSES[name]()


MADE: dict[tuple[str, str], Release | None] = {}


def make(case: Case, name: str) -> Release | None:
    """The release of a mechanism on a census, made once by a mechanism of its own; None where it is refused."""
    if (case.name, name) not in MADE:
        mechanism, data = case.make(), shared(name)
        MADE[case.name, name] = mechanism.release(data, key=KEY) if runs(mechanism, data) else None
    return MADE[case.name, name]


@pytest.fixture
def released(request: pytest.FixtureRequest, mechanism: Mechanism, data: Census) -> Release | None:
    """The release of the mechanism on the census; None where it is refused."""
    params = request.node.callspec.params
    return make(params["mechanism"], params["data"])


@pytest.fixture
def on_ordinary(request: pytest.FixtureRequest, mechanism: Mechanism) -> Release:
    """The release of the mechanism on the ordinary census, which none refuses."""
    found = make(request.node.callspec.params["mechanism"], "ordinary")
    assert found is not None
    return found


def content(release: Release) -> dict[str, list[Any]]:
    """Everything that is published, as plain lists."""
    found: dict[str, list[Any]] = {}
    for name, published in [*release.microdata.items(), *release.tables.items()]:
        table = published.to_table() if isinstance(published, pads.Dataset) else published
        found[name] = [table.column_names, table.to_pylist()]
    return found


def runs(mechanism: Mechanism, data: Census) -> bool:
    """Whether the mechanism accepts a census: an empty one, or one in which nothing moves, may be refused by the run too."""
    refused = refusal(mechanism, data)
    if refused is None:
        return True
    assert data.count("household") == 0 or "nothing can move" in str(refused)
    with pytest.raises(type(refused), match=re.escape(str(refused))):
        mechanism.release(data, key=KEY)
    return False


def refusal(mechanism: Mechanism, data: Census) -> StirredError | None:
    try:
        mechanism.refuse(data)
        mechanism.refuse_promise(data, mechanism.specification(data))
    except (InputError, PrivacyError) as refused:
        return refused
    return None


def test_every_registered_mechanism_is_in_the_suite() -> None:
    assert {item.name for item in OWN_REGISTRATIONS} <= {case.make().name for case in EVERY}


def test_is_a_mechanism_with_canonical_parameters(mechanism: Mechanism) -> None:
    assert isinstance(mechanism, Mechanism)
    assert mechanism.name == type(mechanism).name
    parameters = mechanism.parameters()
    assert json.loads(json.dumps(parameters)) == parameters


def test_states_its_specification_before_it_runs(
    mechanism: Mechanism, data: Census, request: pytest.FixtureRequest
) -> None:
    before = mechanism.specification(data)
    assert isinstance(before, Specification)
    release: Release | None = request.getfixturevalue("released")
    if release is not None:
        assert release.specification == before
    if before.budget.is_finite:
        assert before.evidence.status == "proved"
    else:
        assert mechanism.name in UNBOUNDED
    assert before.evidence.source


def test_its_specification_is_the_same_for_every_census_of_the_universe(mechanism: Mechanism) -> None:
    """The promise may depend on invariants only: the order of the records is none of its business."""
    ordinary = shared("ordinary")
    household = ordinary.table("household")
    turned = household.take(list(reversed(range(household.num_rows))))
    again = Census.of(SCHEMA, {"household": turned, "person": ordinary.table("person")})
    assert mechanism.specification(again) == mechanism.specification(ordinary)


def test_keeps_its_invariants(released: Release | None, data: Census) -> None:
    if (release := released) is None:
        return
    assert all(check.kept for check in release.checks)
    if data.count("household") and release.specification.multiverse != Multiverse.none():
        assert release.checks
    if "household" not in release.microdata:
        return
    tables = {
        name: (table.to_table() if isinstance(table, pads.Dataset) else table)
        for name, table in release.microdata.items()
    }
    schema = {**SCHEMA, "record": {}}
    published = Census.of(schema, tables)
    for invariant in release.specification.multiverse:
        if isinstance(invariant, Custom):
            continue  # declared in words only; the mechanism's own checks answer for it
        truth = invariant.tabulate(data).to_pylist()
        assert [list(map(str, row.values())) for row in invariant.tabulate(published).to_pylist()] == [
            list(map(str, row.values())) for row in truth
        ], invariant.words()


def test_same_key_same_bytes(released: Release | None, mechanism: Mechanism, again: Census) -> None:
    """Another mechanism with the same settings, and another census with the same records."""
    if released is not None:
        assert content(mechanism.release(again, key=KEY)) == content(released)


def test_another_key_another_release(mechanism: Mechanism, on_ordinary: Release) -> None:
    ordinary = shared("ordinary")
    # noise on 3 counties, or half of 120 households moved: five keys agree with probability below 1e-6
    others = [Key.for_tests(seed) for seed in range(KEY_NUMBER + 1, KEY_NUMBER + 12)]
    release = content(on_ordinary)
    if mechanism.name in WITHOUT_NOISE:
        assert mechanism.name in UNBOUNDED
        assert all(content(mechanism.release(ordinary, key=other)) == release for other in others)
        return
    assert any(content(mechanism.release(ordinary, key=other)) != release for other in others)


def test_a_test_key_marks_the_release_as_not_private(mechanism: Mechanism, on_ordinary: Release) -> None:
    assert not on_ordinary.private
    assert mechanism.release(shared("ordinary"), key=Key.fresh()).private


def test_the_promise_is_shown_and_saved(mechanism: Mechanism, data: Census) -> None:
    spec = mechanism.specification(data)
    card = Card(spec)
    assert card.sentence()
    assert "<article" in card.html()
    assert from_json(json.loads(dumps(spec))) == spec


def said(mechanism: Mechanism, tables: dict[str, pa.Table]) -> str:
    """What a run on these tables says when it refuses them."""
    try:
        mechanism.release(Census.of(SCHEMA, tables), key=KEY)
    except StirredError as error:
        return f"{error} {error!r} {error.__cause__!r}"
    return ""


def test_errors_and_logs_show_no_record(mechanism: Mechanism, caplog: pytest.LogCaptureFixture) -> None:
    """A damaged census is refused or survived; either way no value of a record is shown."""
    good = census(60, tenure=(SECRET, "rent"))
    household = good.table("household")
    damaged = [
        household.drop_columns(["county"]),
        household.drop_columns(["size"]),
        household.set_column(0, "hid", pa.array([3] * household.num_rows)),
        household.set_column(2, "county", pa.array([None] * household.num_rows, pa.string())),
    ]
    with caplog.at_level(logging.DEBUG):
        for table in damaged:
            assert SECRET not in said(mechanism, {"household": table, "person": good.table("person")})
    assert SECRET not in caplog.text


def test_the_settings_make_the_mechanism_again(mechanism: Mechanism) -> None:
    if isinstance(mechanism, TopDown):
        return  # its workload is made in Python here; test_three_doors.py has one in a file
    config = type(mechanism).Config.model_validate(mechanism.settings())
    again = type(mechanism).of(config)
    assert set(mechanism.settings()) == set(config.model_fields_set) == set(type(config).model_fields)
    assert again.parameters() == mechanism.parameters()


def test_it_says_before_its_run_which_tables_can_be_made(mechanism: Mechanism, on_ordinary: Release) -> None:
    stated, release = mechanism.table_variables(shared("ordinary")), on_ordinary
    if stated is None:
        return
    own = {name for by in mechanism.list_own_tables(release).values() for name in by}
    columns = {name: set(data.schema.names) for name, data in release.microdata.items()}
    assert set(stated) == set(columns or {mechanism.record_type})
    for record_type, variables in stated.items():
        assert set(variables) <= columns.get(record_type, own)


def test_every_column_that_leaves_is_stated(mechanism: Mechanism, on_ordinary: Release) -> None:
    """Odds, guards, card, universe and report read one list: no released file has a column of the census beyond it."""
    ordinary = shared("ordinary")
    leaving = mechanism.released_columns(ordinary)
    promised = mechanism.specification(ordinary).released_columns
    for record_type, data in on_ordinary.microdata.items():
        numbers = {"hid"}  # given anew
        found = {*data.schema.names} & {*ordinary.columns(record_type)} - numbers
        assert found <= {*leaving[record_type]}
    for record_type, names in leaving.items():
        listed = {*ordinary.domain.record_type(record_type).names()} - ordinary.domain.identifiers(
            record_type
        )
        assert {*names} & listed <= {*promised[record_type]}


def test_a_swap_is_read_at_distance_two() -> None:
    """Odds at distance 1 would be understated: inside a universe of a swap no record differs alone."""
    for case in EVERY:
        if case.name.startswith("permutation-swapping"):
            spec = case.make().specification(shared("ordinary"))
            assert Card(spec).bound_odds().distance == 2


def test_budget_is_exact(mechanism: Mechanism) -> None:
    spec = mechanism.specification(shared("ordinary"))
    assert spec.budget.is_finite == (mechanism.name not in UNBOUNDED)
    if not spec.budget.is_finite:
        return
    assert Fraction(str(spec.budget.upper(6))) >= Fraction(str(spec.budget.lower(6)))
    assert not spec.budget.is_zero
