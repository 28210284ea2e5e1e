from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, ring_fabric

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.engines.orders import breadth_first, top_switches
from routing.engines.roots import named_roots, roots_left
from routing.errors import EnvironmentProblem, OptionError, ParseError
from routing.faults import apply_faults, every_link, every_switch
from routing.publish import verify
from routing.quality import channel_loads
from routing.topologies import generate

TREE = generate("kary-ntree", ["3", "3"])
GUIDS = [int(guid) for guid in TREE.switch_guid]


def firsts(**options):
    return ENGINES["updn"].route(TREE, EngineOptions(vls=1, **options)).provenance.options["first_switches"]


def written(tmp_path, text):
    path = tmp_path / "roots.txt"
    path.write_text(text)
    return path


def test_a_root_is_named_by_name_or_guid_or_in_a_file(tmp_path):
    root = TREE.switch_name[7]
    for names in (root, f"{GUIDS[7]:#x}", f"0X{GUIDS[7]:016X}"):
        assert firsts(roots=(names,)) == [root]
    assert firsts(root_guid_file=written(tmp_path, f"# the top\n{GUIDS[7]:#x}\n")) == [root]


def test_a_name_that_looks_like_a_guid_is_a_name():
    names = list(TREE.switch_name)
    names[3] = f"{GUIDS[5]:#x}"
    fabric = replace(TREE, switch_name=tuple(names))
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, roots=(names[3],)))
    assert routing.provenance.options["first_switches"] == [names[3]]


def test_roots_of_the_file_come_after_those_named(tmp_path):
    path = written(tmp_path, f"{GUIDS[2]:#x}\n{GUIDS[4]:#x}\n")
    both = EngineOptions(vls=1, roots=(TREE.switch_name[4],), root_guid_file=path)
    by_name = EngineOptions(vls=1, roots=(TREE.switch_name[4], TREE.switch_name[2]))
    lfts = [ENGINES["updn"].route(TREE, options).lft for options in (both, by_name)]
    assert np.array_equal(*lfts)


@pytest.mark.parametrize(
    ("name", "output"),
    [("nobody", "no switch is named 'nobody'"), ("0xzz", "'0xzz'"), ("", "''"), ("0xfe", "'0xfe'")],
)
def test_an_unknown_root_is_one_line(name, output):
    with pytest.raises(OptionError) as caught:
        firsts(roots=(name,))
    assert output in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "# none yet\n"])
def test_a_file_without_roots_is_refused(text, tmp_path):
    with pytest.raises(ParseError, match=r"names no switch \(leave the file out, and roots are found\)$"):
        firsts(root_guid_file=written(tmp_path, text))


def test_a_name_of_several_switches_is_one_line():
    fabric = replace(TREE, switch_name=("twin",) * TREE.switches)
    with pytest.raises(OptionError, match=r"^27 switches are named 'twin' \(name the root by its GUID: 0x.*\)$"):
        ENGINES["updn"].route(fabric, EngineOptions(roots=("twin",)))


def test_an_unknown_guid_in_a_file_names_the_file(tmp_path):
    path = written(tmp_path, f"{GUIDS[2]:#x}\n0xdead\n")
    with pytest.raises(OptionError, match=r"roots.txt: no switch has GUID 0x000000000000dead \(list "):
        firsts(root_guid_file=path)


def test_a_ca_is_no_root(tmp_path):
    path = written(tmp_path, f"{int(TREE.terminal_guid[0]):#x}\n")
    with pytest.raises(OptionError, match="no switch has GUID"):
        firsts(root_guid_file=path)


@pytest.mark.parametrize("line", ["spine-1", "0x12g4", "xyz 0x1", "0x11111111111111111"])
def test_a_bad_line_in_a_file_is_reported_with_its_number(tmp_path, line):
    path = written(tmp_path, f"{GUIDS[2]:#x}\n{line}\n{GUIDS[3]:#x}\n")
    with pytest.raises(ParseError, match=r"roots.txt:2: ") as caught:
        firsts(root_guid_file=path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(EnvironmentProblem, match="there is no such file"):
        firsts(root_guid_file=tmp_path / "none")


def test_roots_that_are_gone_are_left_out(tmp_path):
    path = written(tmp_path, f"{GUIDS[2]:#x}\n{GUIDS[4]:#x}\n")
    options = EngineOptions(roots=(TREE.switch_name[7], f"{GUIDS[8]:#x}"), root_guid_file=path)
    every = every_switch(TREE)
    less = apply_faults(TREE, [every[2], every[8]])
    left = roots_left(less, options, [TREE])
    assert (left.roots, left.root_guid_file) == ((TREE.switch_name[7], f"{GUIDS[4]:#018x}"), None)
    assert named_roots(less, left) == [row(less, GUIDS[7]), row(less, GUIDS[4])]
    assert roots_left(TREE, options, [less]) is options
    assert roots_left(less, EngineOptions(roots=("nobody",)), [TREE]).roots == ("nobody",)


def row(fabric, guid):
    return fabric.switch_guid.tolist().index(guid)


def test_roots_go_with_the_tables(tmp_path):
    options = EngineOptions(roots=(TREE.switch_name[7],), root_guid_file=written(tmp_path, f"{GUIDS[2]:#x}\n"))
    made = ENGINES["updn"].route(TREE, options).provenance.options
    assert made["roots"] == [f"{GUIDS[7]:#018x}", f"{GUIDS[2]:#018x}"]


# The next tests check the effect of roots on an order.


def is_joined(fabric, position):
    """Return whether every switch except the first switch of its part has an earlier neighbour."""
    channels = fabric.channels
    late = np.ones(fabric.switches, bool)
    late[channels.src[position[channels.dst] < position[channels.src]]] = False
    return late.sum() == len(np.unique(fabric.component))


@examples(80)
@given(fabrics(max_switches=20, connected=False), st.data())
def test_any_roots_make_an_order_that_serves(fabric, data):
    roots = data.draw(st.lists(st.integers(0, fabric.switches - 1), min_size=1, max_size=6, unique=True))
    position = breadth_first(fabric, roots)
    assert sorted(position.tolist()) == list(range(fabric.switches))
    assert is_joined(fabric, position)
    assert position[roots[0]] == 0


@examples(30)
@given(fabrics(max_switches=12, connected=False), st.integers(1, 4), st.data())
def test_updn_with_any_roots_is_certified(fabric, vls, data):
    roots = data.draw(st.lists(st.sampled_from(fabric.switch_name), min_size=1, max_size=4, unique=True))
    options = EngineOptions(roots=tuple(roots), vls=vls, passes=1)
    proof = verify(fabric, ENGINES["updn"].route(fabric, options), ENGINES["updn"]).proof
    assert proof.certified and proof.strength == "reversible"


def test_roots_of_a_tree_reach_each_other_and_leaves_keep_their_paths():
    """If all top switches are roots, paths between leaves stay shortest, and top switches reach each other."""
    tops = top_switches(TREE)
    assert len(tops) == 9
    options = EngineOptions(vls=1, roots=tuple(TREE.switch_name[top] for top in tops))
    routing = ENGINES["updn"].route(TREE, options)
    proof = verify(TREE, routing, ENGINES["updn"]).proof
    assert proof.certified
    assert (proof.hops[np.ix_(tops, TREE.switch_lid[tops])] < 255).all()
    leaves = np.flatnonzero(TREE.terminals_at)
    shortest = ENGINES["minhop"].route(TREE, EngineOptions())
    hops = verify(TREE, shortest, ENGINES["minhop"]).proof.hops
    ends = TREE.endport_lid.astype(int)
    assert np.array_equal(proof.hops[np.ix_(leaves, ends)], hops[np.ix_(leaves, ends)])


def test_the_top_of_a_tree_is_found():
    assert [TREE.switch_name[top] for top in top_switches(TREE)] == [f"sw3.{column}" for column in range(9)]
    assert top_switches(ring_fabric(5)) == []


@pytest.mark.parametrize("shape", [["4", "2"], ["6", "2"], ["4", "3"], ["3", "4"]], ids=str)
@pytest.mark.parametrize("lmc", [0, 2])
def test_without_named_roots_a_whole_tree_is_routed_no_worse_than_from_its_tops(shape, lmc):
    """The search for an order must not adapt itself to accidents, which cost an earlier version a fifth of the rate."""
    fabric = generate("kary-ntree", shape, lmc=lmc)
    tops = tuple(fabric.switch_name[top] for top in top_switches(fabric))
    found, named = (ENGINES["updn"].route(fabric, EngineOptions(vls=1, roots=roots)) for roots in ((), tops))
    assert channel_loads(fabric, found).max() <= channel_loads(fabric, named).max()


def test_a_lost_link_of_a_tree_costs_at_most_its_share():
    """The end ports of a leaf that keeps all but one of its uplinks lose at least this share, and no other traffic may
    lose more.
    """
    fabric = generate("kary-ntree", ["5", "3"])
    whole = channel_loads(fabric, ENGINES["updn"].route(fabric, EngineOptions(vls=1))).max()
    for fault in every_link(fabric)[130:150]:
        left = apply_faults(fabric, [fault])
        load = channel_loads(left, ENGINES["updn"].route(left, EngineOptions(vls=1))).max()
        assert whole / load >= 1 - 1 / 5 - 1e-9, fault.name
