"""Check that the pictures are up to date and well formed, and show all devices and cables."""

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from examples import examples
from fixture_layout import switch_places, terminal_places
from fixture_pictures import BEGIN, END, draw, page_with_table
from fixture_svg import picture
from hypothesis import given
from in_one_test import cases_in_one_test
from strategies import fabrics

from ibsim_fixtures.catalogue import FIXTURES, FOLDER
from routing.fabric import NodeKind
from routing.formats.fabric_files import read_fabric

ALL = list(FIXTURES.values())
SVG = "{http://www.w3.org/2000/svg}"


def named(fixture):
    return fixture.name


def shapes(text):
    root = ElementTree.fromstring(text)
    count = {}
    for element in root:
        key = (element.tag.removeprefix(SVG), element.get("class"))
        count[key] = count.get(key, 0) + 1
    return root, count


@cases_in_one_test("fixture", ALL, ids=named)
def test_picture_is_up_to_date(fixture):
    message = "run python docs/fixture_pictures.py"
    assert fixture.picture.read_text(encoding="utf-8") == draw(fixture), message


@cases_in_one_test("fixture", ALL, ids=named)
def test_picture_shows_everything(fixture):
    fabric = read_fabric(fixture.path)
    root, count = shapes(draw(fixture))
    routers = np.count_nonzero(fabric.terminal_kind == NodeKind.ROUTER)
    assert count.get(("rect", "s"), 0) == fabric.switches
    assert count.get(("circle", "c"), 0) == fabric.terminals - routers
    assert count.get(("path", "r"), 0) == routers
    assert count.get(("path", None), 0) + count.get(("path", "e"), 0) == fabric.links
    assert count.get(("path", "x"), 0) == (len(fixture.recipe.without) if fixture.recipe else 0)
    assert fixture.purpose in root.find(f"{SVG}title").text


@cases_in_one_test("fixture", ALL, ids=named)
def test_nothing_lies_on_a_switch_or_outside(fixture):
    fabric = read_fabric(fixture.path)
    switches = switch_places(fabric, fixture.layout)
    positions = [*switches, *terminal_places(fabric, fixture.layout, switches)]
    for i, switch in enumerate(switches):
        for other in positions[i + 1 :]:
            assert math.dist(switch, other) > 18
    left, top, width, height = map(int, ElementTree.fromstring(draw(fixture)).get("viewBox").split())
    for x, y in positions:
        assert left < x < left + width
        assert top < y < top + height


def test_no_picture_without_a_fixture():
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(FIXTURES)


def test_page_is_up_to_date():
    page = (Path(__file__).parents[2] / "docs" / "fixtures.md").read_text(encoding="utf-8")
    assert page == page_with_table(page), "run python docs/fixture_pictures.py"
    assert page.index(BEGIN) < page.index("ring-4.svg") < page.index(END)


@examples(25)
@given(fabrics(connected=False))
def test_any_fabric_can_be_drawn(fabric):
    text = picture(fabric, "circle", "<a & b>")
    _, count = shapes(text)
    assert count.get(("path", None), 0) + count.get(("path", "e"), 0) == fabric.links
    assert "nan" not in text
