"""Check that auto takes the tables of the engine that carries the most traffic."""

import contextlib
import math

import numpy as np
import pytest

from ibsim_fixtures.catalogue import FIXTURES
from routing.deadlock.proof import prove
from routing.engines import ENGINES, grid_tables, hyperx
from routing.engines import auto as module
from routing.engines.base import EngineOptions
from routing.engines.orders import top_switches
from routing.errors import InputWarning, NotEnoughVLs, OptionError, RoutingError
from routing.faults import apply_faults, parse_fault
from routing.faults.choose import between_switches
from routing.formats.fabric_files import read_fabric
from routing.grids.coordinates import find_coordinates
from routing.publish import verify
from routing.quality import all_to_all_share, bisection_share, channel_loads
from routing.topologies import generate

AUTO = ENGINES["auto"]
KINDS = [("torus", ["4x3"], 2), ("kary-ntree", ["4", "2"], None), ("dragonfly", ["2", "1", "1"], 2), ("ring", ["6"], 2)]


def shares(fabric, routing):
    share = all_to_all_share(fabric, channel_loads(fabric, routing))
    return min(share, 1.0) if top_switches(fabric) else share, bisection_share(fabric, routing)


def without_links(fabric, *numbers):
    """Return the fabric without some of its links between switches, counted from 0."""
    return fabric.without_links(between_switches(fabric)[list(numbers)])


@pytest.mark.parametrize(("name", "arguments", "cas"), KINDS, ids=[kind[0] for kind in KINDS])
def test_no_candidate_carries_more_than_half_a_percent_more(name, arguments, cas):
    fabric = generate(name, arguments, cas=cas)
    routing = AUTO.route(fabric, EngineOptions())
    assert verify(fabric, routing, AUTO).proof.certified
    found = {}
    for candidate in module.CANDIDATES:
        try:
            found[candidate] = shares(fabric, ENGINES[candidate].route(fabric, EngineOptions()))
        except RoutingError:  # noqa: PERF203
            assert candidate in ("ftree", "torus-2qos", "dor", "dragonfly", "slimfly", "hyperx")
    most = [max(column) for column in zip(*found.values(), strict=True)]
    own = math.prod(share / best for share, best in zip(shares(fabric, routing), most, strict=True))
    others = [math.prod(share / best for share, best in zip(pair, most, strict=True)) for pair in found.values()]
    assert own >= 0.995 * max(others)
    assert routing.provenance.options["chosen"] in found


def test_auto_tries_more_tables_if_there_are_few_end_ports():
    """On this fabric with eight CAs, tables of OpenSM's `lash` and `dor` have a mean bisection share of .751."""
    fabric = read_fabric(FIXTURES["bridge"].path)
    routing = AUTO.route(fabric, EngineOptions())
    assert verify(fabric, routing, AUTO).proof.certified
    assert bisection_share(fabric, routing, seed=2, bisections=20_000) > 0.748
    assert all_to_all_share(fabric, channel_loads(fabric, routing)) == 0.4375


def test_auto_takes_dimension_order_where_it_carries_the_most():
    fabric = without_links(read_fabric(FIXTURES["ring-8-double"].path), 1, 14)
    routing = AUTO.route(fabric, EngineOptions())
    assert routing.provenance.options["chosen"] == "dor" and verify(fabric, routing, AUTO).proof.certified


def test_engines_for_grids_are_tried_on_a_large_hyperx_that_lacks_links():
    fabric = without_links(generate("hyperx", ["12x8"], cas=2), *range(0, 864, 100))
    assert AUTO.route(fabric, EngineOptions()).provenance.options["chosen"] in ("torus-2qos", "dor")


def test_engines_for_grids_are_tried_on_a_torus_with_a_dimension_of_two():
    fabric = without_links(generate("torus", ["2x20"], cas=4), 1)
    assert {"torus-2qos", "dor"} < {engine.name for engine in module._engines(fabric, EngineOptions())}


def test_tables_with_a_credit_loop_are_never_taken():
    fabric, one = generate("torus", ["5x4"], cas=2), EngineOptions(vls=1)
    routing = AUTO.route(fabric, one)
    dor = ENGINES["dor"].route(fabric, one)
    assert not prove(fabric, dor).certified and math.prod(shares(fabric, dor)) > math.prod(shares(fabric, routing))
    assert verify(fabric, routing, AUTO).proof.certified


def test_the_error_for_tables_with_a_credit_loop_says_what_to_do(monkeypatch):
    monkeypatch.setattr(module, "CANDIDATES", {"dor": module.MOST})
    monkeypatch.setattr(module, "ON_FEW_VLS", {})
    with pytest.raises(RoutingError, match=r"dor closes a credit loop on this fabric \(allow more VLs\)"):
        AUTO.route(generate("torus", ["5x4"], cas=2), EngineOptions(vls=1))


def test_of_equal_engines_the_one_with_the_highest_throughput_is_taken():
    fabric = without_links(read_fabric(FIXTURES["full-mesh-6"].path), 1)
    assert AUTO.route(fabric, EngineOptions()).provenance.options["chosen"] == "lturn"


def test_the_tables_are_those_of_the_chosen_engine():
    fabric = generate("torus", ["4x3"], cas=2)
    routing = AUTO.route(fabric, EngineOptions(seed=3))
    chosen = ENGINES[routing.provenance.options["chosen"]].route(fabric, EngineOptions(seed=3))
    assert np.array_equal(routing.lft, chosen.lft) and np.array_equal(routing.sl, chosen.sl)
    assert routing.provenance.engine == "auto" and math.isfinite(routing.provenance.seconds["route"])


def test_options_leave_out_engines_that_do_not_support_them(monkeypatch):
    fabric = generate("torus", ["4x3"], cas=2)
    rooted = AUTO.route(fabric, EngineOptions(roots=("sw0.0",)))
    found = rooted.provenance.options
    assert "roots" in ENGINES[found["chosen"]].offers.options and "sw0.0" in str(found.get("roots", found.get("root")))
    monkeypatch.setattr(module, "CANDIDATES", {"lash": module.MOST})
    with pytest.raises(OptionError, match="no engine supports these options"):
        AUTO.route(fabric, EngineOptions(roots=("sw0.0",)))


def test_the_error_is_that_of_the_last_engine(monkeypatch):
    monkeypatch.setattr(module, "CANDIDATES", {"lash": module.MOST})
    monkeypatch.setattr(module, "ON_FEW_VLS", {})
    with pytest.raises(NotEnoughVLs):
        AUTO.route(generate("ring", ["9"], cas=1), EngineOptions(vls=1))


def test_engines_on_allowed_turns_are_tried_off_trees_of_moderate_size(monkeypatch):
    random, one = generate("random-regular", ["20", "4"], cas=2), EngineOptions(vls=1, effort=0.1, threads=1)
    with_turns = shares(random, AUTO.route(random, one))
    # this makes a pass take a second
    monkeypatch.setattr(module, "visits_per_pass", lambda _: int(module.VISITS_PER_SECOND))
    assert shares(random, AUTO.route(random, one))[0] < 0.97 * with_turns[0]


def test_candidates_that_take_the_fabric_for_a_grid_do_not_warn(recwarn):
    torus = generate("torus", ["5x5"], cas=1)
    swapped = apply_faults(torus, [parse_fault("swap sw1.1/3 sw3.3/4", torus)])
    assert warned(ENGINES["dor"], swapped, recwarn)
    assert not warned(AUTO, swapped, recwarn)


def warned(engine, fabric, recwarn):
    """Return whether an engine warns about a link of a fabric."""
    recwarn.clear()
    with contextlib.suppress(RoutingError):
        engine.route(fabric, EngineOptions(effort=0.02, threads=1))
    return any(issubclass(warning.category, InputWarning) for warning in recwarn)


def test_engines_on_allowed_turns_are_tried_with_up_to_two_vls():
    fabric = generate("torus", ["8x8"], cas=2)
    names = [{engine.name for engine in module._engines(fabric, EngineOptions(vls=vls))} for vls in (1, 2, 3)]
    assert [{"mud", "smart"} & each for each in names] == [{"mud", "smart"}, {"mud", "smart"}, set()]


def test_coordinates_that_do_not_exist_are_searched_once(monkeypatch):
    searched = []
    for engine in (grid_tables, hyperx):
        monkeypatch.setattr(engine, "find_coordinates", lambda fabric: searched.append(1) or find_coordinates(fabric))
    AUTO.route(generate("random-regular", ["24", "4"], cas=2), EngineOptions(effort=0.02, threads=1))
    assert len(searched) == 1


def test_auto_takes_short_paths_of_a_dragonfly_to_all_lids():
    fabric = generate("dragonfly", ["4", "2", "2"], lmc=1)
    routing = ENGINES["auto"].route(fabric, EngineOptions())
    assert routing.provenance.options["chosen"] == "dragonfly"
    assert all_to_all_share(fabric, channel_loads(fabric, routing)) > 1.04


def test_disjoint_and_lash_tor_are_not_tried_on_many_switches():
    names = [
        {engine.name for engine in module._engines(generate("torus", [size], cas=1), EngineOptions())}
        for size in ("8x7x7", "8x8x8")
    ]
    assert [{"disjoint", "lash-tor", "torus-2qos"} & each for each in names] == [
        {"disjoint", "lash-tor", "torus-2qos"},
        {"torus-2qos"},
    ]
