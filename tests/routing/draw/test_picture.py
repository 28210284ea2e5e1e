"""Check that a picture shows the tables and the faults."""

import json
import re
import xml.etree.ElementTree as ET
import zlib
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

from ibsim_fixtures.catalogue import FIXTURES
from routing.deadlock.proof import prove
from routing.draw import dot_text, page_text, picture_of, svg_text
from routing.draw.fabric_report import busiest_channel, effect_table, loss_picture
from routing.draw.page import picture_tables
from routing.draw.svg import LETTER
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError
from routing.fabric import NO_PORT
from routing.faults import apply_faults, every_link, parse_fault
from routing.formats.csv_table import Table, csv_text
from routing.formats.fabric_files import read_fabric
from routing.quality import channel_loads
from routing.topologies import generate
from routing.whatif import Baseline, evaluate, single_faults

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def ring():
    fabric = generate("ring", ["6"])
    routing = ENGINES["minhop"].route(fabric, EngineOptions())
    return fabric, routing, prove(fabric, routing).credit_loop


def drawn(picture):
    """Return the elements of a picture, in the order in which they are drawn."""
    return list(ET.fromstring(svg_text(picture, "t")))


def embedded(page):
    """Return the data and the forwarding tables that a page embeds."""
    found = dict(re.findall(r'<script type="text/plain" id="(\w+)">([^<]*)<', page))
    return {name: zlib.decompress(b64decode(text)) if text else b"" for name, text in found.items()}


def test_cables_have_the_load_of_both_directions(ring):
    fabric, routing, _ = ring
    cables = picture_of(fabric, routing).cables
    loads = channel_loads(fabric, routing)
    assert len(cables) == 6
    for (a, b), (p, q), (there, back) in zip(cables.ends, cables.ports, cables.load, strict=True):
        assert there == loads[fabric.channels.at_port[a, p]]
        assert back == loads[fabric.channels.at_port[b, q]]


def test_the_fullest_cable_is_in_the_last_class():
    fabric = generate("mesh", ["5x2"])
    routing = ENGINES["updn"].route(fabric, EngineOptions(effort=0.05))
    picture = picture_of(fabric, routing)
    use = picture.cables.load.max(axis=1) / picture.cables.rate
    share = use / use.max()
    slow = [0 if s == 0 else next(n for n, limit in enumerate((0.25, 0.5, 0.75, 1.0), 1) if s <= limit) for s in share]
    assert picture.classes.tolist() == slow
    assert {4} < set(slow)


def test_lost_cables_and_switches():
    fabric = generate("torus", ["3x3"])
    faults = [parse_fault("sw0.0/3", fabric), parse_fault("sw2.2", fabric)]
    left = apply_faults(fabric, faults)
    picture = picture_of(fabric, ENGINES["updn"].route(left, EngineOptions(effort=0.05)), after_faults=left)
    assert np.flatnonzero(picture.lost_switches).tolist() == [fabric.switch_name.index("sw2.2")]
    assert picture.cables.lost.sum() == 5
    assert (picture.cables.load[picture.cables.lost] == 0).all()
    assert (picture.lft[picture.lost_switches] == NO_PORT).all()
    root = ET.fromstring(svg_text(picture, "t"))
    assert len(root.findall(f".//{SVG}circle[@class='gone']")) == 1
    assert root.find(f"./{SVG}path[@class='l6']").get("d").count("M") == 5


def test_swapped_plugs_are_drawn_as_lost_and_added():
    fabric = generate("torus", ["3x3"])
    left = apply_faults(fabric, [parse_fault("swap sw0.0/3 sw1.1/3", fabric)])
    cables = picture_of(fabric, after_faults=left).cables
    assert cables.lost.sum() == cables.added.sum() == 2
    assert not (cables.lost & cables.added).any()


def test_switches_of_another_fabric_are_refused():
    with pytest.raises(OptionError, match="other switches"):
        picture_of(generate("ring", ["4"]), after_faults=generate("ring", ["5"]))


def test_a_credit_loop_is_drawn_along_its_channels(ring):
    fabric, routing, loop = ring
    picture = picture_of(fabric, routing, loop=loop)
    ends = [tuple(picture.cables.ends[row].tolist()[:: 1 if way == 0 else -1]) for row, way in picture.loop]
    assert ends == [(int(fabric.channels.src[t.channel]), int(fabric.channels.dst[t.channel])) for t in loop.turns]
    root = ET.fromstring(svg_text(picture, "t"))
    assert root.find(f".//{SVG}path[@class='arrow']").get("d").count("Z") == len(loop)


def test_arrows_of_a_credit_loop_cover_switches_and_names(ring):
    fabric, routing, loop = ring
    kinds = [each.get("class") or each.tag.removeprefix(SVG) for each in drawn(picture_of(fabric, routing, loop=loop))]
    assert kinds.index("arrow") > max(row for row, kind in enumerate(kinds) if kind in ("g", "text"))


def test_the_most_loaded_channel_is_marked_with_its_direction():
    fabric = generate("kary-ntree", ["2", "3"])
    routing = ENGINES["ftree"].route(fabric, EngineOptions())
    loads, channels = channel_loads(fabric, routing), fabric.channels
    picture = picture_of(fabric, routing)
    cable, direction = picture.busiest
    row = channels.at_port[picture.cables.ends[cable, direction], picture.cables.ports[cable, direction]]
    assert loads[row] == loads.max() > loads.mean()
    named = f"{fabric.labels[channels.src[row]]} port {channels.port[row]} -> "
    assert busiest_channel(fabric, loads).startswith(named)
    (line,) = (each for each in drawn(picture) if each.get("class") == "busy")
    begin, end = picture.layout.xy[channels.src[row]], picture.layout.xy[channels.dst[row]]
    numbers = list(map(int, re.findall(r"-?\d+", line.get("d"))))
    assert (numbers[:2], numbers[-2:]) == (begin.tolist(), end.tolist())
    assert picture_of(fabric).busiest is None


def test_whole_names_are_inside_of_the_picture():
    fabric = replace(generate("ring", ["3"]), switch_name=tuple(f"a-long-name-{row}" for row in range(3)))
    picture = picture_of(fabric)
    left, _, width, _ = map(float, ET.fromstring(svg_text(picture, "t")).get("viewBox").split())
    x, half = picture.layout.xy[:, 0], LETTER * len("a-long-name-0") / 2
    assert left <= x.min() - half and x.max() + half <= left + width


@pytest.mark.parametrize("words", [("ring", "6"), ("kary-ntree", "2", "3"), ("dragonfly", "4", "2", "2")])
def test_svg_has_every_switch_and_cable_once(words):
    fabric = generate(words[0], words[1:])
    picture = picture_of(fabric)
    root = ET.fromstring(svg_text(picture, "a <b> & c"))
    titles = [circle.find(f"{SVG}title").text for circle in root.findall(f".//{SVG}circle")]
    assert [title.split(":")[0] for title in titles] == list(fabric.switch_name)
    assert root.find(f"./{SVG}path[@class='l5']").get("d").count("M") == len(picture.cables)
    assert root.find(f"{SVG}title").text == "a <b> & c"
    left, top, width, height = map(float, root.get("viewBox").split())
    x, y = picture.layout.xy.T
    assert (x > left).all() and (y > top).all() and (x < left + width).all() and (y < top + height).all()


def test_empty_fabrics_have_pictures():
    fabric = generate("ring", ["3"])
    none = replace(apply_faults(fabric, [parse_fault(name, fabric) for name in fabric.switch_name]), name="none")
    assert none.switches == 0
    ET.fromstring(svg_text(picture_of(none), "nothing"))
    assert "</html>" in page_text("nothing", picture=picture_of(none))


def test_every_fixture_has_a_page():
    for name, fixture in FIXTURES.items():
        fabric = read_fabric(fixture.path)
        picture = picture_of(fabric, ENGINES["updn"].route(fabric, EngineOptions(passes=0, effort=0.05)))
        assert len(np.unique(picture.layout.xy, axis=0)) == fabric.switches, name
        page = page_text(name, picture=picture)
        assert page.count("<circle ") == fabric.switches and len(page) < 200_000, name


def test_names_cannot_break_a_page_or_a_picture(ring):
    fabric = replace(ring[0], switch_name=('</script><b a="1">', "a\nb", "\\", '"', "é", ""))
    picture = picture_of(fabric, ring[1])
    page = page_text('</script>"<i>', [("<u>", "</dd>")], [], picture)
    assert page.count("</script>") == 3
    assert "<b a" not in page and "<i>" not in page and "<u>" not in page
    assert json.loads(embedded(page)["data"])["names"] == list(fabric.labels[:6])
    ET.fromstring(svg_text(picture, '</script>"<i>'))
    for line in dot_text(picture, '"').splitlines()[2:-1]:
        assert re.fullmatch(r'  s\d+( -- s\d+)? \[(?:[^"]|"(?:[^"\\]|\\.)*")*\];', line), line


def test_a_page_embeds_the_tables_that_fit(ring):
    fabric, routing, _ = ring
    picture = picture_of(fabric, routing)
    parts = embedded(page_text("t", picture=picture))
    data = json.loads(parts["data"])
    assert data["paths"] == "all"
    assert data["lids"] == fabric.endport_lid.tolist()
    assert np.array_equal(np.frombuffer(parts["lft"], np.uint8).reshape(6, -1), routing.lft[:, data["lids"]])
    assert json.loads(embedded(page_text("t", picture=picture, most_bytes=10))["data"])["paths"] == "none"
    assert json.loads(embedded(page_text("t", picture=picture_of(fabric)))["data"])["paths"] == "no tables"


def test_one_lid_of_each_switch_if_all_do_not_fit():
    fabric = generate("random-regular", ["40", "4"], cas=8)
    routing = ENGINES["dfsssp"].route(fabric, EngineOptions())
    picture = picture_of(fabric, routing)
    all_of_them = len(page_text("t", picture=picture))
    page = page_text("t", picture=picture, most_bytes=all_of_them - 1)
    data = json.loads(embedded(page)["data"])
    assert data["paths"] == "switches"
    assert fabric.lids.switch[data["lids"]].tolist() == list(range(40))
    assert len(page.encode()) < all_of_them


def test_tables_of_a_picture_have_all_of_it(ring):
    fabric, routing, loop = ring
    switches, cables, endports = picture_tables(picture_of(fabric, routing, loop=loop))
    assert [row[0] for row in switches.rows] == list(fabric.switch_name)
    assert len(cables.rows) == 6
    assert {row[-1] for row in cables.rows} == {"credit loop"}
    shares = [row[cables.columns.index("% of the fullest")] for row in cables.rows]
    assert shares == sorted(shares, reverse=True)
    assert [(row[0], row[2]) for row in endports.rows] == list(
        zip(fabric.endport_label, fabric.endport_lid.tolist(), strict=True)
    )


def test_cables_show_the_loss_of_their_faults():
    fabric = generate("mesh", ["3x2"])
    baseline = Baseline.of(fabric, ENGINES["updn"], EngineOptions())
    effects = [evaluate(baseline, scenario) for scenario in single_faults(every_link(fabric))]
    picture = loss_picture(fabric, effects[1:])
    assert np.isnan(picture.colouring.values).sum() == 1
    known = sorted(picture.colouring.values[~np.isnan(picture.colouring.values)].tolist())
    assert known == sorted(max(effect.loss, 0.0) for effect in effects[1:])
    assert set(picture.classes.tolist()) >= {4, 7}
    assert loss_picture(fabric, []).colouring is None
    records = effect_table(effects).records()
    assert [row["fault"] for row in records] == [effect.fault for effect in effects]
    assert [row["all_to_all_loss"] for row in records] == [effect.loss for effect in effects]


def test_csv_keeps_every_cell():
    table = Table.of("t", [{"a": 'x"y,z', "b": float("nan")}, {"a": "l\nm", "b": True, "c": [1, 2]}])
    assert csv_text(table) == 'a,b,c\n"x""y,z",,\n"l\nm",yes,1; 2\n'
    assert table.records()[1] == {"a": "l\nm", "b": True, "c": "1; 2"}
