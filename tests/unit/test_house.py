"""The rules of the house: imports go one way and in no circle, public names are declared."""

import ast
import importlib
import re
from pathlib import Path

import stirred
from stirred.mechanisms.registry import OWN_REGISTRATIONS
from syntax import nodes_of

ROOT = Path(stirred.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
# Each room may import the rooms before it and itself.
ORDER = [
    "errors",
    "_support",
    "child_processes",
    "closed_files",
    "roots",
    "languages",
    "text_formats",
    "kernels",
    "frames",
    "spec",
    "chance",
    "census",
    "engine",
    "mechanisms",
    "catalog",
    "assess",
    "report",
    "publish",
]
TOP = ["web", "cli", "paper"]


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in nodes_of(path.read_text()):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
            if node.module == "stirred":
                names |= {f"stirred.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "stirred"}


def reaches_up(path: Path) -> set[str]:
    """The rooms that a module imports and may not."""
    home = path.relative_to(ROOT).with_suffix("").parts[0]
    if home in {"__init__", "__main__"}:
        return set()
    seen = {room(name) for name in imported(path)} - {"", home}
    if home == "spec":
        return seen - {
            "errors",
            "languages",
            "text_formats",
            "_support",
        }  # its files are read as all others are
    allowed = set(ORDER) | {home} if home in TOP else set(ORDER[: ORDER.index(home)])
    allowed |= {"web"} if path.name == "serve.py" and home == "cli" else set()  # the command that starts it
    return seen - allowed


def test_imports_go_one_way() -> None:
    found = {str(path.relative_to(ROOT)): reaches_up(path) for path in MODULES}
    assert {name: rooms for name, rooms in found.items() if rooms} == {}


def test_there_is_no_drawer_for_odds_and_ends() -> None:
    assert not [path for path in MODULES if path.stem in {"utils", "helpers", "misc", "common"}]


def test_public_names_are_exactly_all() -> None:
    assert stirred.__all__ == sorted(stirred.__all__)
    for name in stirred.__all__:
        assert getattr(stirred, name) is not None
    public = {name for name in dir(stirred) if not name.startswith("_")}
    assert public == set(stirred.__all__)


def test_every_module_imports_and_says_what_it_is_for() -> None:
    for path in MODULES:
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name.endswith("__main__"):
            continue
        module = importlib.import_module(name)
        assert module.__doc__, f"{name} has no docstring"


def modules_imported(path: Path) -> set[str]:
    """Every module of ours that a module names in an import, at its top or inside a function.

    In the rooms of commands a module may also be named in a string, for ``importlib``; elsewhere names of modules in strings
    are the registry of mechanisms, and names of rooms that are loaded on demand.
    """
    found: set[str] = set()
    named = path.relative_to(ROOT).parts[0] in TOP
    for node in nodes_of(path.read_text()):
        if named and isinstance(node, ast.Constant) and node.value in BY_NAME:
            found.add(str(node.value))
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {known for name in found if (known := nearest(name))}


def nearest(name: str) -> str:
    """The module that a dotted name lies in."""
    while name and name not in BY_NAME:
        name = name.rpartition(".")[0]
    return name


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


BY_NAME = {dotted(path): path for path in MODULES}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, by Tarjan's algorithm."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        stack.append(module)
        for other in graph[module]:
            if other not in number:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], number[other])
        if low[module] == number[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in number:
            visit(module)
    return found


def test_nothing_imports_in_a_circle() -> None:
    """Inside rooms too; an import inside a function counts, because it only hides the circle."""
    graph = {name: modules_imported(path) - {name} for name, path in BY_NAME.items()}
    assert circles(graph) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_one_noun_per_class() -> None:
    named: dict[str, list[str]] = {}
    for name, path in BY_NAME.items():
        for node in nodes_of(path.read_text())[0].body:  # type: ignore[attr-defined]
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                named.setdefault(node.name, []).append(name)
    assert {noun: places for noun, places in named.items() if len(places) > 1} == {}


PROCESSES = {"subprocess", "multiprocessing", "pty", "pexpect", "popen2", "webbrowser"}
STARTS = {"fork", "forkpty", "popen", "posix_spawn", "posix_spawnp", "startfile", "system"}


def starts_processes(source: str) -> set[str]:
    """What a module names that starts a process."""
    found: set[str] = set()
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] in PROCESSES}
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module.split(".")[0] in PROCESSES:
                found.add(node.module)
            found |= {a.name for a in node.names if a.name in STARTS | {"ProcessPoolExecutor"}}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            if node.attr in STARTS or node.attr.startswith(("exec", "spawn")):
                found.add(f"os.{node.attr}")
        elif isinstance(node, ast.Attribute) and node.attr == "create_subprocess_exec":
            found.add(node.attr)
    return found


def test_one_place_starts_child_processes() -> None:
    """It decides what they may import and know; see ``stirred.child_processes``."""
    found = {path.relative_to(ROOT).as_posix(): starts_processes(path.read_text()) for path in MODULES}
    assert {name: names for name, names in found.items() if names} == {"child_processes.py": {"subprocess"}}
    assert starts_processes("import os, subprocess as s; os.execv('a', [])") == {"subprocess", "os.execv"}


# What parses a text without bounds, and the modules that do: of words that ship with the package, of lines that our own
# processes write to each other, and of files that only the workbench or a sealed run has written.
PARSERS = {"json.loads", "json.load", "tomllib.loads", "tomllib.load", "csv.DictReader", "csv.reader"}
ENDS = {name.partition(".")[2] for name in PARSERS}
OWN_TEXTS = {
    "text_formats.py",
    "languages/phrase.py",
    "assess/attack/reconstruction.py",
    "cli/spec.py",
    "engine/spark/faults.py",
    "mechanisms/topdown/run/subtrees/steps.py",
    "publish/demo.py",
    "publish/run/state.py",
    "spec/files/document.py",
    "web/jobs.py",
    "web/runner.py",
    "web/workspace.py",
}


def test_texts_of_any_origin_are_parsed_in_one_place() -> None:
    """It bounds depth, keys and memory; see ``stirred.text_formats``."""
    found = set()
    for path in MODULES:
        for node in nodes_of(path.read_text()):
            if isinstance(node, ast.Attribute) and node.attr in ENDS and ast.unparse(node) in PARSERS:
                found.add(path.relative_to(ROOT).as_posix())
    assert found <= OWN_TEXTS, f"read with stirred.text_formats: {sorted(found - OWN_TEXTS)}"


# What writes a file or makes a folder by itself, and the modules that may, by the reason why nothing is lost or shown.
WRITES = {"write_text", "write_bytes", "mkdir", "makedirs", "touch"}
OWN_WRITERS = {
    "they are the writers: closed modes, whole or not at all": """
        closed_files.py chance/seals.py chance/keys.py engine/scratch.py engine/scratch.py publish/run/part.py""",
    "they write inside OUT.part, or a folder that write_whole yields, which gets its name when all of it is there": """
        engine/spark/flow.py mechanisms/topdown/measurement_files.py mechanisms/topdown/measurement_files.py
        mechanisms/topdown/run/task.py mechanisms/topdown/run/records.py mechanisms/topdown/run/subtrees/steps.py
        mechanisms/census2020/phsafe/tables.py mechanisms/census2020/safetab/households/tables.py
        mechanisms/census2020/safetab/persons/tables.py
        publish/assessment.py publish/frontier.py publish/packet/checksums.py publish/packet/lookup.py
        publish/packet/receipt.py publish/documents.py publish/packet/guide.py publish/run/writer.py
        publish/run/execute.py publish/run/state.py
        publish/run/writer.py""",
    "they write to a folder of scratch, or to one that Python makes and removes": """
        assess/audit/pairs.py engine/spark/reading.py mechanisms/topdown/measurement_files.py publish/composition.py""",
    "they write what is public where a person said: plans, cards, pages, synthetic censuses, keys to verify with": """
        census/synthetic/writing.py census/synthetic/stand_in.py cli/demo.py cli/plan.py cli/spec.py
        mechanisms/tables/cell_key/perturbation.py paper/documents.py publish/side_by_side.py publish/demo.py
        publish/packet/checksums.py publish/plan/proposal.py spec/files/document.py""",
    "they keep what can be made again: compiled templates and the library of charts": """
        report/html.py spec/card/card.py spec/card/template_cache.py""",
    "they open a lock, a stream of the process or an upload under a name of its own, with flags that follow no link": """
        cli/process.py cli/output.py publish/run/part.py web/jobs.py web/jobs.py
        web/uploads.py web/workspace.py web/workspace.py""",
    "they write into an archive that is sent, not to a file": "web/screens/packet.py",
}


def writes(text: str) -> set[str]:
    """The calls in a module that write a file or make a folder without a library of tables."""
    found = set()
    for node in nodes_of(text):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
        modes = [
            a.value for a in (*node.args, *(k.value for k in node.keywords)) if isinstance(a, ast.Constant)
        ]
        texts = [mode for mode in modes if isinstance(mode, str) and mode and set(mode) <= set("rwaxbt+")]
        if name in WRITES or (name in ("open", "fdopen") and any(set(mode) & set("wax+") for mode in texts)):
            found.add(name)
        if name == "open" and ast.unparse(node.func) == "os.open":
            shown = ast.unparse(node)
            if not ("O_RDONLY" in shown and "O_CREAT" not in shown):
                found.add("os.open")
    return found


def test_few_modules_write_files_by_themselves() -> None:
    """All others write through ``stirred.closed_files`` or ``publish/run/part.py``: closed, and whole or not at all."""
    allowed = {name for names in OWN_WRITERS.values() for name in names.split()}
    found = {path.relative_to(ROOT).as_posix() for path in MODULES if writes(path.read_text())}
    assert found <= allowed, f"write with stirred.closed_files: {sorted(found - allowed)}"
    assert allowed <= found, f"these write nothing any more: {sorted(allowed - found)}"
    assert writes("p.write_text('x'); open(p, 'w'); os.open(p, os.O_WRONLY)") == {
        "write_text",
        "open",
        "os.open",
    }
    assert writes("open(p); p.open('rb'); os.open(p, os.O_RDONLY)") == set()


# The mechanisms by their names and classes, and the modules outside their room that may name one, by the reason.
ROOMS_OF_MECHANISMS = sorted(path.parent.name for path in ROOT.glob("mechanisms/*/__init__.py"))
OWN_NAMES = {
    "it is the list of public names": "__init__.py",
    "they state what others published: the products of the 2020 census, and swaps that might have been": "catalog/",
    "they compute the paper, which is about these mechanisms": "paper/ cli/reproduce.py",
    "they calculate the paper's Theorem 1, which is about swaps, before there is a mechanism": """
        cli/budget.py web/calculators.py web/screens/calculators.py""",
    "they are the products of the 2020 census as one plan": "publish/named_plans.py",
    "it is the demonstration, with plans of its own": "publish/demo.py",
    "they read formats of the Census Bureau, which are called after the program that reads them": """
        census/bureau.py census/readers/sources.py""",
    "it compiles the slowest kernel in the background": "kernels.py",
}


def names_mechanisms(text: str) -> set[str]:
    """The mechanisms that a module names: in strings that are no docstring, as classes, and in imports of their rooms."""
    names = {item.name for item in OWN_REGISTRATIONS}
    classes = {item.target.partition(":")[2] for item in OWN_REGISTRATIONS}
    said = re.compile(rf"(?<![\w-])({'|'.join(sorted(names | classes))}|SafeTab)(?![\w]|-[0-9])")
    rooms = re.compile(rf"stirred\.mechanisms\.({'|'.join(ROOMS_OF_MECHANISMS)})\b")
    docstrings = {
        node.body[0].value
        for node in nodes_of(text)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    found: set[str] = set()
    for node in nodes_of(text):
        if isinstance(node, ast.ImportFrom) and rooms.match(f"{node.module}."):
            found.add(str(node.module))
        elif isinstance(node, ast.Name) and node.id in classes:
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and node.attr in classes:
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            found |= {match[0] for match in (*said.finditer(node.value), *rooms.finditer(node.value))}
    return found


def test_no_mechanism_is_named_outside_its_room() -> None:
    """The rest asks the contract (``mechanisms.base``) or the registry, so that a new mechanism needs no change there."""
    allowed = {name for names in OWN_NAMES.values() for name in names.split()}
    found = {
        name: names
        for path in MODULES
        if not (name := path.relative_to(ROOT).as_posix()).startswith("mechanisms/")
        and (names := names_mechanisms(path.read_text()))
    }
    rooms = tuple(name for name in allowed if name.endswith("/"))
    assert {k: v for k, v in found.items() if k not in allowed and not k.startswith(rooms)} == {}
    unused = {name for name in allowed if not any(one.startswith(name) for one in found)}
    assert unused == set(), "these name no mechanism any more"
    assert names_mechanisms('"""TopDown."""\nif name == "topdown": st.CellKey()') == {"topdown", "CellKey"}
    assert names_mechanisms("from stirred.mechanisms.swap.budget import theorem_1") == {
        "stirred.mechanisms.swap.budget"
    }
    assert names_mechanisms('"the swap rate of topdown-2020"') == set()


# Tests of behaviour go through public names, so that a move inside a room breaks few of them.
TESTS = Path(__file__).resolve().parents[1]
MOST_DEEP_FILES = 163  # files of tests that import three levels deep, of 391: it may fall and not grow


def deep_imports(path: Path) -> list[tuple[str, str]]:
    """The modules three levels deep or deeper, and the names that a file imports from them."""
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    deep = [node for node in found if re.match(r"stirred(\.\w+){3}", node.module or "")]
    return [(str(node.module), alias.name) for node in deep for alias in node.names]


def nearest_export(module: str, name: str) -> str:
    """The shortest package above a module that lists the same thing as public; "" where none does."""
    value = getattr(importlib.import_module(module), name, None)
    parts = module.split(".")
    for depth in range(1, len(parts)):
        above = importlib.import_module(".".join(parts[:depth]))
        if name in getattr(above, "__all__", ()) and getattr(above, name) is value:
            return above.__name__
    return ""


def test_tests_import_public_names_from_where_they_are_public() -> None:
    found = {path: deep_imports(path) for path in sorted(TESTS.rglob("*.py"))}
    public = [
        f"{path.relative_to(TESTS)}: import {name} from {home}, not from {module}"
        for path, names in found.items()
        for module, name in names
        if (home := nearest_export(module, name))
    ]
    assert public == []
    deep = [path for path, names in found.items() if names]
    assert len(deep) <= MOST_DEEP_FILES, "test behaviour through public names: stirred, or the room's own"
    assert nearest_export("stirred.mechanisms.tables.exact_margins", "ExactMargins") == "stirred"
