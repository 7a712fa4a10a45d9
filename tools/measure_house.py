"""Measure how a source tree is built: sizes of files and functions, names, docstrings, constants, commands and settings.

    python tools/measure_house.py                       the figures of src/stirred
    python tools/measure_house.py FOLDER                those of another package, such as one of site-packages
    python tools/measure_house.py --list-participles    file:line:name of every function that a bare participle names
    python tools/measure_house.py --list-docstrings     file:line:name: first words of every docstring without a verb
    python tools/measure_house.py --list-constants      file:line:NAME = value of names that several modules define

Rules:

- a module is a Python file with at least one statement; a function is every ``def``, methods and inner ones too; its
  length counts from ``def`` to its last line, with its docstring;
- a docstring of a function opens with a noun or a question if its first word is an article, a determiner or a question word
  (``OPENERS``); it opens with a verb if its first word is in ``VERBS``; the rest (formulas, bare nouns) is counted apart;
- a function is named by a bare participle if its name, without underscores at its ends, is one word that ends in -ed or
  is in ``PARTICIPLES``. Words that are a base form too (read, put, cut, set, split, spread, let, bound) are none;
- a constant is a name in capitals that a module assigns; it has several meanings if modules give it different values;
- a setting is an annotated name in a class whose name ends in Config, of which the same class is counted once;
- verbs, actions and flags are read from the help of ``python -m stirred``.
"""

import argparse
import ast
import contextlib
import io
import os
import re
import runpy
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[1]
SHORT_MODULE_LINES = 60
VALUE_CHARACTERS = 60  # of a constant's value in a list
Function = ast.FunctionDef | ast.AsyncFunctionDef

OPENERS = frozenset(
    """a all an another any as at beyond both by each either every everything few fewer five for four from half how in
    into its most much no nobody none nothing of on one only our part several some somebody something such that
    the their these this those three two under what whatever when where whether which who whole whose why with
    without
    """.split()  # noqa: SIM905 - words are read as a text
)
VERBS = frozenset(
    """accept account add adjust advance aggregate align allocate allow answer append apply apportion approximate
    arrange ask assemble assert assign attach attack audit average avoid begin bind block bound bring build
    calculate call cancel carry cast chain change check choose clamp clean clear clip close code collapse
    collect combine compare compile complete compose compress compute concatenate configure connect construct
    consume continue convert copy correct count cover create cross cut deal decide declare decode decompose
    decrypt deduce define delete delegate demand derive descend describe deserialize detect determine dictate
    digest disable discard dispatch display distribute divide do draft draw drop dump eliminate embed emit empty
    enable enclose encode encrypt end enforce ensure enter enumerate erase escape establish estimate evaluate
    exchange exclude execute exit expand explain export express extend extract fail fetch fill filter find
    finish fit fix flatten flip flush fold follow forget form format free freeze gather generate get give go
    group grow guard guess halve hand handle hash hide hold ignore implement import impute include increment
    index infer initialize insert inspect install instantiate integrate interpolate interpret intersect
    introduce invert invoke iterate join judge justify keep label lay lead leave let lift limit link list load
    locate lock log look lower make map mark mask match maximise maximize mean measure merge minimise minimize
    mix modify move multiply name narrow negate normalise normalize note notify number obtain offer omit open
    optimize order output overwrite pack pad pair parse part pass patch perform permute pick place plan plot
    point pool populate post predict prefer prepare print process produce project propose protect prove provide
    publish pull push put query quote raise randomize rank reach read rebuild recall receive recode recognise
    recognize recompute reconstruct record recover reduce refer refuse register reject release remember remove
    rename render repeat replace replicate report represent request require rescale reset reshape resolve
    restate restore restrict resume retrieve return reverse revert rewrite rotate round route run sample save
    say scale scan schedule score seal search see select send separate serialise serialize serve set settle
    shape share shift show shuffle shut sign simplify simulate skip slice snap solve sort spawn specify split
    spread stack stand start state step stop store stream strip study submit subtract suggest sum summarise
    summarize supply suppose suppress swap synthesise synthesize tabulate tag take tally tell test throw time
    toss total trace track train transform translate transpose traverse trim truncate try tune turn undo unify
    unpack update upload use validate verify view visit wait walk warn weigh weight widen wind work wrap write
    yield
    """.split()  # noqa: SIM905 - idem
)
PARTICIPLES = frozenset(
    """begun bent bitten blown born borne bought broken brought built caught chosen dealt done drawn driven eaten
    fallen fed felt flown forbidden forgotten found frozen given gone grown heard held hidden kept known laid
    learnt led lent lost made meant met overdrawn overwritten paid redrawn rewritten ridden risen said seen sent
    shaken shot shown sold sought sought spent spoken stolen stood struck stuck sung sunk swept sworn taken
    taught thought thrown told torn understood undone unknown unmade unseen unwritten withdrawn withheld woken
    won worn woven written
    """.split()  # noqa: SIM905 - idem
)
NO_PARTICIPLES = frozenset(
    "bed bleed breed deed embed exceed feed heed indeed need proceed red seed shed shred speed succeed weed".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One file: its path below the folder, its number of lines and its tree."""

    path: Path
    lines: int
    tree: ast.Module

    @property
    def room(self) -> str:
        """Return the top folder of the module, or a mark for modules beside the folders."""
        return self.path.parts[0] if len(self.path.parts) > 1 else "(top)"

    def functions(self) -> Iterator[Function]:
        """Yield every function, methods and inner functions too."""
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                yield node


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A finding: where it stands, and what it is."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.text}"


def read_modules(folder: Path) -> list[Module]:
    """Return all modules below a folder that have a statement, sorted by path."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        if tree.body:
            found.append(Module(path=path.relative_to(folder), lines=len(text.splitlines()), tree=tree))
    return found


def is_participle(name: str) -> bool:
    """Return whether a function's name is a participle and nothing else.

    >>> [name for name in ("told", "_joined", "read", "seed", "count_told") if is_participle(name)]
    ['told', '_joined']
    """
    word = name.strip("_")
    if not word.isalpha() or word in NO_PARTICIPLES:
        return False
    return word in PARTICIPLES or (word.endswith("ed") and len(word) > 3)


def first_word(docstring: str) -> str:
    """Return the first word of a docstring in small letters.

    >>> first_word("``x`` as text."), first_word("Return it.")
    ('x', 'return')
    """
    found = re.search(r"[^\W_][\w'-]*", docstring)
    return found[0].lower() if found else ""


def kind_of(docstring: str) -> str:
    """Return how a docstring opens: verb, noun or question, or other.

    >>> kind_of("Return a number."), kind_of("The number."), kind_of("Records of a type.")
    ('verb', 'noun or question', 'other')
    """
    word = first_word(docstring)
    if word in OPENERS:
        return "noun or question"
    return "verb" if word in VERBS else "other"


def find_participles(modules: list[Module]) -> list[Place]:
    """Return every function that a bare participle names."""
    return [
        Place(path=module.path, line=node.lineno, text=node.name)
        for module in modules
        for node in module.functions()
        if is_participle(node.name)
    ]


def find_docstrings(modules: list[Module]) -> list[tuple[str, Place]]:
    """Return the docstring of every function by how it opens."""
    found = []
    for module in modules:
        for node in module.functions():
            text = ast.get_docstring(node)
            if text:
                words = f"{node.name}: {text.splitlines()[0][:VALUE_CHARACTERS]}"
                found.append((kind_of(text), Place(path=module.path, line=node.lineno, text=words)))
    return found


def find_constants(modules: list[Module]) -> dict[str, list[tuple[str, Place]]]:
    """Return the constants that several modules define: name → the values with their places."""
    found: dict[str, list[tuple[str, Place]]] = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                targets = [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and re.fullmatch(r"_?[A-Z][A-Z0-9_]*", target.id):
                    value = ast.unparse(node.value)  # type: ignore[attr-defined]
                    words = f"{target.id} = {value[:VALUE_CHARACTERS]}"
                    place = Place(path=module.path, line=node.lineno, text=words)
                    found[target.id.lstrip("_")].append((value, place))
    return {
        name: uses
        for name, uses in found.items()
        if len({place.path for _, place in uses}) > 1 and name != "__all__"
    }


def find_settings(modules: list[Module]) -> list[str]:
    """Return the names of all fields of classes whose name ends in Config, once for each class."""
    return [
        field.target.id
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Config")
        for field in node.body
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and "ClassVar" not in ast.unparse(field.annotation)
    ]


def read_help(package: str, *words: str) -> str:
    """Return the help text of a command of a package that is installed here."""
    said = io.StringIO()
    with (
        patch.object(sys, "argv", [package, *words, "--help"]),
        patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}),
        contextlib.redirect_stdout(said),
        contextlib.suppress(SystemExit),
    ):
        runpy.run_module(package, run_name="__main__")
    return said.getvalue()


def list_commands(text: str) -> list[str]:
    """Return the verbs or actions that a help text lists."""
    below = re.search(r"(?m)^(?:positional arguments|commands):\n((?: {2}.*\n)+)", text)
    return re.findall(r"(?m)^ {4}([a-z][\w-]*)", below[1]) if below else []


def count_commands(package: str) -> dict[str, int]:
    """Return the numbers of verbs, of actions of verbs and of different flags, as the help of a package lists them."""
    verbs = list_commands(read_help(package))
    texts, actions = [], 0
    for verb in verbs:
        own = read_help(package, verb)
        texts.append(own)
        methods = re.search(r"(?m)^  --method \{([^}]*)\}", own)  # each has flags of its own
        texts += [
            read_help(package, verb, "--method", name)
            for name in (methods[1] if methods else "").split(",")
            if name
        ]
        for action in list_commands(own):
            texts.append(read_help(package, verb, action))
            actions += 1
    lines = [line for text in texts for line in text.splitlines() if re.match(r"  -", line)]
    flags = {flag for line in lines for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", line.split("   ")[0])}
    return {"verbs": len(verbs), "actions of verbs": actions, "different flags": len(flags)}


def percentile(numbers: list[int], share: float) -> int:
    """Return the smallest number that at least this share of the numbers does not exceed."""
    return sorted(numbers)[max(0, -(-int(share * 1000) * len(numbers) // 1000) - 1)]


def describe(numbers: list[int]) -> str:
    """Return the median and the 95th percentile of numbers as text."""
    return f"{statistics.median_low(numbers)} / {percentile(numbers, 0.95)}"


def print_figures(folder: Path, modules: list[Module], *, commands: bool) -> None:
    """Print all figures of a folder."""
    functions = [node for module in modules for node in module.functions()]
    lengths = [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions]
    kinds = Counter(kind for kind, _ in find_docstrings(modules))
    written = max(1, sum(kinds.values()))
    participles = find_participles(modules)
    constants = find_constants(modules)
    several = {name for name, uses in constants.items() if len({value for value, _ in uses}) > 1}
    settings = find_settings(modules)
    lines = sum(module.lines for module in modules)
    figures: list[tuple[str, object]] = [
        ("modules", len(modules)),
        ("thousand lines", f"{lines / 1000:.1f}"),
        ("file length, median / p95", describe([module.lines for module in modules])),
        (f"modules below {SHORT_MODULE_LINES} lines", sum(m.lines < SHORT_MODULE_LINES for m in modules)),
        ("functions", len(functions)),
        ("function length, median / p95", describe(lengths)),
        ("docstrings of functions", written),
        ("  that open with a noun or a question", f"{kinds['noun or question'] / written:.1%}"),
        ("  that open with neither that nor a known verb", f"{kinds['other'] / written:.1%}"),
        ("  that open with a verb", f"{kinds['verb'] / written:.1%}"),
        (
            "functions named by a bare participle",
            f"{len(participles) / max(1, len(functions)):.1%} ({len(participles)})",
        ),
        ("constants that several modules define", len(constants)),
        ("  with several values", len(several)),
        ("Config fields; of different names", f"{len(settings)}; {len(set(settings))}"),
    ]
    if commands:
        figures += count_commands(folder.name).items()
    for name, value in figures:
        print(f"{name:50} {value}")
    print(f"\n{'room':20} {'modules':>8} {'lines':>8}")
    rooms = Counter(module.room for module in modules)
    for room, number in rooms.most_common():
        print(f"{room:20} {number:>8} {sum(m.lines for m in modules if m.room == room):>8}")


def main() -> int:
    """Print figures or a list."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "src" / "stirred", help="a package")
    lists = parser.add_mutually_exclusive_group()
    lists.add_argument("--list-participles", action="store_true", help="functions that a participle names")
    lists.add_argument("--list-docstrings", action="store_true", help="docstrings that open with no verb")
    lists.add_argument("--list-constants", action="store_true", help="constants that several modules define")
    asked = parser.parse_args()
    folder: Path = asked.folder.resolve()
    modules = read_modules(folder)
    found: list[Place] = []
    if asked.list_participles:
        found = find_participles(modules)
    elif asked.list_docstrings:
        found = [place for kind, place in find_docstrings(modules) if kind != "verb"]
    elif asked.list_constants:
        constants = sorted(find_constants(modules).items(), key=lambda item: (-len(item[1]), item[0]))
        found = [place for _, uses in constants for _, place in uses]
    else:
        print_figures(folder, modules, commands=folder == ROOT / "src" / "stirred")
    for place in found:
        print(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
