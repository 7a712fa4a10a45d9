"""Every error of Stirred says what happened, why, and how to fix it: the source is searched for errors that do not."""

import ast
from pathlib import Path

import stirred
from stirred import errors
from syntax import nodes_of

SOURCE = Path(stirred.__file__).parent
NAMES = {
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.StirredError)
}


def incomplete(source: str) -> list[int]:
    """The lines that make an error without what, why or fix; ``**parts`` does not count as given."""
    lines = []
    for node in nodes_of(source):
        if isinstance(node, ast.Call) and _name(node.func) in NAMES:
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            parts = [*node.args[:1], *(given[part] for part in ("why", "fix") if part in given)]
            if len(parts) < 3 or any(_empty(part) for part in parts):
                lines.append(node.lineno)
        elif isinstance(node, ast.Raise) and _name(node.exc) in NAMES:
            lines.append(node.lineno)  # raise InputError: a class without any words
    return sorted(lines)


def _name(node: ast.AST | None) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _empty(part: ast.expr) -> bool:
    """An empty text, also one that stands at the end of ``reason or ""``, or arguments that are not written out."""
    if isinstance(part, ast.BoolOp):
        return any(_empty(value) for value in part.values)
    return isinstance(part, ast.Starred) or (isinstance(part, ast.Constant) and not part.value)


def test_every_error_has_what_why_and_fix() -> None:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        lines = incomplete(path.read_text(encoding="utf-8"))
        if lines:
            found[path.relative_to(SOURCE).as_posix()] = lines
    assert not found, f"these lines make an error without what, why or fix: {found}"


def test_the_search_finds_what_is_missing() -> None:
    lines = [
        'raise InputError("what", why="why", fix="fix")',
        'raise InputError("what", why="why")',
        'raise errors.BudgetError("what", fix="fix")',
        'error = PlanError("what", why="", fix="fix")',
        'error = PlanError("what", why=reason or "", fix="fix")',
        'error = PlanError("what", **parts)',
        "raise InputError",
        'raise ValueError("what")',
        "raise error",
    ]
    assert incomplete("\n".join(lines)) == [2, 3, 4, 5, 6, 7]


def test_errors_of_stirred_are_only_made_from_its_tree() -> None:
    """A subclass outside errors.py would escape the search."""
    outside = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "errors.py"
        for node in nodes_of(path.read_text(encoding="utf-8"))
        if isinstance(node, ast.ClassDef) and any(_name(base) in NAMES for base in node.bases)
    ]
    assert not outside, outside
