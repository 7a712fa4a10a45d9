"""spec.json: read back without loss, validated by its schema, other versions and broken files refused."""

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stirred.errors import InputError, StirredError
from stirred.spec import (
    Approximate,
    AtLeast,
    Bound,
    Budget,
    BudgetFunction,
    Constraint,
    Custom,
    Dependency,
    Domain,
    Evidence,
    Hamming,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    OutputPremetric,
    RecordType,
    Specification,
    SymmetricDifference,
    Variable,
    files,
)

names = st.text("abcxyz_", min_size=1, max_size=6)
fractions = st.fractions(min_value=0, max_value=10**6)
margins = st.builds(
    Margin,
    names,
    st.lists(names, max_size=3).map(tuple),
    st.none() | st.dictionaries(names, st.lists(names, min_size=1, max_size=2), min_size=1, max_size=2),
    st.text(max_size=5),
)
invariants = (
    margins
    | margins.map(AtLeast)
    | st.builds(Custom, names, st.lists(margins, max_size=2).map(tuple), st.text(max_size=5))
)
budgets = st.one_of(
    fractions.map(Budget.of),
    fractions.map(lambda q: Budget.log(q + 1)),
    fractions.map(Budget.sqrt),
    st.just(Budget.infinite()),
    st.tuples(fractions, fractions).map(lambda pair: Budget.of(pair[0]) + Budget.log(pair[1] + 1)),
)
variables = st.builds(
    Variable,
    name=names,
    levels=st.none() | st.integers(0, 99) | st.lists(names, max_size=3).map(tuple),
    label=names,
)
domains = st.builds(
    Domain,
    name=names,
    record_types=st.lists(
        st.builds(RecordType, name=names, variables=st.lists(variables, max_size=2).map(tuple)), max_size=2
    ).map(tuple),
    spine=st.lists(names, max_size=3, unique=True).map(tuple),
    dependencies=st.just(()) | st.just((Dependency(of=("a",), determines=("b",)),)),
    constraints=st.just(()) | st.just((Constraint(words="edit"),)),
    copies=st.integers(1, 9),
    largest_household=st.none() | st.integers(1, 99_999),
)
# invariants are checked against the variables that a domain lists, so domains of random invariants list none
specifications = st.builds(
    Specification,
    domain=domains.map(lambda domain: replace(domain, record_types=())),
    multiverse=st.lists(invariants, max_size=3).map(lambda found: Multiverse.of(*found)),
    input_premetric=st.builds(Hamming, names, copies=st.integers(1, 3))
    | st.builds(SymmetricDifference, names),
    output_premetric=st.sampled_from([Multiplicative(), NormalizedRenyi(), Approximate(Fraction(1, 10**10))]),
    budget=budgets,
    evidence=st.builds(Evidence, status=st.sampled_from(["proved", "estimated"]), source=names),
    bounds=st.lists(st.builds(Bound, name=names, budget=budgets), max_size=2).map(tuple),
    notes=st.lists(names, max_size=2).map(tuple),
    varies=st.none() | st.builds(BudgetFunction, words=names, least=budgets),
)


@given(specifications)
def test_round_trip_is_lossless(spec: Specification) -> None:
    text = files.dumps(spec)
    back = files.from_json(json.loads(text))
    assert back == spec
    assert files.dumps(back) == text  # labels too, which equality leaves out
    assert back.budget.exact == spec.budget.exact


@given(domains)
def test_domains_come_back_whole(domain: Domain) -> None:
    spec = Specification(
        domain=domain,
        multiverse=Multiverse.none(),
        input_premetric=Hamming("household"),
        output_premetric=Multiplicative(),
        budget=Budget.of(1),
    )
    assert files.from_json(json.loads(files.dumps(spec))).domain == domain


@given(specifications, specifications)
def test_sums_keep_their_parts(a: Specification, b: Specification) -> None:
    try:
        total = a + replace(
            b, domain=a.domain, input_premetric=a.input_premetric, output_premetric=a.output_premetric
        )
    except StirredError:
        return
    back = files.from_json(json.loads(files.dumps(total)))
    assert back == total
    assert back.parts == total.parts


SPEC = Specification(
    domain=Domain(name="toy"),
    multiverse=Multiverse.of(Margin("household", ("block",))),
    input_premetric=Hamming("household"),
    output_premetric=Multiplicative(),
    budget=Budget.log("5022308"),
)


def test_the_schema_is_a_schema_and_is_shipped() -> None:
    jsonschema.Draft202012Validator.check_schema(files.schema())


def test_budgets_are_exact_strings() -> None:
    assert files.to_json(SPEC)["budget"] == {"kind": "log", "of": "5022308"}
    assert "." not in json.dumps([files.to_json(SPEC)["budget"]])


@pytest.mark.parametrize("version", [0, 2, "1", None, 1.5])
def test_unknown_versions_are_refused(version: object) -> None:
    with pytest.raises(InputError, match="version"):
        files.from_json({**files.to_json(SPEC), "version": version})


@pytest.mark.parametrize(
    "change",
    [
        {"budget": 15.43},
        {"budget": {"kind": "log", "of": 3.5}},
        {"budget": {"kind": "fraction", "of": "-1"}},
        {"budget": {"kind": "log", "of": "1/2"}},
        {"budget": {"kind": "sqrt", "of": "1/0"}},
        {"invariants": [{"kind": "margn"}]},
        {"invariants": [{"kind": "margin", "record_type": "household", "bye": []}]},
        {"invariants": [{"kind": "hamming", "record_type": "household"}]},
        {"input_premetric": {"kind": "hamming", "record_type": "household", "copies": 0}},
        {"input_premetric": {"kind": "hamming"}},
        {"domain": {"name": "toy", "constraints": [{"words": "x", "reads_data": True}]}},
        {"extra": 1},
        {"notes": "one"},
    ],
)
def test_broken_documents_give_one_clear_error(change: dict[str, object]) -> None:
    with pytest.raises(StirredError) as caught:
        files.from_json({**files.to_json(SPEC), **change})
    assert len(str(caught.value).splitlines()) <= 3


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe\x00", b'{"format": "other"}', b"[" * 100_000, b'"text"', b"null"]
)
def test_unreadable_files_give_one_clear_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_bytes(content)
    with pytest.raises(InputError):
        files.load(path)


def test_missing_files_and_folders_give_one_clear_error(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            files.load(path)


def test_save_and_load(tmp_path: Path) -> None:
    path = files.save(SPEC, tmp_path / "spec.json")
    assert files.load(path) == SPEC
    assert len(files.digest(SPEC)) == 64


@dataclass(frozen=True, slots=True)
class Tsallis(OutputPremetric):
    """A premetric of someone else's."""

    order: Fraction = Fraction(2)


def test_parts_from_outside_are_registered_first() -> None:
    spec = replace(SPEC, output_premetric=Tsallis(Fraction(3, 2)))
    with pytest.raises(InputError, match="Tsallis"):
        files.dumps(spec)
    files.register("tsallis", Tsallis)
    assert files.from_json(json.loads(files.dumps(spec))) == spec
    with pytest.raises(InputError, match="already stands for Hamming"):
        files.register("hamming", Tsallis)


def test_a_file_nested_without_end_is_refused() -> None:
    toy = Specification(
        domain=Domain(name="toy"),
        multiverse=Multiverse.none(),
        input_premetric=Hamming("household"),
        output_premetric=Multiplicative(),
        budget=Budget.of(1),
    )
    document = files.to_json(toy)
    for _ in range(400):
        document["budget"] = {"kind": "sum", "of": [document["budget"]]}
    with pytest.raises(InputError, match="nested"):
        files.from_json(document)
