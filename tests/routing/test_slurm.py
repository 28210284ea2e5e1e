"""Check Slurm's topology files: a tree that leads to every node once, and lists that stand for their names."""

import re
from dataclasses import replace

import pytest
from command_runs import assert_refused, run
from hypothesis import given
from hypothesis import strategies as st

from ibsim_fixtures.catalogue import FIXTURES
from routing.errors import FabricError, InputWarning
from routing.formats.fabric_files import read_fabric
from routing.simulate.handmade import literal_fabric
from routing.slurm import hostlist, slurm_planes
from routing.topologies import generate


def expand(text):
    """Yield the names that a Slurm list stands for."""
    for prefix, inside in re.findall(r"([^,\[]+)(?:\[([^\]]*)\])?", text):
        for part in inside.split(",") if inside else [None]:
            if part is None:
                yield prefix
                continue
            first, _, last = part.partition("-")
            for number in range(int(first), int(last or first) + 1):
                yield (
                    f"{prefix}{number:0{len(first)}}"
                    if first.startswith("0") and len(first) > 1
                    else f"{prefix}{number}"
                )


@given(st.lists(st.from_regex(r"[a-c]-?[0-9]{0,3}", fullmatch=True), unique=True, min_size=1))
def test_lists_stand_for_their_names(names):
    assert sorted(expand(hostlist(names))) == sorted(names)


def test_a_list_is_short():
    assert hostlist([f"node{n:02}" for n in range(1, 19)] + ["login", "node20"]) == "node[01-18,20],login"
    assert hostlist(["n9", "n10", "n11"]) == "n[9-11]"


def nodes_below(plane):
    """Return the nodes below each switch.  A switch may only name switches before it."""
    found = {}
    for switch in plane.switches:
        found[switch.name] = [*switch.nodes, *(node for below in switch.switches for node in found[below])]
    return found


@pytest.mark.parametrize(
    "words", [("kary-ntree", "3", "3"), ("torus", "3x3"), ("cluster", "4x4x4", "4x2"), ("ring", "3")]
)
def test_the_root_leads_to_every_node_once(words):
    fabric = generate(words[0], words[1:])
    (plane,) = slurm_planes(fabric)
    below = nodes_below(plane)
    assert len(below) == len(plane.switches)
    assert sorted(below["root"]) == sorted(fabric.terminal_name)


def test_switches_of_a_pod_count_as_one():
    (plane,) = slurm_planes(generate("kary-ntree", ["3", "3"]))
    pods = [switch for switch in plane.switches if switch.name.startswith("pods")]
    assert [len(pod.switches) for pod in pods] == [3, 3, 3]
    assert plane.switches[-1].switches == tuple(pod.name for pod in pods)


def test_a_management_switch_below_two_leaves_does_not_join_them_to_a_pod():
    leaves = [f"leaf{n}" for n in range(6)]
    cables = [(leaf, f"spine{n}") for leaf in leaves for n in range(4)]
    cables += [("management", "leaf0"), ("management", "leaf5")]
    cas = {f"{switch}-ca{n}": switch for switch in [*leaves, "management"] for n in range(4)}
    fabric = literal_fabric("below", [*leaves, *(f"spine{n}" for n in range(4)), "management"], cables, cas)
    (plane,) = slurm_planes(fabric)
    assert [switch.name for switch in plane.switches if switch.switches] == ["root"]
    assert sorted(plane.switches[-1].switches) == sorted([*leaves, "management"])


def test_each_part_has_a_root_of_its_own():
    fabric = read_fabric(FIXTURES["split-two"].path)
    (plane,) = slurm_planes(fabric)
    below = nodes_below(plane)
    assert "root" not in below
    assert sorted(below["part1-root"] + below["part2-root"]) == sorted(fabric.terminal_name)


def test_nodes_of_two_planes_occur_once_in_each():
    fabric = read_fabric(FIXTURES["dual-plane"].path)
    planes = slurm_planes(fabric)
    assert len(planes) == 2
    for plane in planes:
        assert sorted(nodes_below(plane)[plane.switches[-1].name]) == sorted(fabric.terminal_name)


def test_names_that_slurm_does_not_accept():
    fabric = generate("ring", ["3"])
    fabric = replace(fabric, switch_name=("root", "a b", "a,b"), terminal_name=("n1 HCA-1", "n[2] mlx5_0", "n3,HCA"))
    (plane,) = slurm_planes(fabric)
    names = [switch.name for switch in plane.switches]
    assert len(set(names)) == 4 and "root-" in names
    assert all(re.fullmatch(r"[\w.-]+", name) for name in names)
    assert nodes_below(plane)["root-"] == ["n1", "n_2_", "n3_HCA"]


def test_nodes_of_the_same_rails_are_at_the_same_leaf():
    cas = {"n1 HCA-1": "rail-a", "n1 HCA-2": "rail-b", "n2 HCA-2": "rail-b", "n2 HCA-1": "rail-a"}
    fabric = literal_fabric("rails", ["rail-a", "rail-b", "spine"], [("rail-a", "spine"), ("rail-b", "spine")], cas)
    with pytest.warns(InputWarning, match="node n1 is at rail-a and rail-b .and 1 more.: the switch with"):
        (plane,) = slurm_planes(fabric)
    assert [(switch.name, switch.nodes) for switch in plane.switches] == [("rail-a", ("n1", "n2"))]


def test_cas_that_no_host_has_named_are_left_out():
    names = ("MT4129 ConnectX7   Mellanox Technologies", "localhost HCA-3", "localhost-3")
    with pytest.warns(InputWarning, match="^2 ports of CAs without a node's name, such as 'MT4129 .*: left out"):
        (plane,) = slurm_planes(replace(generate("ring", ["3"]), terminal_name=names))
    assert nodes_below(plane)[plane.switches[-1].name] == ["localhost-3"]


def test_a_node_at_two_leaves_occurs_once():
    fabric = read_fabric(FIXTURES["dual-port-two-switches"].path)
    with pytest.warns(InputWarning, match="node ca0 is at sw0 and sw3 .and 2 more"):
        (plane,) = slurm_planes(fabric)
    every = [node for switch in plane.switches for node in switch.nodes]
    assert sorted(every) == sorted(fabric.terminal_name)


def test_a_fabric_without_nodes_is_refused():
    with pytest.raises(FabricError, match="no compute node"):
        slurm_planes(read_fabric(FIXTURES["switches-only"].path))


def test_the_command_writes_both_files(tmp_path):
    found = run("slurm", "ring:3", "-o", tmp_path / "topology.conf")
    assert found.exit_code == 0 and found.stdout == ""
    assert (tmp_path / "topology.conf").read_text() == (
        "SwitchName=sw0 Nodes=ca0.0\nSwitchName=sw1 Nodes=ca1.0\nSwitchName=sw2 Nodes=ca2.0\n"
        "SwitchName=root Switches=sw[0-2]\n"
    )
    assert '      - switch: "root"\n        children: "sw[0-2]"\n' in run("slurm", "ring:3", "--yaml").stdout
    dual = FIXTURES["dual-plane"].path
    assert_refused(run("slurm", dual), "nodes have ports in 2 planes")
    assert_refused(run("slurm", dual, "--plane", 3), "there is no plane 3")
    assert run("slurm", dual, "--plane", 2).stdout.endswith("SwitchName=part2-root Switches=sw1.[1,3,5]\n")
