"""Sixty kinds of faulty or dangerous input, each with what must become of it. Run it to print the table.

A census of 160 invented households is damaged, or its plan is changed, in one way at a time; then ``stirred run`` is asked
for a packet. A kind is refused, published with a warning, or published because nothing in it is wrong.
"""

import contextlib
import csv
import io
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import polars as pl
import xlsxwriter

from stirred.chance import Key
from stirred.cli.main import main

Row = dict[str, Any]
Outcome = Literal["refused", "warned", "published"]

REGIONS = {"A": ["A01", "A02", "A03"], "B": ["B01", "B02", "B03"]}
CENSUS = """name = "town"
largest_household = 10
[geography]
spine = ["region", "gem"]
type = "text"
[record.household]
files = ["h.csv"]
id = "hid"
size = "size"
weight = "weight"
[record.household.variables]
size = "1..10"
tenure = ["own", "rent", "free"]
[record.person]
files = ["p.csv"]
id = "pid"
household = "hid"
[record.person.variables]
sex = ["f", "m"]
age = "0..115"
rel = ["head", "child"]
"""
SWAP = 'name = "permutation-swapping"\nmatch = ["region", "size"]\nswap = ["gem"]\nrate = "1/5"\n'
TABLES = 'tables = [["gem", "tenure"]]\n'
WHY = 'without_guarantee = "a test"\n'
WORKLOAD = """name = "w"
record = "household"
rho_squared = "{budget}"
levels = ["region", "gem"]
[[axis]]
name = "ten"
labels = ["own", "rent", "free"]
source = {{ column = "tenure", values = [["own"], ["rent"], ["free"]] }}
[[query]]
name = "total"
[[query]]
name = "all"
of = ["ten"]
[level_shares]
region = "1/2"
gem = "1/2"
[query_shares.region]
all = 1
[query_shares.gem]
all = 1
{rule}"""
EXACT = '[[rule]]\nname = "r"\nkind = "exact"\nquery = "all"\nlevel = "gem"\n'


@dataclass(slots=True)
class Office:
    """The files of an office before they are written: rows, the codebook, the plan, and what is done to bytes."""

    homes: list[Row]
    people: list[Row]
    census: str = CENSUS
    mechanism: str = SWAP + 'drop = ["weight"]\n'
    head: str = ""  # of the plan
    edit: Callable[[bytes], bytes] = bytes  # of the household file
    more: dict[str, bytes] = field(default_factory=dict)
    last: Callable[[Path], object] = bool  # done when all files are there

    @staticmethod
    def sound() -> "Office":
        """160 households in six places, with their persons."""
        dice = random.Random(3)
        homes: list[Row] = []
        people: list[Row] = []
        for number in range(1, 161):
            region, size = dice.choice("AB"), dice.choice([1, 1, 2, 2, 3, 4])
            home = {
                "hid": f"{number:04}",
                "region": region,
                "gem": dice.choice(REGIONS[region]),
                "size": size,
            }
            tenure = dice.choice(["own", "rent", "free"])
            homes.append(home | {"tenure": tenure, "weight": round(dice.uniform(80, 120), 2)})
            for k in range(size):
                person = {"pid": f"{number:04}{k}", "hid": home["hid"], "sex": dice.choice("fm")}
                people.append(person | {"age": dice.randint(0, 95), "rel": "child" if k else "head"})
        return Office(homes, people)

    def column(
        self, name: str, values: Callable[[int], object], *, of: str = "homes", declared: str = ""
    ) -> None:
        """Add a column to the records, and to the codebook where it is declared."""
        rows = self.homes if of == "homes" else self.people
        for number, row in enumerate(rows):
            row[name] = values(number)
        if declared:
            after = "tenure = [" if of == "homes" else "rel = ["
            self.census = self.census.replace(after, f"{name} = {declared}\n{after}")

    def write(self, folder: Path) -> None:
        """Write all files."""
        for name, rows, sound in (("h.csv", self.homes, 0), ("p.csv", self.people, 1)):
            first = rows[0] if rows else (Office.sound().homes, Office.sound().people)[sound][0]
            text = io.StringIO(newline="")
            out = csv.DictWriter(text, list(first), lineterminator="\n")
            out.writeheader()
            out.writerows(rows)
            data = text.getvalue().encode()
            (folder / name).write_bytes(self.edit(data) if name == "h.csv" else data)
        for name, content in self.more.items():
            (folder / name).write_bytes(content)
        (folder / "census.toml").write_text(self.census, encoding="utf-8")
        plan = f'title = "t"\ncensus = "census.toml"\n{self.head}[[mechanism]]\n{self.mechanism}'
        (folder / "plan.toml").write_text(plan + "[assess]\nutility = false\n", encoding="utf-8")
        self.last(folder)


Change = Callable[[Office], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    """One kind: what is done to the office, what must become of it, and words that the reason must have."""

    name: str
    change: Change
    outcome: Outcome
    says: str
    secret: str = ""  # a value of a record that no message may show
    drawn: bool = False  # whether the sentence is about a draw: it is made with a key for tests


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of it: the exit code, all that was said, and the files that were left."""

    code: object
    said: str
    left: tuple[str, ...]
    first_line: str = ""  # of the card

    @property
    def outcome(self) -> str:
        """Refused, warned, published; anything else is a crash."""
        if self.code == 0:
            warned = "warning:" in self.said or "nearly the truth" in self.first_line
            return "warned" if warned else "published"
        return "refused" if self.code == 2 and "why:" in self.said and "fix:" in self.said else "crashed"

    @property
    def sentence(self) -> str:
        """The refusal with its reason, or the warning."""
        lines = [line.strip() for line in self.said.splitlines()]
        if self.outcome == "refused":
            what = next(line for line in lines if line.startswith("error: ")).removeprefix("error: ")
            return f"{what}: {next(line for line in lines if line.startswith('why: ')).removeprefix('why: ')}"
        told = [line.removeprefix("warning: ") for line in lines if line.startswith("warning: ")]
        return "; ".join(told) or (self.first_line.lstrip("# ") if self.outcome == "warned" else "a packet")


def tried(danger: Danger, folder: Path) -> Result:
    """Damage, run, and tell what became of it."""
    office = Office.sound()
    danger.change(office)
    office.write(folder)
    if danger.drawn:
        Key.for_tests(1).save(folder / "tests.key")
    before = {path.name for path in folder.iterdir()}
    out, err = io.StringIO(), io.StringIO()
    code: object
    with inside(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            key = ("--key", "tests.key") if danger.drawn else ()
            code = main(["run", "plan.toml", "--out", "packet", "--public-only", *key])
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            code = f"{type(error).__name__}"
    card = folder / "packet" / "public" / "card.md"
    return Result(
        code=code,
        said=out.getvalue() + err.getvalue(),
        left=tuple(sorted({path.name for path in folder.iterdir()} - before)),
        first_line=card.read_text(encoding="utf-8").splitlines()[0] if card.is_file() else "",
    )


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder for a while."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)


def put(table: str, number: int, **values: object) -> Change:
    """A change of one record."""
    return lambda office: getattr(office, table)[number].update(values)


def mechanism(text: str, **files: str) -> Change:
    """Another [[mechanism]]."""

    def change(office: Office) -> None:
        office.mechanism = text
        office.more |= {f"{name}.toml": content.encode() for name, content in files.items()}

    return change


def data(edit: Callable[[bytes], bytes]) -> Change:
    """A change of the bytes of the household file."""

    def change(office: Office) -> None:
        office.edit = edit

    return change


def column(
    name: str, values: Callable[[int], object], *, of: str = "homes", declared: str = "", by: str = ""
) -> Change:
    """One more column, which the swap or another mechanism releases."""

    def change(office: Office) -> None:
        office.column(name, values, of=of, declared=declared)
        office.mechanism = by or office.mechanism

    return change


def _few(office: Office, number: int) -> None:
    office.homes = office.homes[:number]
    known = {home["hid"] for home in office.homes}
    office.people = [person for person in office.people if person["hid"] in known]


def _alone(office: Office) -> None:
    office.people = [person for person in office.people if person["hid"] != office.homes[7]["hid"]]


def _alike(office: Office) -> None:
    for home in office.homes:
        home["tenure"] = "own"
    for person in office.people:
        person.update(sex="f", age=30, rel="child")


def _each(office: Office, **values: Callable[[Row], object]) -> None:
    for home in office.homes:
        home.update({name: made(home) for name, made in values.items()})


def _units(office: Office) -> None:
    for number, home in enumerate(office.homes):
        home["gem"] = f"{home['region']}{number:05}"


def _areas(office: Office) -> None:
    lines = ["code,parent,level", "A,,region", "B,,region"]
    lines += [f"{area},{region},gem" for region, areas in REGIONS.items() for area in areas]
    office.more["areas.csv"] = ("\n".join(lines) + "\n").encode()
    keys = '[geography.areas]\nfiles = ["areas.csv"]\ncode = "code"\nparent = "parent"\nlevel = "level"\n'
    office.census = office.census.replace("[record.household]\n", keys + "[record.household]\n")
    office.homes[3]["gem"] = "Z99"


def _kept_weight(office: Office) -> None:
    office.mechanism = SWAP


def _telling_weight(office: Office) -> None:
    _kept_weight(office)
    weights = {area: place + 1 for place, area in enumerate([*REGIONS["A"], *REGIONS["B"]])}
    _each(office, weight=lambda home: weights[home["gem"]])


def _workbook(office: Office) -> None:
    def write(folder: Path) -> None:
        with xlsxwriter.Workbook(folder / "h.xlsx") as book:
            for name in ("Sheet1", "Sheet2"):
                sheet = book.add_worksheet(name)
                for place, row in enumerate(
                    [list(office.homes[0]), *(list(h.values()) for h in office.homes)]
                ):
                    sheet.write_row(place, 0, row)

    office.census = office.census.replace('"h.csv"', '"h.xlsx"')
    office.last = write


def _parquet(office: Office) -> None:
    def write(folder: Path) -> None:
        pl.DataFrame(office.homes).write_parquet(folder / "h.parquet")
        path = folder / "h.parquet"
        path.write_bytes(path.read_bytes()[:-40])

    office.census = office.census.replace('"h.csv"', '"h.parquet"')
    office.last = write


def _accepted(office: Office) -> None:
    office.mechanism = f'name = "special-tabulations"\n{TABLES}base = 1\n{WHY}'
    office.head = 'accept_small_effect = "invented records"\n'


def _doubled(text: bytes) -> bytes:
    first, *lines = text.strip().split(b"\n")
    return b"\n".join([first + b",tenure", *(line + b",own" for line in lines)])


def _by(name: str, more: str) -> str:
    return f'name = "{name}"\n{more}'


CELL_KEY = f'tables = [["gem", "{{}}"]]\n{WHY}'
TARGETED = (
    'name = "targeted-swapping"\nhierarchy = ["region", "gem"]\nsimilar = [["size"]]\n'
    f'swaprate = "1/100000"\ndrop = ["weight"]\n{WHY}'
)
SURNAME = [f"Zzmark{'abcdefgh'[k % 8] * (k // 8 + 1)}" for k in range(400)]
COMMON = ["Gruber", "Huber", "Wagner", "Pichler", "Moser"]


def refused(name: str, change: Change, says: str, *, secret: str = "", drawn: bool = False) -> Danger:
    """A kind that must be refused, with these words in the reason."""
    return Danger(name=name, change=change, outcome="refused", says=says, secret=secret, drawn=drawn)


def warned(name: str, change: Change, says: str) -> Danger:
    """A kind that is published with a warning."""
    return Danger(name=name, change=change, outcome="warned", says=says)


def published(name: str, change: Change) -> Danger:
    """A kind that is no danger."""
    return Danger(name=name, change=change, outcome="published", says="")


DANGERS: tuple[Danger, ...] = (
    # records that break a rule
    refused("two households with one identifier", put("homes", 5, hid="0007"), "identifiers used before"),
    refused(
        "two persons with one identifier",
        lambda o: o.people[5].update(pid=o.people[6]["pid"]),
        "identifiers used before",
    ),
    refused("a person of no household", put("people", 5, hid="9999"), "orphans", secret="9999"),
    refused("a household without persons", _alone, "not the number of its person records"),
    refused(
        "a size that is not the number of persons",
        lambda o: o.homes[3].update(size=o.homes[3]["size"] + 1),
        "not the number of its person records",
    ),
    refused("a size of 0", put("homes", 3, size=0), "outside the listed levels"),
    refused(
        "a code that is not listed",
        put("homes", 3, tenure="ZZMARK"),
        "outside the listed levels",
        secret="ZZMARK",
    ),
    refused("an empty code", put("homes", 3, tenure=""), "missing values"),
    refused("a code with a space behind it", put("homes", 3, tenure="own "), "outside the listed levels"),
    refused("a code with a line break", put("homes", 3, tenure="own\n"), "outside the listed levels"),
    refused("an empty area", put("homes", 3, gem=""), "missing values"),
    refused(
        "an area with a space behind it",
        lambda o: o.homes[3].update(gem=o.homes[3]["gem"] + " "),
        "look like another one",
    ),
    refused(
        "an area in small letters",
        lambda o: o.homes[3].update(gem=o.homes[3]["gem"].lower()),
        "look like another one",
    ),
    refused(
        "an area in two regions",
        lambda o: next(h for h in o.homes if h["region"] == "A").update(gem="B01"),
        "two areas of the level above",
    ),
    refused("an area that the file of areas does not have", _areas, "does not know", secret="Z99"),
    refused("a negative weight", put("homes", 3, weight=-4.2), "negative values"),
    refused("an empty weight", put("homes", 3, weight=""), "missing values"),
    refused("a weight that is NaN", put("homes", 3, weight="NaN"), "not finite"),
    refused("an infinite weight", put("homes", 3, weight="inf"), "not finite"),
    refused("a weight with points and a comma", put("homes", 3, weight="1.234,5"), "not numbers"),
    warned("a weight of 0", put("homes", 3, weight=0), "weights of 0"),
    refused("an age below 0", put("people", 3, age=-9), "outside the listed levels"),
    refused("an age in letters", put("people", 3, age="abc"), "not whole numbers"),
    refused("an age with a half", put("people", 3, age="34.5"), "not whole numbers"),
    warned(
        "two heads of a household",
        lambda o: next(p for p in o.people if p["rel"] == "child").update(rel="head"),
        "more than one head",
    ),
    # files that are not what they say
    refused("a header with a space", data(lambda t: t.replace(b"tenure", b"tenure ", 1)), "lacks tenure"),
    refused("a column that is missing", lambda o: [home.pop("tenure") for home in o.homes], "lacks tenure"),
    refused("a column that stands twice", data(_doubled), "names a column twice"),
    published(
        "a byte order mark and Windows line ends", data(lambda t: b"\xef\xbb\xbf" + t.replace(b"\n", b"\r\n"))
    ),
    refused("a file that ends in the middle of a line", data(lambda t: t[:-14]), "missing values"),
    refused(
        "a line with one field too many",
        data(lambda t: t.replace(b"\n0004,", b"\n0004,xx,", 1)),
        "more fields than the header",
    ),
    refused("an empty file", data(lambda _: b""), "the file is empty"),
    refused("a zero byte", data(lambda t: t.replace(b"\n0004,", b"\n\x000004,", 1)), "break"),
    refused("Latin-1 that is not declared", data(lambda t: t.replace(b"own", b"\xf6wn", 1)), "not UTF-8"),
    refused("a Parquet file that ends in the middle", _parquet, "h.parquet"),
    refused("a workbook with two sheets, none named", _workbook, "which sheet"),
    # nearly empty
    refused("headers without records", lambda o: _few(o, 0), "no records"),
    refused("one record", lambda o: _few(o, 1), "nothing can move"),
    refused("one area", lambda o: _each(o, region=lambda _: "A", gem=lambda _: "A01"), "nothing can move"),
    warned("all records alike", _alike, "all records are alike"),
    # columns that tell who is who
    refused("an area for each household", _units, "areas hold one"),
    refused(
        "surnames of which 40 % are unique",
        column(
            "surname", lambda k: SURNAME[k] if k % 5 < 2 else COMMON[k % 5], of="people", declared='"text"'
        ),
        "look like names of persons",
        secret="Zzmark",
    ),
    refused(
        "telephone numbers in every fifth note",
        column(
            "note",
            lambda k: f"tel 0664 73910{k:02}" if k % 5 == 0 else "",
            of="people",
            declared='{ type = "text", missing = "keep" }',
        ),
        "look like telephone numbers",
        secret="73910",
    ),
    refused(
        "mail addresses",
        column("contact", lambda k: f"zzmark{k % 9}@example.org", declared='"text"'),
        "look like mail addresses",
        secret="zzmark",
    ),
    refused(
        "numbers of bank accounts",
        column("account", lambda k: f"AT61 1904 3002 7391 {k % 9:04}", declared='"text"'),
        "look like numbers of bank accounts",
        secret="7391",
    ),
    refused(
        "national numbers of persons",
        column("number", lambda k: f"739-14-{k % 9:04}", declared='"text"'),
        "look like national numbers",
        secret="739-14",
    ),
    refused(
        "exact rents",
        column("rent", lambda k: 300 + 7391 * k % 2200, declared='"integer"'),
        "a value of their own",
    ),
    published(
        "rents by bands", column("rent", lambda k: 300 + 7391 * k % 2200, declared='{ bands = "1-2-5" }')
    ),
    refused(
        "coordinates",
        column("east", lambda k: 4_300_000 + 7391 * k, declared='"integer"'),
        "a value of their own",
        secret="4307391",
    ),
    refused("a weight that no other household has", _kept_weight, "a value of their own"),
    refused("a weight that tells the area", _telling_weight, "undo the swap", drawn=True),
    refused(
        "cell keys on a table by surnames",
        column(
            "surname", lambda k: SURNAME[k], declared='"text"', by=_by("cell-key", CELL_KEY.format("surname"))
        ),
        "would identify records",
        secret="Zzmark",
    ),
    refused(
        "a rounded table by exact rents",
        column(
            "rent",
            lambda k: 300 + 7391 * k % 2200,
            declared='"integer"',
            by=_by("special-tabulations", CELL_KEY.format("rent")),
        ),
        "would identify records",
    ),
    # plans that publish the truth
    refused(
        "a swap of one household in a million",
        mechanism(SWAP.replace("1/5", "1/1000000") + 'drop = ["weight"]\n'),
        "nearly the truth",
    ),
    refused(
        "a targeted swap of one in 100,000",
        mechanism(TARGETED),
        "nearly the truth",
    ),
    refused(
        "noise with ρ² = 1,000,000",
        mechanism(_by("gaussian-tables", f'{TABLES}rho_squared = "1000000"\n')),
        "nearly the truth",
    ),
    refused(
        "TopDown with every count exact",
        mechanism(
            _by("topdown", 'workload = "w.toml"\nreplicates = 0\n'), w=WORKLOAD.format(budget="1", rule=EXACT)
        ),
        "publishes the truth",
    ),
    refused(
        "cell keys that keep 9,999 counts of 10,000",
        mechanism(_by("cell-key", f'{TABLES}pstay = "0.9999"\n{WHY}')),
        "nearly the truth",
    ),
    refused(
        "counts rounded to multiples of 1",
        mechanism(_by("special-tabulations", f"{TABLES}base = 1\n{WHY}")),
        "nearly the truth",
    ),
    warned("the same, accepted with a reason", _accepted, "nearly the truth"),
)


def line(danger: Danger, result: Result) -> str:
    """One line of the table."""
    return f"| {danger.name} | {result.outcome} | {result.sentence.replace('|', chr(92) + '|')} |"


HEAD = ("| kind | outcome | what is said |", "|---|---|---|")


def show() -> None:
    """Print the table of all kinds, and how many were refused, warned of and published."""
    lines, outcomes = [], []
    for danger in DANGERS:
        with tempfile.TemporaryDirectory() as folder:
            result = tried(danger, Path(folder))
        lines.append(line(danger, result))
        outcomes.append(result.outcome)
    print("\n".join([*HEAD, *lines]))
    print({outcome: outcomes.count(outcome) for outcome in dict.fromkeys(outcomes)})


if __name__ == "__main__":
    show()
