"""Two hundred requests at once: no fault, and nothing that was acknowledged is lost."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from bench_client import BenchClient, Reply
from small_town import write_town
from stirred.web.workbench import Workbench
from stirred.web.workspace import PlanHistory, Workspace, read_document, write_document

REQUESTS, AT_ONCE = 200, 25
MULTIPART = "multipart/form-data; boundary=xx"


def race(client: BenchClient, calls: list[tuple[str, dict[str, object]]]) -> list[Reply]:
    """Send all forms, as many at once as there are threads; each thread is a tab with a loop of its own."""
    start = Barrier(AT_ONCE)

    def tab(mine: list[tuple[int, str, dict[str, object]]]) -> list[tuple[int, Reply]]:
        start.wait()
        return [
            (n, client.post(p, f) if p != "/data/upload" else upload(client, str(f["text"])))
            for n, p, f in mine
        ]

    numbered = [(number, path, form) for number, (path, form) in enumerate(calls)]
    with ThreadPoolExecutor(AT_ONCE) as tabs:
        found = [
            pair for some in tabs.map(tab, [numbered[n::AT_ONCE] for n in range(AT_ONCE)]) for pair in some
        ]
    return [reply for _, reply in sorted(found, key=lambda pair: pair[0])]


def upload(client: BenchClient, text: str) -> Reply:
    csrf = client.bench.session.csrf
    head = "--xx\r\ncontent-disposition: form-data; name="
    body = f'{head}"csrf"\r\n\r\n{csrf}\r\n{head}"files"; filename="census.toml"\r\n\r\n{text}\r\n--xx--\r\n'
    return client.send("POST", "/data/upload", body=[body.encode()], kind=MULTIPART)


def test_two_hundred_racing_requests_lose_nothing(tmp_path: Path) -> None:
    write_town(tmp_path / "town")
    bench = Workbench.of(tmp_path / "bench", roots=(tmp_path,), most_upload=100_000)
    client = BenchClient(bench)
    codebook = (tmp_path / "town" / "census.toml").read_text()
    for name in ("household.csv", "person.csv"):
        (bench.workspace.folder / "census").mkdir(exist_ok=True)
        (bench.workspace.own_census / name).write_bytes((tmp_path / "town" / name).read_bytes())
    assert upload(client, f"{codebook}\n# first").status == 303
    assert client.post("/promise/start", {"mechanism": "permutation-swapping"}).status == 303
    plan = bench.history.text()
    calls: list[tuple[str, dict[str, object]]] = []
    for number in range(REQUESTS // 5):
        calls += [
            ("/method/text", {"text": f"{plan}\n# plan {number:03}"}),
            ("/data/codebook", {"text": f"{codebook}\n# codebook {number:03}"}),
            ("/data/upload", {"text": f"{codebook}\n# upload {number:03}"}),
            ("/data/figures", {"households": str(100 + number), "largest": str(1000 + number)}),
            ("/run/start", {}) if number % 2 else ("/history/restore", {"number": "1", "back": "history"}),
        ]
    random.Random(39).shuffle(calls)
    replies = race(client, calls)
    assert len(replies) == REQUESTS
    assert {reply.status for reply in replies} == {303}
    # every plan is a version of the history, listed once
    versions = bench.history.versions()
    assert [v.number for v in versions] == list(range(1, 2 + REQUESTS // 5))
    texts = [bench.history.text(v.number) for v in versions]
    assert all(any(text.endswith(f"# plan {n:03}\n") for text in texts) for n in range(REQUESTS // 5))
    # every codebook is the current one, or kept beside it
    own = bench.workspace.own_census
    written = [path.read_text() for path in own.glob("census*.toml")]
    wanted = [f"# {kind} {n:03}" for kind in ("codebook", "upload") for n in range(REQUESTS // 5)]
    assert [one for one in wanted if not any(text.rstrip().endswith(one) for text in written)] == []
    assert (own / "census.toml").is_file()
    # the figures are those of one request, not a mixture of two
    chosen = bench.require_data()
    assert chosen.largest == chosen.households + 900
    # every run has a number and a folder of its own
    jobs = bench.line.all()
    assert [job.number for job in jobs] == list(range(1, 1 + REQUESTS // 10))
    assert len({job.words for job in jobs if job.kind == "run"}) == REQUESTS // 10
    left = [path.name for path in bench.workspace.folder.rglob("*") if ".part" in path.name]
    assert left == []
    faults = [
        line for line in (bench.workspace.folder / "serve.log").read_text().splitlines() if "fault" in line
    ]
    assert faults == []


def test_two_servers_in_one_folder_lose_nothing(tmp_path: Path) -> None:
    """The lock is also one of the system: two objects stand for two processes."""
    spaces = [Workspace.of(tmp_path / "bench") for _ in range(2)]
    histories = [PlanHistory.of(space.plans, space.lock) for space in spaces]
    with ThreadPoolExecutor(8) as crowd:
        made = list(crowd.map(lambda n: histories[n % 2].add(f"# {n}\n", "race"), range(60)))
    assert sorted(made) == list(range(1, 61))
    assert [v.number for v in histories[0].versions()] == list(range(1, 61))


def test_a_document_is_whole_for_whoever_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    write_document(path, {"number": 0})
    with ThreadPoolExecutor(8) as crowd:
        writing = [crowd.submit(write_document, path, {"number": n, "more": "x" * 5000}) for n in range(100)]
        while not all(one.done() for one in writing):
            assert "number" in read_document(path)
        assert [one.exception() for one in writing] == [None] * 100
    assert json.loads(path.read_text())["more"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["one.json"]
