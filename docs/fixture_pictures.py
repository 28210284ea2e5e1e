"""Draw the fixture fabrics: ``python docs/fixture_pictures.py``.

The program writes a picture (SVG) beside each net file, and updates the table in ``docs/fixtures.md``.
"""

from __future__ import annotations

from pathlib import Path

from fixture_svg import picture

from ibsim_fixtures.catalogue import FIXTURES, Fixture
from routing.fabric import Fabric
from routing.formats.fabric_files import read_fabric
from routing.topologies import generate

PAGE = Path(__file__).with_name("fixtures.md")
BEGIN, END = "<!-- table: python docs/fixture_pictures.py -->\n", "<!-- end of table -->\n"


def draw(fixture: Fixture) -> str:
    """Draw the picture of a fixture fabric, and return it as SVG."""
    fabric = read_fabric(fixture.path)
    return picture(fabric, fixture.layout, f"{fixture.name}: {fixture.purpose}", _pulled(fixture))


def _pulled(fixture: Fixture) -> list[tuple[int, int]]:
    recipe = fixture.recipe
    if recipe is None or not recipe.without:
        return []
    whole: Fabric = generate(recipe.topology, recipe.args, **recipe.options)
    row = {name: row for row, name in enumerate(whole.switch_name)}
    channels = [int(whole.channels.at_port[row[switch], port]) for switch, port in recipe.without]
    return [(int(whole.channels.src[c]), int(whole.channels.dst[c])) for c in channels]


def table() -> str:
    """Return a Markdown table with the size, purpose and picture of every fixture fabric."""
    lines = ["| Fabric | Switches, terminals, cables | What it is for | Picture |", "|---|---|---|---|"]
    for fixture in FIXTURES.values():
        fabric = read_fabric(fixture.path)
        counts = f"{fabric.switches}, {fabric.terminals}, {fabric.links}"
        image = f'<img src="../ibsim_fixtures/fabrics/{fixture.picture.name}" width="240" alt="{fixture.name}">'
        split = "" if fixture.connected else " (split)"
        lines.append(
            f"| [{fixture.name}](../ibsim_fixtures/fabrics/{fixture.path.name}) | {counts}{split} "
            f"| {fixture.purpose} | {image} |"
        )
    return "\n".join(lines) + "\n"


def page_with_table(page: str) -> str:
    """Return the text ``page`` of the page docs/fixtures.md, with its table of fixtures replaced by a new table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main() -> None:
    """Write the pictures of all fixture fabrics, and update the page docs/fixtures.md."""
    for fixture in FIXTURES.values():
        fixture.picture.write_text(draw(fixture), encoding="utf-8")
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
