"""Public constructors and verbs: wrong types are refused at once with what, why and fix; reprs are short and safe."""

from collections.abc import Callable
from pathlib import Path

import pytest

import stirred as st
from stirred.errors import StirredError
from stirred.publish.packet import Packet

KEY = st.Key.for_tests(1)
PLACES = {"state": ["s"] * 6, "county": ["a", "b"] * 3, "size": [1, 1, 2, 2, 1, 1]}
CENSUS = st.Census.of(
    {"name": "<b>town</b>", "geography": {"spine": ["state", "county"]}},
    {"household": {**PLACES, "tenure": ["o", "SECRET", "o", "r", "r", "o"]}},
)
SWAP = st.PermutationSwapping(match=["state", "size"], swap=["county"], rate="1/5")
MARGINS = st.ExactMargins(rows="county", columns="tenure", rho_squared="1/2")
RELEASE = SWAP.release(CENSUS, key=KEY)
PROMISE = RELEASE.specification
PARTS = {
    "domain": st.Domain(name="toy"),
    "multiverse": st.Multiverse.none(),
    "input_premetric": st.Hamming("household"),
    "output_premetric": st.Multiplicative(),
    "budget": st.Budget.of(1),
}


def swap(**settings: object) -> object:
    return st.PermutationSwapping(**{"swap": ["county"], "rate": "1/5", **settings})  # type: ignore[arg-type]


DOORS: dict[str, Callable[[], object]] = {
    "a seed for a key": lambda: SWAP.release(CENSUS, key=1),  # type: ignore[arg-type]
    "no key": lambda: MARGINS.release(CENSUS, key=None),  # type: ignore[arg-type]
    "a path for a census": lambda: SWAP.release("census.toml", key=KEY),  # type: ignore[arg-type]
    "a table for a census": lambda: SWAP.specification({"a": [1]}),  # type: ignore[arg-type]
    "topdown and a path": lambda: st.TopDown().specification("x"),  # type: ignore[arg-type]
    "margins and a path": lambda: MARGINS.specification("x"),  # type: ignore[arg-type]
    "a name for an engine": lambda: SWAP.release(CENSUS, key=KEY, engine="local"),  # type: ignore[arg-type]
    "one name to swap": lambda: swap(swap="county"),
    "a number to swap": lambda: swap(swap=1),
    "numbers to swap": lambda: swap(swap=[1]),
    "a number to hold": lambda: swap(hold=1),
    "a float rate": lambda: swap(rate=0.05),
    "no record type": lambda: swap(resolution=3),
    "a text for a choice": lambda: swap(microdata="no"),
    "rates that are no table": lambda: st.VaryingRates(swap=["c"], rate="1/5", by="a", rates=2),  # type: ignore[arg-type]
    "a number as workload": lambda: st.TopDown(workload=3),
    "half a replicate": lambda: st.TopDown(replicates=2.5),
    "a word as emphasis": lambda: st.TopDown(emphasis="a"),
    "a word as budget": lambda: st.TopDown(rho_squared="x"),
    "an unknown mode": lambda: st.TopDown(mode="x"),
    "an unknown layout": lambda: st.TopDown(names="quick"),
    "a number as packet of topdown": lambda: st.TopDown(given=3),
    "a float for a budget": lambda: st.TopDown(rho_squared=2.63),
    "one replicate": lambda: st.TopDown(replicates=1),
    "a number as row": lambda: st.ExactMargins(rows=1, columns="t", rho_squared="1/2"),  # type: ignore[arg-type]
    "read a number": lambda: st.read(1),  # type: ignore[arg-type]
    "load nothing": lambda: st.load(None),  # type: ignore[arg-type]
    "run a number": lambda: st.run(1, "out", key=KEY),  # type: ignore[arg-type]
    "run with a seed": lambda: st.run("plan.toml", "out", key=1),  # type: ignore[arg-type]
    "run a file that is not there": lambda: st.run("no-plan.toml", "out", key=KEY),
    "save a promise": lambda: st.save(PROMISE, "out"),  # type: ignore[arg-type]
    "save nowhere": lambda: st.save(RELEASE, None),  # type: ignore[arg-type]
    "a number as packet": lambda: st.Packet(1),  # type: ignore[arg-type]
    "compare numbers": lambda: st.compare(1, 2),  # type: ignore[arg-type]
    "compare an unknown name": lambda: st.compare("das-2002", "das-2020"),
    "an entry by number": lambda: st.catalog[1],  # type: ignore[index]
    "a distance of numbers": lambda: st.Hamming(1),  # type: ignore[arg-type]
    "a margin of numbers": lambda: st.Margin(1, ("block",)),  # type: ignore[arg-type]
    "a word as invariant": lambda: st.Multiverse.of("x"),  # type: ignore[arg-type]
    "a domain without name": lambda: st.Domain(name=1),  # type: ignore[arg-type]
    "a word as domain": lambda: st.Specification(**{**PARTS, "domain": "d"}),  # type: ignore[arg-type]
    "a word as distance": lambda: st.Specification(**{**PARTS, "input_premetric": "d"}),  # type: ignore[arg-type]
    "a word as measure": lambda: st.Specification(**{**PARTS, "output_premetric": "D"}),  # type: ignore[arg-type]
    "imply a name": lambda: PROMISE.implies("das-2020"),  # type: ignore[arg-type]
    "within a number": lambda: PROMISE.within(1),  # type: ignore[arg-type]
    "a number as limit": lambda: st.Ledger(limit=1),  # type: ignore[arg-type]
    "a number as secret": lambda: st.Key(1),  # type: ignore[arg-type]
    "a word as seed": lambda: st.Key.for_tests("a"),  # type: ignore[arg-type]
    "a number as key file": lambda: st.Key.load(1),  # type: ignore[arg-type]
    "a workload by number": lambda: st.Workload.preset(1),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("wrong", DOORS)
def test_wrong_types_are_refused_with_what_why_and_fix(wrong: str) -> None:
    with pytest.raises(StirredError) as caught:
        DOORS[wrong]()
    error = caught.value
    assert error.what
    assert error.why
    assert error.fix
    assert "SECRET" not in str(error)


def test_compare_takes_names_releases_and_specifications() -> None:
    assert st.compare("das-2010", "das-2020").overall.relation.value == "incomparable"
    assert st.compare("whatif-state@1/2", st.catalog["whatif-state"]).overall.relation.value == "stronger"
    assert st.compare(RELEASE, PROMISE).overall.relation.value == "equal"


def test_the_catalog_is_a_mapping() -> None:
    names = list(st.catalog)
    assert len(st.catalog) == len(names) == len(set(names))
    assert "das-2020" in st.catalog
    assert 1 not in st.catalog
    assert list(st.catalog.keys()) == names
    assert st.catalog.entry("das-2020").specification == st.catalog["das-2020"]
    assert "das-2020" in repr(st.catalog)


SHOWN = [CENSUS, RELEASE, PROMISE, st.compare(PROMISE, PROMISE), RELEASE.ledger, Packet(Path("nowhere"))]


@pytest.mark.parametrize("thing", SHOWN, ids=lambda thing: type(thing).__name__)
def test_reprs_are_short_and_pages_are_escaped(thing: object) -> None:
    assert len(repr(thing)) < 300
    assert repr(thing).startswith(type(thing).__name__)
    page = thing._repr_html_()  # type: ignore[attr-defined]
    assert "<table" in page or "<section" in page or "<div" in page
    for text in (repr(thing), page):
        assert "SECRET" not in text
    assert "<b>town" not in page
    assert "<script" not in page


def test_a_census_shows_its_schema_and_no_count() -> None:
    page = CENSUS._repr_html_()
    assert "&lt;b&gt;town&lt;/b&gt;" in page
    assert "state &gt; county" in page
    assert "6" not in page
    assert "6" not in repr(CENSUS)


def test_a_packet_shows_its_promise(tmp_path: Path) -> None:
    packet = st.save(RELEASE, tmp_path / "packet", title="Town & country", accept_small_effect="a test")
    assert repr(Packet(str(tmp_path / "packet"))) == repr(packet)  # type: ignore[arg-type]
    page = packet._repr_html_()
    assert "Town &amp; country" in page
    assert "d_Ham(household)" in page
    assert "NOT PRIVATE" in page
    assert "internal" not in page
