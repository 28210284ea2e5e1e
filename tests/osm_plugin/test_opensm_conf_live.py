"""Check the options of opensm.conf in a live OpenSM: OpenSM passes them on, and each unused option has one log line."""

from dataclasses import replace

import numpy as np
import pytest
from plugin_lab import expected_lfts, logged, sweep_options
from waiting import until

from routing.engines import ENGINES

pytestmark = pytest.mark.lab


def unused(lab):
    return [line.split()[0] for line in logged(lab, r"ibnue: opensm\.conf: (.* not used: .*)")]


def test_options_arrive_and_each_that_is_not_used_is_named_once(live, nets, tmp_path):
    """All options are set together.  Roots and seed affect the tables in switches, the multicast root affects OpenSM's
    multicast.
    """
    net = nets("torus", "3x3", cas=2)
    with live(net, "ibnue-updn,no_fallback", toml="state_file = false") as lab:
        fabric = lab.fabric()
    roots = [int(fabric.switch_guid[row]) for row in (4, 8)]
    (tmp_path / "roots").write_text("".join(f"{guid:#x}\n" for guid in roots))
    files = ("guid_routing_order_file", "port_search_ordering_file", "cn_guid_file", "io_guid_file", "ids_guid_file",
             "lid_matrix_dump_file", "lfts_file")  # fmt: skip
    for name in (*files, "hop_weights_file", "port_prof_ignore_file"):
        (tmp_path / name).write_text("# nothing\n")
    flags = ("port_shifting", "port_profile_switch_nodes", "quasi_ftree_indexing", "use_optimized_slvl",
             "guid_routing_order_no_scatter")  # fmt: skip
    config = {
        "root_guid_file": tmp_path / "roots", "connect_roots": True, "scatter_ports": 7, "max_reverse_hops": 2,
        "lash_start_vl": 2, "nue_max_num_vls": 4, "sm_assigned_guid": "0x05", "sm_sl": 0, "avoid_throttled_links": True,
        "do_mesh_analysis": True, "nue_include_switches": True, "remote_guid_sorting": True,
        "mc_primary_root_guid": f"{roots[0]:#x}",
        **dict.fromkeys(flags, True),
        **{name: tmp_path / name for name in (*files, "hop_weights_file", "port_prof_ignore_file")},
    }  # fmt: skip
    with live(net, "ibnue-updn,no_fallback", toml="state_file = false", config=config) as lab:
        names = tuple(f"{guid:#018x}" for guid in roots)
        routing = ENGINES["updn"].route(lab.fabric(), sweep_options(roots=names, seed=7))
        assert lab.switch_lfts() == expected_lfts(lab.fabric(), routing)
        assert (routing.lft != ENGINES["updn"].route(fabric, sweep_options()).lft).any()
        expected = {
            *files, *flags, "hop_weights_file", "port_prof_ignore_file", "max_reverse_hops", "lash_start_vl",
            "nue_max_num_vls", "remote_guid_sorting",
        }  # fmt: skip
        until(lambda: set(unused(lab)) == expected)
        for _ in range(2):
            lab.opensm.resweep()
        assert len(unused(lab)) == len(expected)
        assert lab.opensm.errors == []


def test_a_weight_counts_from_the_next_sweep_on(live, nets, tmp_path):
    net = nets("kary-ntree", "4", "2")
    position = tmp_path / "weights"
    position.write_text("0x1 1 1\n")
    with live(net, "ibnue-minhop,no_fallback", toml="state_file = false", config={"hop_weights_file": position}) as lab:
        fabric = lab.fabric()
        channel = int(np.flatnonzero(fabric.terminals_at[fabric.channels.src] > 0)[0])
        guid, port = int(fabric.switch_guid[fabric.channels.src[channel]]), int(fabric.channels.port[channel])
        position.write_text(f"{guid:#x} {port} 50\n")
        before = list(lab.switch_lfts()[guid].values()).count(port)
        lab.opensm.resweep()
        assert list(lab.switch_lfts()[guid].values()).count(port) < before


def test_a_file_with_an_error_does_not_count_after_a_restart_either(live, nets, tmp_path):
    roots, cache = tmp_path / "roots", tmp_path / "cache"
    cache.mkdir()

    def started():
        lab = live(nets("torus", "3x3", cas=1), "ibnue-updn,no_fallback", config={"root_guid_file": roots})
        lab.opensm.plugin = replace(lab.opensm.plugin, environment={"OSM_CACHE_DIR": str(cache)})
        return lab

    roots.write_text("0x200003\n")
    with started() as lab:
        until(lambda: list(cache.glob("ibnue-last-good-opensm-conf/*")) and (cache / "ibnue-state.npz").exists())
        lfts = lab.switch_lfts()
    roots.write_text("garbage\n")
    with started() as lab:
        assert lab.switch_lfts() == lfts
        until(lambda: logged(lab, f"root_guid_file {roots}: not used: .*; its last usable version stays in use"))
        assert logged(lab, "ibnue-updn: .* tables unchanged")


def test_each_line_of_the_roots_that_is_ignored_is_named_and_again_after_a_correction(live, nets, tmp_path):
    roots, net = tmp_path / "roots", nets("torus", "3x3", cas=1)
    roots.write_text("0x200003\n# a comment\n0x5\n6\n7\n0xabc\n")
    toml = "state_file = false"
    with live(net, "ibnue-updn,no_fallback", toml=toml, config={"root_guid_file": roots}) as lab:
        ignored = (
            f"root_guid_file {roots}: no switch has the GUID of line 3 \\(0x5\\), 4 \\(0x6\\), 5 \\(0x7\\) and 1 more"
        )
        assert until(lambda: logged(lab, ignored))
        for count in (1, 2):
            roots.write_text("garbage\n")
            lab.opensm.resweep()
            lab.opensm.resweep()
            until(
                lambda count=count: len(logged(lab, f"root_guid_file {roots}: not used: {roots}:1: no GUID")) == count
            )
            roots.write_text("0x200003\n")
            lab.opensm.resweep()
        assert len(logged(lab, ignored)) == 1
