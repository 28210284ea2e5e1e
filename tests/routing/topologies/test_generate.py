"""Check what all generators have in common: options, GUIDs, names, port numbers, and errors for impossible fabrics."""

import pickle

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from in_one_test import cases_in_one_test

from routing.errors import FabricError, OptionError
from routing.rates import SPEED_OF
from routing.topologies import TOPOLOGIES, TopologyOptions, generate
from routing.topologies.galois import GaloisField

EXAMPLES = [(topology.name, list(topology.example)) for topology in TOPOLOGIES.values()]


@pytest.mark.parametrize(("name", "args"), EXAMPLES)
def test_examples_are_made_connected_and_numbered_as_ibsim_would(name, args):
    fabric = generate(name, args)
    assert fabric.graph.is_connected()
    assert fabric.terminals > 0
    assert fabric.switch_guid.tolist() == list(range(0x200000, 0x200000 + fabric.switches))
    taken = np.concatenate([[0], np.cumsum(fabric.terminal_ports.astype(int) + 1)[:-1]])
    assert (fabric.terminal_guid == (0x100000 + taken).astype(np.uint64)).all()
    assert len({*fabric.switch_name, *fabric.terminal_name}) == fabric.switches + fabric.terminals
    assert max(map(len, (*fabric.switch_name, *fabric.terminal_name))) <= 63
    assert generate(name, args).digest == fabric.digest


@pytest.mark.parametrize(("name", "args"), EXAMPLES)
def test_options_apply_everywhere(name, args):
    plain = generate(name, args)
    fabric = generate(name, args, cas=3, redundancy=2, width=12, speed="edr", lmc=2, name="mine")
    assert fabric.name == "mine"
    assert len(fabric.channels) == 2 * len(plain.channels)
    assert (fabric.terminals_at[plain.terminals_at > 0] == 3).all()
    assert set(fabric.link_width.tolist()) == ({12, 8} if name == "cluster" else {12})
    assert set(fabric.link_speed.tolist()) == {
        SPEED_OF[each] for each in (["EDR", "FDR"] if name == "rails" else ["EDR"])
    }
    assert set(fabric.endport_lmc.tolist()) == {2}
    assert generate(name, args, cas=0).terminals == 0


@pytest.mark.parametrize(("name", "args"), EXAMPLES)
def test_parallel_links_take_neighbouring_ports(name, args):
    plain, double = generate(name, args), generate(name, args, redundancy=2)
    cas = int(plain.terminals_at.max())
    by_port = {
        (s, p): d
        for s, p, d in zip(
            double.channels.src.tolist(), double.channels.port.tolist(), double.channels.dst.tolist(), strict=True
        )
    }
    for src, port, dst in zip(
        plain.channels.src.tolist(), plain.channels.port.tolist(), plain.channels.dst.tolist(), strict=True
    ):
        own = cas if plain.terminals_at[src] else 0
        first = own + 2 * (port - own) - 1
        assert by_port[src, first] == by_port[src, first + 1] == dst


def test_names_state_their_location():
    fabric = generate("torus", ["3x4"], cas=2)
    assert fabric.switch_name[:5] == ("sw0.0", "sw0.1", "sw0.2", "sw0.3", "sw1.0")
    assert fabric.terminal_name[:3] == ("ca0.0.0", "ca0.0.1", "ca0.1.0")
    assert fabric.name == "torus-3x4"
    assert generate("kary-ntree", ["2", "2"]).switch_name == ("sw1.0", "sw1.1", "sw2.0", "sw2.1")
    assert generate("hypercube", ["2"]).switch_name == ("sw0.0", "sw0.1", "sw1.0", "sw1.1")


@pytest.mark.parametrize("args", [["4x4x4"], ["4,4,4"], ["4", "4", "4"], ["4x4", "4"]])
def test_sizes_may_be_written_in_several_notations(args):
    assert generate("torus", args).switches == 64


def test_speed_in_gigabits():
    assert set(generate("ring", ["3"], speed=10).link_speed.tolist()) == {10.0}
    assert set(generate("ring", ["3"], speed=14).link_speed.tolist()) == {SPEED_OF["FDR"]}
    assert set(generate("ring", ["3"], speed="25.78").link_speed.tolist()) == {SPEED_OF["EDR"]}


def test_multi_port_cas_of_an_xgft():
    fabric = generate("xgft", ["4x2", "2x1"])
    assert fabric.terminal_ports.tolist() == [2] * 8
    assert fabric.endports == 16


@cases_in_one_test(
    ("name", "args", "options", "word"),
    [
        ("tours", ["4x4"], {}, "torus"),
        ("torus", [], {}, "torus:AxB"),
        ("torus", ["4x"], {}, "whole numbers"),
        ("torus", ["4x-4"], {}, "whole numbers"),
        ("torus", ["four"], {}, "such as"),
        ("torus", ["4x٤"], {}, "whole numbers"),
        ("torus", ["4x0"], {}, "not a grid"),
        ("torus", ["400x400"], {}, "unicast LIDs"),
        ("torus", ["9999999"], {}, "more than any subnet holds"),
        ("torus", ["99999"], {}, "more than any subnet"),
        ("torus", ["4x" + "9" * 23], {}, f"{'9' * 23} is more than any subnet holds"),
        ("torus", ["4x4"], {"lmc": 8}, "LMC"),
        ("torus", ["20x20"], {"lmc": 7}, "LMC"),
        ("torus", ["4x4"], {"cas": -1}, "0 to 254"),
        ("torus", ["4x4"], {"cas": 251}, "254"),
        ("torus", ["4x4"], {"cas": 1.5}, "whole number"),
        ("torus", ["4x4"], {"cas": "two"}, "whole number"),
        ("torus", ["4x4"], {"redundancy": 0}, "single links"),
        ("torus", ["4x4"], {"redundancy": 100}, "254"),
        ("torus", ["4x4"], {"speed": "warp"}, "SDR (2.5), DDR"),
        ("torus", ["4x4"], {"speed": 3}, "QDR (10)"),
        ("torus", ["4x4"], {"speed": float("nan")}, "QDR (10)"),
        ("torus", ["4x4"], {"speed": None}, "SDR"),
        ("torus", ["4x4"], {"width": 3}, "1, 2, 4"),
        ("torus", ["4x4"], {"name": 4}, "text"),
        ("torus", ["4x4"], {"colour": 3}, "options are"),
        ("ring", ["2"], {}, "at least 3"),
        ("ring", ["3", "4"], {}, "ring:N"),
        ("hypercube", ["16"], {}, "0 to 15"),
        ("hyperx", ["3x3", "1"], {}, "per dimension"),
        ("hyperx", ["3x3", "1x0"], {}, "at least 1"),
        ("hyperx", ["300"], {}, "254"),
        ("full-mesh", ["0"], {}, "at least 1"),
        ("kary-ntree", ["4"], {}, "kary-ntree:K,N"),
        ("kary-ntree", ["0", "3"], {}, "at least 1"),
        ("kary-ntree", ["30", "5"], {}, "unicast LIDs"),
        ("kary-ntree", ["1000", "15"], {}, "unicast LIDs"),
        ("xgft", ["2x2"], {}, "xgft:M1"),
        ("xgft", ["2x2", "1"], {}, "two lists"),
        ("xgft", ["2x2", "0x1"], {}, "two lists"),
        ("dragonfly", ["4", "2", "2", "10"], {}, "1 to 9"),
        ("dragonfly", ["0", "2", "2"], {}, "at least 1"),
        ("cascade", ["0"], {}, "1 to 96 h"),
        ("cascade", ["3", "0"], {}, "1 to 96 h"),
        ("cascade", ["3", "1", "2"], {}, "cascade:G[,H][,C,B]"),
        ("cascade", ["3", "1", "0", "4"], {}, "at least 1"),
        ("rails", ["2x4", "4"], {}, "rails 2x4x8 4"),
        ("rails", ["2x0x4", "4"], {}, "rails 2x4x8 4"),
        ("rails", ["2x4x4", "4x2"], {}, "rails 2x4x8 4"),
        ("rails", ["99x9x9", "300"], {}, "254"),
        ("director", ["2", "4", "2"], {}, "director:N,L,S,C[,A]"),
        ("director", ["2", "4", "2", "0"], {}, "at least 1"),
        ("director", ["2", "4", "2", "9"], {}, "fewer cables"),
        ("director", ["9", "9", "9", "9", "0"], {}, "at least 1"),
        ("director", ["999", "24", "12", "1", "1"], {}, "unicast LIDs"),
        ("slimfly", ["6"], {}, "prime power"),
        ("slimfly", ["2"], {}, "prime power"),
        ("slimfly", ["1"], {}, "prime power"),
        ("slimfly", ["10"], {}, "prime power"),
        ("kautz", ["0", "3"], {}, "1 to 126"),
        ("kautz", ["9", "9"], {}, "unicast LIDs"),
        ("random-regular", ["5", "3"], {}, "even"),
        ("random-regular", ["5", "5"], {}, "under the number"),
        ("random-regular", ["6", "1"], {}, "2 or more"),
        ("random-regular", ["0", "0"], {}, "under the number"),
    ],
)
def test_impossible_fabrics_are_refused_in_one_line(name, args, options, word):
    with pytest.raises(OptionError) as caught:
        generate(name, args, **options)
    text = str(caught.value)
    assert caught.value.remedy
    assert word in text
    assert "\n" not in text


@st.composite
def calls(draw):
    """Draw a topology and its arguments, in most cases as many as it takes."""
    name = draw(st.sampled_from(sorted(TOPOLOGIES)))
    topology = TOPOLOGIES[name]
    count = draw(st.sampled_from(topology.counts or (1, 2, 3)))
    length = draw(st.integers(1, 3)) if topology.lists else 1
    sizes = st.lists(st.integers(0, 6), min_size=length, max_size=length).map(lambda n: "x".join(map(str, n)))
    return name, draw(st.lists(sizes, min_size=count, max_size=count))


@examples(150)
@given(calls(), st.fixed_dictionaries({}, optional={"cas": st.integers(-1, 9), "redundancy": st.integers(0, 5)}))
def test_any_arguments_make_a_fabric_or_a_complaint(call, options):
    name, args = call
    try:
        fabric = generate(name, args, **options)
    except OptionError:
        return
    planes = int(args[1].split("x")[0]) if name == "xgft" else 1
    assert len(fabric.graph.connected_components(mode="weak")) == planes
    assert fabric.links == len(fabric.channels) // 2 + fabric.endports


@examples(60)
@given(st.sampled_from(sorted(TOPOLOGIES)), st.lists(st.text("0123456789x, -+٣e.", max_size=6), max_size=3))
def test_no_text_gives_another_error(name, args):
    try:
        generate(name, args)
    except (OptionError, FabricError) as error:
        assert error.remedy


def test_the_forty_port_tree():
    fabric = generate("xgft", ["20x20x40", "1x20x20"])
    assert (fabric.switches, fabric.terminals, fabric.links) == (2000, 16000, 48000)
    assert set(fabric.switch_ports.tolist()) == {40}


@pytest.mark.parametrize("order", [2, 3, 4, 5, 8, 9, 16, 25, 27])
def test_galois_field_is_a_field(order):
    field, every = GaloisField(order), range(order)
    assert GaloisField.is_prime_power(order)
    for a in every:
        assert sorted(field.add(a, b) for b in every) == list(every)
        assert field.multiply(a, 1) == a
        assert field.add(a, 0) == field.add(field.subtract(a, 5 % order), 5 % order) == a
        if a:
            assert sorted(field.multiply(a, b) for b in every) == list(every)
    for a, b, c in [(a, b, c) for a in every for b in every for c in (1, order // 2, order - 1)]:
        assert field.multiply(c, field.add(a, b)) == field.add(field.multiply(c, a), field.multiply(c, b))


@pytest.mark.parametrize("order", [0, 1, 6, 10, 12, 15, 100])
def test_no_field_of_other_orders(order):
    assert not GaloisField.is_prime_power(order)


def test_options_are_a_value():
    assert pickle.loads(pickle.dumps(TopologyOptions(cas=2))) == TopologyOptions(cas=2)


@pytest.mark.parametrize("speed", ["NDR", "4xNDR", "400G", "400g", "106.25"])
def test_speeds_have_the_names_that_administrators_use(speed):
    fabric = generate("ring", ["3"], speed=speed)
    assert set(fabric.link_speed.tolist()) == {106.25}
    assert set(fabric.link_width.tolist()) == {4}


@pytest.mark.parametrize("speed", ["4xNDR", "400G"])
def test_a_speed_of_width_4_needs_four_lanes(speed):
    with pytest.raises(OptionError, match=f"{speed} is for width 4, and width is 1"):
        generate("ring", ["3"], speed=speed, width=1)
