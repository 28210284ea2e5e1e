"""Configuration of the documentation site: Sphinx renders the pages of the repository.

The command is ``sphinx-build -W -c docs . FOLDER``.  Its sources are the whole repository, so that links between the
README and the pages under docs/ are valid.  The lists of docs/index.md define the navigation.  Notebooks run during the
build, and an error in a notebook is an error of the build.
"""

from __future__ import annotations

import posixpath
import re
from functools import partialmethod
from typing import Any

from nbclient import NotebookClient

import routing

ITEM = re.compile(r"^- \[[^\]]*\]\(([^)#:]+)\.(?:md|ipynb)\)", re.MULTILINE)

project = "ibnue"
author = "the authors of ibnue"
version = release = routing.__version__
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "docs/decisions/*.md", "docs/notebooks/*.ipynb"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
suppress_warnings = ["myst.header"]
myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]
nb_execution_mode = "force"
nb_execution_raise_on_error = True
# Time limit in seconds for one cell of a notebook.  The limit is high, so that only a cell that hangs reaches it, even
# on a busy machine.
nb_execution_timeout = 900
# MyST has no option for the time in which a kernel has to start, and 60 seconds are too short on a busy machine.
NotebookClient.__init__ = partialmethod(NotebookClient.__init__, startup_timeout=900)
html_theme = "furo"
html_title = f"ibnue {version}"
html_copy_source = False
html_show_copyright = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = False


def add_contents(app: Any, name: str, source: list[str]) -> None:
    """Append the site's navigation to the source of the first page, docs/index.md, when Sphinx reads this page.

    The navigation has the sections of docs/index.md.  Each section has the pages to which its list links.  Pages of
    decisions are left out, because every page of the site would repeat their long list.
    """
    if name.startswith("docs/decisions/"):
        source[0] = f"---\norphan: true\n---\n{source[0]}"
    if name != root_doc:
        return
    for section in source[0].split("\n## ")[1:]:
        pages = [posixpath.normpath(f"/docs/{page}") for page in ITEM.findall(section)]
        pages = [page for page in pages if not page.startswith("/docs/decisions/")]
        lines = ["```{toctree}", ":hidden:", f":caption: {section.partition(chr(10))[0]}", "", *pages, "```", ""]
        source[0] += "\n".join(["", *lines])


def setup(app: Any) -> None:
    """Register the hook of this site with Sphinx."""
    app.connect("source-read", add_contents)
