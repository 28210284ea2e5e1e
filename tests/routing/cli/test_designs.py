"""Check ``ibnue designs``: each proposal has room for the hosts, fits the switches, and is the smallest of its
family.
"""

import json
import math

import pytest
from command_runs import run

from routing.advise.proposals import TARGETS, evaluate_shape, fabric_of, propose
from routing.fabric_figures import bisection_bound
from routing.topologies import generate


@pytest.mark.parametrize(("hosts", "ports"), [(2, 2), (20, 36), (37, 36), (72, 12), (600, 36), (1000, 20), (30, 4)])
def test_designs_hold_the_hosts_and_fit_the_switches(hosts, ports):
    for shape in propose(hosts, ports):
        found = evaluate_shape(shape)
        assert hosts <= found.hosts == shape.hosts
        assert found.ports <= ports
        assert found.switches == shape.switches
        assert found.cables == shape.cables or (shape.family == "dragonfly" and found.cables <= shape.cables)
        if shape.family == "tree" and shape.switches > 1:
            assert found.bisection == pytest.approx(shape.share)
            assert found.oversubscription == pytest.approx(1 / shape.share)


def test_a_full_tree_of_two_levels_is_the_textbook_one():
    """P^2 / 2 hosts need 3 P / 2 switches of P ports.  One more host needs a third level."""
    for ports in (4, 12, 36):
        full = ports * ports // 2
        assert propose(full, ports)[0].switches == 3 * ports // 2
        assert propose(full, ports)[0].design == f"xgft:{ports // 2}x{ports},1x{ports // 2}"
        assert propose(full + 1, ports)[0].design.count("x") > 4


def test_a_smaller_bisection_needs_no_more_switches():
    shapes = propose(600, 36)
    for family in {shape.family for shape in shapes}:
        sizes = [shape.switches for shape in shapes if shape.family == family]
        assert sizes == sorted(sizes, reverse=True)
        assert len(sizes) <= len(TARGETS)


def test_the_bound_of_the_bisection_is_known_on_regular_fabrics():
    assert bisection_bound(generate("torus", ["4x4"], cas=2)) == pytest.approx(8 / 16)
    assert bisection_bound(generate("ring", ["6"], cas=2)) == pytest.approx(2 / 6)
    assert bisection_bound(generate("full-mesh", ["4"])) == pytest.approx(4 / 2)
    assert bisection_bound(generate("hypercube", ["4"])) == pytest.approx(8 / 8)
    assert bisection_bound(generate("xgft", ["9x8", "1x3"])) == pytest.approx(1 / 3)
    assert bisection_bound(generate("xgft", ["4", "1"])) is None


def test_the_command_lists_generators_that_other_commands_read():
    found = json.loads(run("designs", 72, "--ports", 12, "--json").output)
    assert (found["hosts"], found["switch_ports"]) == (72, 12)
    first = found["designs"][0]
    assert (first["design"], first["switches"], first["cables"]) == ("xgft:6x12,1x6", 18, 72)
    words = [each["design"] for each in found["designs"][:2]]
    assert run("compare-designs", *words, "--hosts", 72, "--ports", 12, "--links", 0).exit_code == 0


def test_too_many_hosts_are_refused():
    result = run("designs", 40000, "--ports", 4)
    assert result.exit_code == 2
    assert result.stderr.startswith("ibnue: no proposed design connects 40000 hosts by switches of 4 ports")


def test_a_single_switch_is_enough_for_as_many_hosts_as_ports():
    (shape,) = propose(36, 36)
    assert (shape.switches, fabric_of(shape).switches, math.isinf(shape.share)) == (1, 1, False)
