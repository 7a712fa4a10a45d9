"""The syntax of sources, for tests that search all of them: each is parsed once in a process."""

import ast
from functools import cache


@cache
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """Return every node of a source; the first is its module."""
    return tuple(ast.walk(ast.parse(source)))
