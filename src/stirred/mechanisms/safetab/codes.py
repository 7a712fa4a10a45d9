"""The code lists of detailed race and ethnicity: which population groups there are, and which codes lead to each.

A *characteristic iteration* is a group such as "Albanian alone" or "Albanian alone or in any combination". The lists are
public files in the Bureau's format (facts: SafeTab-P documentation, Section 3): four texts with ``|`` between fields.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib.resources import as_file, files
from itertools import product
from pathlib import Path

from stirred.errors import DataError, InputError
from stirred.toml_text import CsvTable, require_plain

RACE_FILE = "race-characteristic-iterations.txt"
ETHNICITY_FILE = "ethnicity-characteristic-iterations.txt"
CODE_FILE = "race-and-ethnicity-codes.txt"
MAP_FILE = "race-and-ethnicity-code-to-iteration.txt"
FILE_COLUMNS = {
    RACE_FILE: ("ITERATION_CODE", "ITERATION_NAME", "LEVEL", "ALONE", "DETAILED_ONLY", "COARSE_ONLY"),
    ETHNICITY_FILE: ("ITERATION_CODE", "ITERATION_NAME", "LEVEL", "DETAILED_ONLY", "COARSE_ONLY"),
    CODE_FILE: ("RACE_ETH_CODE", "RACE_ETH_NAME"),
    MAP_FILE: ("ITERATION_CODE", "RACE_ETH_CODE"),
}
LEVELS = (1, 2)  # 1: regional groups, 2: detailed groups; level 0, the major races, is published elsewhere
_FLAGS = {"True": True, "False": False, "Null": False, "": False}


@dataclass(frozen=True, slots=True)
class Iteration:
    """A characteristic iteration; ``alone`` is None for an ethnicity."""

    code: str
    name: str
    level: int
    alone: bool | None
    detailed_only: bool = False
    coarse_only: bool = False

    def belongs(self, level: int, *, fine: bool) -> bool:
        """Return whether it is tabulated at a level, in regions with the fine or the coarse lists."""
        return self.level == level and not (self.coarse_only if fine else self.detailed_only)


@dataclass(frozen=True)
class CodeLists:
    """The iterations, and for each race or ethnicity code the iterations that it leads to."""

    iterations: tuple[Iteration, ...]
    leads_to: Mapping[str, frozenset[str]]
    names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_once([item.code for item in self.iterations], "an iteration code")
        known = {item.code for item in self.iterations}
        both = sum(item.detailed_only and item.coarse_only for item in self.iterations)
        if both:
            raise DataError(
                f"{both} iterations are both DETAILED_ONLY and COARSE_ONLY",
                why="such an iteration would be tabulated nowhere",
                fix="set at most one of the two flags to True",
            )
        lost = sum(not targets <= known for targets in self.leads_to.values())
        if lost:
            raise DataError(
                f"{lost} race or ethnicity codes lead to an iteration that is not listed",
                why=f"{MAP_FILE} and the lists of iterations must belong together",
                fix="use the four files of one vintage",
            )

    @classmethod
    def own(cls) -> "CodeLists":
        """Return the package's own lists: invented groups for the codes of its synthetic censuses.

        >>> len(CodeLists.own().leads_to) >= 200
        True
        """
        with as_file(files(__package__) / "lists") as folder:
            return _read(folder)

    @classmethod
    def read(cls, folder: Path) -> "CodeLists":
        """Return the lists in the four files of a folder."""
        return _read(Path(folder))

    @classmethod
    def _of_files(cls, folder: Path) -> "CodeLists":
        races = [
            Iteration(row["ITERATION_CODE"], row["ITERATION_NAME"], _read_level(row), _read_flag(row, "ALONE"),
                      _read_flag(row, "DETAILED_ONLY"), _read_flag(row, "COARSE_ONLY"))
            for row in _read_rows(folder / RACE_FILE)
        ]  # fmt: skip
        ethnicities = [
            Iteration(row["ITERATION_CODE"], row["ITERATION_NAME"], _read_level(row), None,
                      _read_flag(row, "DETAILED_ONLY"), _read_flag(row, "COARSE_ONLY"))
            for row in _read_rows(folder / ETHNICITY_FILE)
        ]  # fmt: skip
        leads: dict[str, set[str]] = {row["RACE_ETH_CODE"]: set() for row in _read_rows(folder / CODE_FILE)}
        for row in _read_rows(folder / MAP_FILE):
            leads.setdefault(row["RACE_ETH_CODE"], set()).add(row["ITERATION_CODE"])
        return cls(
            iterations=(*races, *ethnicities),
            leads_to={code: frozenset(targets) for code, targets in leads.items()},
            names={row["RACE_ETH_CODE"]: row["RACE_ETH_NAME"] for row in _read_rows(folder / CODE_FILE)},
        )

    def digest(self) -> str:
        """Return the SHA-256 of the lists, so that products can check that they used the same ones."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        text = repr((self.iterations, sorted((code, sorted(to)) for code, to in self.leads_to.items())))
        return sha256(text.encode()).hexdigest()

    def list_iterations(self, level: int, *, fine: bool) -> tuple[Iteration, ...]:
        """Return the iterations of a level, in the order of the lists."""
        return self._iterations_by_level[level, fine]

    @cached_property
    def _iterations_by_level(self) -> dict[tuple[int, bool], tuple[Iteration, ...]]:
        return {
            (level, fine): tuple(item for item in self.iterations if item.belongs(level, fine=fine))
            for level, fine in product((0, *LEVELS), (True, False))
        }

    def sensitivity(self, level: int, *, fine: bool, most_codes: int) -> int:
        r"""The most groups of one region that one record can touch: $s = h_r \max(2, R) + h_e$.

        $h_r$ and $h_e$ are the largest numbers of "alone" race iterations and of ethnicity iterations that one code leads
        to; R is ``most_codes``. One code touches its "alone" and its "in combination" groups ($2 h_r$); with k codes the
        "alone" groups left are those that all codes share, and there are at most $k h_r$ groups (proof.md, Lemma 1).
        """
        of_races, of_ethnicities = self._heights[level, fine]
        return of_races * max(2, most_codes) + of_ethnicities

    @cached_property
    def _heights(self) -> dict[tuple[int, bool], tuple[int, int]]:
        """$h_r$ and $h_e$ of every level, for fine and for coarse regions."""
        kinds = {item.code: item for item in self.iterations}
        found = {}
        for level, fine in product((0, *LEVELS), (True, False)):
            most = {True: 0, False: 0, None: 0}
            for targets in self.leads_to.values():
                here = [kinds[to].alone for to in targets if kinds[to].belongs(level, fine=fine)]
                most = {kind: max(number, here.count(kind)) for kind, number in most.items()}
            found[level, fine] = max(most[True], most[False]), most[None]
        return found


def _read(folder: Path) -> CodeLists:
    """Return the lists of a folder, read once as long as no file changes."""
    told = [(folder / name).stat() for name in FILE_COLUMNS if (folder / name).exists()]
    return _read_files(folder, tuple((one.st_mtime_ns, one.st_size) for one in told))


@lru_cache(maxsize=8)
def _read_files(folder: Path, _files: tuple[tuple[int, int], ...]) -> CodeLists:
    return CodeLists._of_files(folder)


def _read_rows(path: Path) -> Iterator[dict[str, str]]:
    wanted = FILE_COLUMNS[path.name]
    try:
        require_plain(path)
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = CsvTable(file, delimiter="|", quoting=csv.QUOTE_NONE)
            missing = [name for name in wanted if name not in table.header]
            if missing:
                raise DataError(
                    f"{path.name} lacks {', '.join(missing)}",
                    why="its first line must name the columns, with | between them",
                    fix=f"first line: {'|'.join(wanted)}",
                )
            for row in table.rows():
                yield {name: (row[name] or "").strip() for name in wanted}
    except FileNotFoundError:
        raise InputError(
            f"the folder of code lists has no {path.name}",
            why=f"the lists are four files: {', '.join(FILE_COLUMNS)}",
            fix="name the folder that holds all four with --codes",
        ) from None
    except (OSError, csv.Error):
        raise DataError(
            f"{path.name} cannot be read",
            why="it is no text file with | between fields, or its lines are longer than those of any code list",
            fix="give the file as the Bureau publishes it",
        ) from None
    except UnicodeDecodeError:
        raise DataError(
            f"{path.name} is not UTF-8", why="names need one encoding", fix="save it as UTF-8"
        ) from None


def _read_level(row: Mapping[str, str]) -> int:
    if row["LEVEL"] not in ("0", "1", "2"):
        raise DataError(
            "an iteration has a LEVEL other than 0, 1 or 2", why="these three exist", fix="correct it"
        )
    return int(row["LEVEL"])


def _read_flag(row: Mapping[str, str], name: str) -> bool:
    if row[name] not in _FLAGS:
        raise DataError(
            f"an iteration has a {name} other than True, False or Null", why="it is a flag", fix="correct it"
        )
    return _FLAGS[row[name]]


def _require_once(codes: Iterable[str], what: str) -> None:
    twice = sum(number > 1 for number in Counter(codes).values())
    if twice:
        raise DataError(
            f"{what} stands twice in the lists ({twice} of them)",
            why="the codes of race and ethnicity iterations must be disjoint",
            fix="give every iteration a code of its own",
        )
