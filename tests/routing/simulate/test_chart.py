"""Check that charts are well-formed SVG, and that they show every line."""

import xml.etree.ElementTree as Tree

import numpy as np

from routing.simulate.chart import chart


def test_a_chart_has_a_line_for_each_name():
    time = np.arange(5.0)
    text = chart(
        "a < b", "c > d", time, [("one", {"x": time, "y": time * 0}), ("two", {}), ("none", {"z": time[:0]})][:2]
    )
    root = Tree.fromstring(text)
    lines = root.findall("{*}polyline")
    assert [len(line.get("points").split()) for line in lines] == [5, 5]
    assert {"a < b", "one", "two", "x", "y"} <= {word.text for word in root.findall("{*}text")}
    Tree.fromstring(chart("nothing", "", np.zeros(0), [("empty", {"z": np.zeros(0)})]))


def test_names_that_svg_cannot_hold_are_escaped():
    text = chart("a\x00", "b\x1b", np.zeros(1), [("<c>\n", {"d\x07": np.ones(1)})])
    reported = "".join(Tree.fromstring(text).itertext())
    assert all(shown in reported for shown in ("a\\x00", "b\\x1b", "<c>\\n", "d\\x07"))
