"""The checker with one side condition taken out: every refusal of its modules in turn, and every part of a compound one.

A refusal is an ``if`` whose body refuses (returns or yields a sentence, or returns False), a conditional sentence
(``"" if it holds else "why not"``), or one of several conditions that a yes needs (``return this and that``). Taken out,
the code of the function is replaced in place, so that every caller meets the weakened one. What only makes sure of the form
of a derivation (`FORM`) is tested by itself: whatever has another form fails further on, or is as good.
"""

import ast
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType

from stirred.spec.verdicts.checker import budgets, check, tables

MODULES = (check, budgets, tables)
FORM = {
    *("_axes", "_combinations", "_power", "_root"),
    *("check_form", "_check_pair", "_check_data_set", "read_whole_number", "read_margins"),
}


@dataclass(frozen=True)
class Weakened:
    """One function with one side condition less."""

    module: ModuleType
    function: str
    condition: str
    code: CodeType

    @property
    def name(self) -> str:
        return f"{self.module.__name__.rpartition('.')[2]}.{self.function}: {self.condition}"

    @contextmanager
    def put_in_place(self) -> Iterator[None]:
        function: FunctionType = getattr(self.module, self.function)
        had = function.__code__
        function.__code__ = self.code
        try:
            yield
        finally:
            function.__code__ = had


def weakened() -> Iterator[Weakened]:
    """Every checker that lacks one side condition."""
    for module in MODULES:
        tree = ast.parse(inspect.getsource(module))
        for function in tree.body:
            if not isinstance(function, ast.FunctionDef) or function.name in FORM:
                continue
            for place, (condition, _) in enumerate(_conditions(function)):
                changed = deepcopy(function)
                _, take_out = list(_conditions(changed))[place]
                take_out()
                code = compile(
                    ast.fix_missing_locations(ast.Module([changed], [])), module.__file__ or "", "exec"
                )
                own = next(
                    c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == function.name
                )
                yield Weakened(module, function.name, condition, own)


def _conditions(function: ast.FunctionDef) -> Iterator[tuple[str, "_TakeOut"]]:
    for node in ast.walk(function):
        if isinstance(node, ast.If) and _refuses(node.body[0]):
            yield from _parts(node, "test", ast.Or, keep=False)
        elif isinstance(node, ast.IfExp) and _is_sentence(node.orelse) and _is_empty(node.body):
            yield from _parts(node, "test", ast.And, keep=True)
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.BoolOp) and _says_bool(function):
            yield from _parts(node, "value", ast.And, keep=True)


class _TakeOut:
    def __init__(self, owner: ast.AST, field: str, place: int | None, keep: bool) -> None:
        self.owner, self.field, self.place, self.keep = owner, field, place, keep

    def __call__(self) -> None:
        nothing = ast.Constant(self.keep)
        if self.place is None:
            setattr(self.owner, self.field, nothing)
        else:
            getattr(self.owner, self.field).values[self.place] = nothing


def _parts(
    owner: ast.AST, field: str, operator: type[ast.boolop], *, keep: bool
) -> Iterator[tuple[str, _TakeOut]]:
    test = getattr(owner, field)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, operator):
        for place, part in enumerate(test.values):
            yield ast.unparse(part), _TakeOut(owner, field, place, keep)
    elif not (isinstance(owner, ast.Return)):
        yield ast.unparse(test), _TakeOut(owner, field, None, keep)


def _says_bool(function: ast.FunctionDef) -> bool:
    return isinstance(function.returns, ast.Name) and function.returns.id == "bool"


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == ""


def _is_sentence(node: ast.expr | None) -> bool:
    if isinstance(node, ast.BoolOp):
        return any(map(_is_sentence, node.values))
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and bool(node.value) and isinstance(node.value, str)
    )


def _refuses(node: ast.stmt) -> bool:
    if isinstance(node, ast.Return):
        value = node.value
        no = isinstance(value, ast.Constant) and value.value is False
        none = isinstance(value, ast.Constant) and value.value is None
        several = isinstance(value, ast.Tuple) and any(map(_is_sentence, value.elts))
        return no or none or several or _is_sentence(value)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield) and _is_sentence(node.value.value)
