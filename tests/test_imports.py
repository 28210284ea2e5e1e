"""No module imports itself through other modules, also not by imports inside functions."""

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
from statements import parts_of, statements

ROOT = Path(__file__).parents[1]
FOLDERS = ("ibnue", "routing", "osm_plugin", "ibsim_fixtures", "benchmarks")


@functools.cache
def parsed(text: str) -> ast.Module:
    return ast.parse(text)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imported(node: ast.AST, modules: set[str]) -> Iterator[str]:
    """Yield the modules that are imported anywhere in the syntax tree ``node``, without imports for type checkers."""
    if for_types_only(node):
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            if inner in modules or node.module in modules:
                yield inner if inner in modules else node.module
    for child in parts_of(node):
        yield from imported(child, modules)


def imports(sources: dict[str, str]) -> "nx.DiGraph[str]":
    graph = nx.DiGraph()
    graph.add_nodes_from(sources)
    for name, text in sources.items():
        graph.add_edges_from((name, other) for other in imported(parsed(text), set(sources)))
    return graph


def circles(graph: "nx.DiGraph[str]") -> list[list[str]]:
    return [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]


def test_every_module_can_be_loaded_on_this_python():
    """Names that this Python does not have are found, even if it runs no test of the module that uses them."""
    files = [path for folder in FOLDERS[:-1] for path in sorted((ROOT / folder).rglob("*.py"))]
    names = [name for name in map(module_name, files) if not name.endswith("__main__")]
    load = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    subprocess.run([sys.executable, "-c", load, *names], cwd=ROOT, check=True)


def test_no_module_imports_itself_through_others():
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    graph = imports({module_name(path): path.read_text() for path in files})
    assert graph.number_of_edges() > len(files)
    assert circles(graph) == []


def test_no_folder_imports_itself_through_others():
    """Imports for type checkers count here as well: a reader of a folder needs only the folders below it."""
    folders = nx.DiGraph()
    for path in sorted((ROOT / "routing").rglob("*.py")):
        here = module_name(path).split(".")[1:2]
        for part in statements(parsed(path.read_text())):
            if here and isinstance(part, ast.ImportFrom) and part.module and part.module.startswith("routing."):
                folders.add_edge(here[0], part.module.split(".")[1])
    folders.remove_edges_from([(folder, folder) for folder in list(folders)])
    assert {"deadlock", "formats", "reroute", "cli"} <= set(folders)
    assert circles(folders) == []


def test_a_loop_through_a_function_is_seen():
    reported = {"a.one": "def late():\n    from a.two import x\n", "a.two": "from a import one\n", "a": ""}
    assert circles(imports(reported)) == [["a.one", "a.two"]]
    reported["a.one"] = "if TYPE_CHECKING:\n    from a.two import x\n"
    assert circles(imports(reported)) == []
