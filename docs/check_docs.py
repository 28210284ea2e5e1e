"""Check the pages: every relative link leads somewhere, and docs/index.md leads to every page.

The check reads only files of the repository, so it needs no network.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield the target file and the fragment of every relative link of a page, except links in code fences."""
    for match in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
        target, _, fragment = match.group(1).partition("#")
        if "://" not in target and not target.startswith("mailto:"):
            yield ((page.parent / target).resolve() if target else page), fragment


def anchors(page: Path) -> set[str]:
    """Return the names by which links refer to the headings of a page."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in HEADING.findall(text)}


def complaints(pages: list[Path]) -> Iterator[str]:
    """Yield a line for each broken link, and for each page to which docs/index.md does not lead."""
    reached: set[Path] = set()
    waiting = [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md" and page.exists():
            reached.add(page)
            waiting += [target for target, _ in links(page)]
    for page in pages:
        name = page.relative_to(ROOT)
        for target, fragment in links(page):
            if not target.exists():
                yield f"{name}: link to {target}, which is not there"
            elif fragment and target.suffix == ".md" and fragment not in anchors(target):
                yield f"{name}: link to #{fragment}, which is not a heading of {target.name}"
        if page.parent != ROOT and page not in reached:
            yield f"{name}: no link leads here from docs/index.md"


def out_of_order(index: Path) -> Iterator[str]:
    """Yield a complaint for each file name that is out of order in the index of decisions.

    The index lists the files of decisions by subject.  Under each subject, the names must be in ascending order.
    """
    for subject in index.read_text(encoding="utf-8").split("\n## ")[1:]:
        records = re.findall(r"^- \[[^\]]*\]\(([^)]+)\)", subject, re.MULTILINE)
        for before, record in itertools.pairwise(records):
            if record <= before:
                yield f"{index.relative_to(ROOT)}: {record} stands after {before}"


def main() -> int:
    """Check every page.  Return 1 if there is a complaint, else 0."""
    pages = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    found = [*complaints(pages), *out_of_order(ROOT / "docs" / "decisions" / "README.md")]
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(pages)} pages, {len(found)} complaints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
