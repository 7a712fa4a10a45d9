"""The guided visit walks the real screens with a real census; and what the screens call methods, levels and packets."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import stirred as st
from bench_client import BenchClient, form_in
from stirred.census.synthetic import write_preset
from stirred.mechanisms.registry import OWN_REGISTRATIONS
from stirred.publish.side_by_side import tables_of
from stirred.web import pages
from stirred.web.jobs import Job
from stirred.web.pages import SENTENCES, TITLES
from stirred.web.workbench import Workbench

MAX_WORDS = 25


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Workbench]:
    bench = Workbench.of(tmp_path / "bench", roots=(tmp_path,))
    yield bench
    bench.line.close()


def test_a_visit_walks_from_data_to_the_run(empty: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    client = BenchClient(empty)
    assert 'id="visit-start"' in client.get("/").text
    assert client.post("/visit/start").status == 303
    (job,) = empty.line.all()
    assert job.words == ("data", "synth", "demo", "--out", "census", "--households", "2000")
    page = client.get("/data")
    assert "Visit, step 1 of 5: Data" in page.words
    assert 'id="visit-next"' not in page.text  # the census is being made
    client.post("/visit/start")  # once more: no second census
    assert len(empty.line.all()) == 1
    write_preset("demo", empty.workspace.own_census, households=40)
    assert 'id="visit-next"' not in client.get("/data").text  # files lie there, and the job has not ended
    monkeypatch.setattr(Job, "state", "done")
    monkeypatch.setattr(Job, "ended", True)
    assert "Next: choose a method" in client.get("/data").words
    assert "stirred data synth demo --out census --households 2000" in client.get("/data").words
    method = client.get("/promise")
    assert "Visit, step 2 of 5: Method" in method.words
    assert '<button form="methods-form" id="visit-next">' in method.text
    client.post("/promise/start", form_in(method.text, "/promise/start"))
    promise = client.get("/promise")
    assert "Visit, step 3 of 5: Promise" in promise.words
    kept = client.post("/promise?part=0", {**form_in(promise.text, "/promise?part=0"), "next": "run"})
    assert kept.headers["location"] == "/run"
    run = client.get("/run")
    assert "Visit, step 4 of 5: Run" in run.words
    assert "Next: run plan" in run.words
    assert "Go on with step 4: Run" in client.get("/history").words
    client.post("/visit/end")
    assert 'id="visit"' not in client.get("/run").text


def test_a_visit_does_not_touch_data_that_are_there(bench: Workbench, client: BenchClient) -> None:
    assert 'id="visit-start"' not in client.get("/").text
    refused = client.post("/visit/start")
    assert refused.status == 422
    assert "stirred serve visit" in refused.words
    assert bench.line.all() == []
    assert not pages.is_visited(bench)


def test_each_stop_has_one_short_sentence() -> None:
    assert len(SENTENCES) == len(TITLES) == 5
    for sentence in SENTENCES:
        assert sentence.endswith(".")
        assert sentence.count(". ") == 0
        assert len(sentence.split()) <= MAX_WORDS, sentence


def test_methods_have_labels_and_no_label_is_a_name(bench: Workbench, client: BenchClient) -> None:
    page = client.get("/promise").text
    for one in OWN_REGISTRATIONS:
        assert one.label
        assert "-" not in one.label
        assert f"<strong>{one.label}</strong>" in page
        assert f"<strong>{one.name}</strong>" not in page
    assert len({one.label for one in OWN_REGISTRATIONS}) == len(OWN_REGISTRATIONS)


def test_a_setting_that_accepts_is_named_by_its_label(bench: Workbench, client: BenchClient) -> None:
    client.post("/promise/start", {"mechanism": "permutation-swapping"})
    form = form_in(client.get("/promise").text, "/promise?part=0") | {"s.accept_reversal": ["tenure"]}
    refused = client.post("/promise?part=0", form)
    assert "Why tenure is accepted (publish though it tells the place)" in refused.words
    assert "accept_reversal" not in refused.words


def packet_of(bench: Workbench, number: int, rate: str) -> None:
    """Run the town's swap in this process, as run ``number``."""
    client = BenchClient(bench)
    client.post("/promise/start", {"mechanism": "permutation-swapping"})
    text = bench.history.text().replace('rate = "1/20"', f'rate = "{rate}"')
    client.post("/method/text", {"text": text.replace("utility = true", "utility = false")})
    st.run(bench.plan(), bench.workspace.packets / f"{number:04}", key=st.Key.for_tests(number))


def test_compare_shows_accuracy_over_cells_where_both_err_and_the_bar_names_the_packet(
    bench: Workbench, client: BenchClient
) -> None:
    for number, rate in ((1, "1/20"), (2, "1/2")):
        packet_of(bench, number, rate)
    page = client.get("/compare?side=1&side=2")
    assert "How far are their numbers off?" in page.words
    tables, compared = [tables_of(bench.packet(number)) for number in (1, 2)], []
    for name in set(tables[0]) & set(tables[1]):
        reaches = []
        (by, first), (_, second) = tables[0][name], tables[1][name]
        rows = [{tuple(row[v] for v in by): row for row in table.to_pylist()} for table in (first, second)]
        both = [key for key in rows[0] if all((one[key]["standard_error"] or 0) > 0 for one in rows)]
        if both:  # the median reach of the interval, counted here without the library
            for one in rows:
                widths = sorted(
                    max(float(row["high"] - row["estimate"]), float(row["estimate"] - row["low"]))
                    for row in (one[key] for key in both)
                )
                half = len(widths) // 2
                reaches.append(widths[half] if len(widths) % 2 else (widths[half - 1] + widths[half]) / 2)
            assert reaches[0] < reaches[1]  # more homes moved: wider intervals
            row = re.search(rf"{name} {len(both)} ± ([\d.,]+) ± ([\d.,]+)", page.words)
            assert row is not None, name
            assert [float(cell) for cell in row.groups()] == pytest.approx(reaches, rel=0.05)
            compared.append(name)
    assert compared
    assert "How far are their numbers off?" not in client.get("/compare?side=1&side=whatif-state").words
    for number in (1, 2):
        look = client.get(f"/look/{number}")
        assert f'src="/look/{number}/report/public"' in look.text
        assert f"5. Look packet {number} " in look.words
        assert f"7. Packet packet {number}: ready to download" in look.words
        assert f'href="/packet/{number}"' in look.text
    assert "5. Look packet 2 " in client.get("/run").words
