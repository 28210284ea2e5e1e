"""Walk the statements of a Python file without their expressions, in a fraction of the time of ``ast.walk``."""

import ast


def parts_of(node):
    """Return the statements, handlers and cases directly inside a module, a statement, a handler or a case."""
    parts = ("body", "handlers", "orelse", "finalbody", "cases")
    return [part for name in parts for part in getattr(node, name, ()) if isinstance(part, ast.AST)]


def statements(node):
    """Yield all statements, handlers and cases below a node, at any depth."""
    for part in parts_of(node):
        yield part
        yield from statements(part)
