"""Check the options of opensm.conf: each option affects the tables, or a log line names it."""

import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import plugin_request
import pytest
from waiting import until

from osm_plugin.answer import ANSWER, SharedMemory
from osm_plugin.conf_files import ConfFiles
from osm_plugin.config import read_config
from osm_plugin.opensm_conf import FOREIGN, IGNORED_WEIGHT, OPTIONS, OpensmConf, foreign_options, take_over
from osm_plugin.report import Reporter
from osm_plugin.request_handler import RequestHandler
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import OptionError
from routing.fabric import NodeKind
from routing.fabric_builder import FabricBuilder
from routing.topologies import generate

FABRIC = generate("torus", ["3x3"], cas=2)
GUIDS = [f"{guid:#018x}" for guid in FABRIC.switch_guid.tolist()]


class Bench:
    """A worker that answers requests with options of opensm.conf."""

    def __init__(self, folder):
        self.descriptor = os.memfd_create("test")
        self.memory = SharedMemory(self.descriptor)
        self.links = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.worker = RequestHandler(self.memory, ENGINES, Reporter(self.links[0]))
        self.config = folder / "ibnue.toml"
        self.config.write_text("state_file = false\n")

    def ask(self, engine, conf="", fabric=FABRIC, **request):
        at = plugin_request.write_request(fabric, self.memory, conf=conf, **request)
        answer = self.worker.answer(
            {"engine": f"ibnue-{engine}", "sequence": 7, "config": read_config(self.config).to_table()}
        )
        assert answer["ok"], answer
        head = np.frombuffer(self.memory.view(), ANSWER, 1, at)[0]

        def part(name, dtype, *shape):
            found = np.frombuffer(self.memory.view(), dtype, int(np.prod(shape)), int(head[f"{name}_at"]))
            return found.reshape(shape).copy()

        lids = int(head["lids"])
        return {
            "note": answer["note"],
            "lft": part("lft", np.uint8, fabric.switches, lids),
            "parent": part("parent", np.int32, fabric.switches),
            "sl": part("sl", np.uint8, lids) if head["sl_kind"] == 0 else None,
            "vls": int(head["vls"]),
            "lines": self.worker.take_lines(),
        }


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    yield bench
    os.close(bench.descriptor)
    for link in bench.links:
        link.close()


def lft(engine, **options):
    return ENGINES[engine].route(FABRIC, EngineOptions(effort=0.1, port_vls=8, **options)).lft


def test_defaults_and_what_is_not_set_are_nothing():
    text = "# comment\nroot_guid_file (null)\nconnect_roots FALSE\nscatter_ports 0\nsm_assigned_guid 0x00\nsm_sl 3\n"
    assert OpensmConf.of(text).values == {"sm_sl": "3"}


def test_roots_are_those_of_the_file_and_unknown_ones_are_passed_over(bench, tmp_path):
    position = tmp_path / "roots"
    position.write_text(f"{GUIDS[5]}\n0xdead\n{GUIDS[2]}\n")
    found = bench.ask("updn", f"root_guid_file {position}\n")
    assert (found["lft"] == lft("updn", roots=(GUIDS[5], GUIDS[2]))).all()
    assert (found["lft"] != lft("updn")).any()
    assert found["lines"] == [f"opensm.conf: root_guid_file {position}: no switch has the GUID of line 2 (0xdead)"]
    # If one of the roots is missing, the other roots still apply.  The tables in force have the same options.
    less = FABRIC.without_links(np.flatnonzero((FABRIC.link_device == 2).any(axis=1)))
    bench.worker.finish_publication()
    again = bench.ask("updn", f"root_guid_file {position}\n", less)
    assert "re-routed" in again["note"]


def test_the_plugins_own_roots_come_first(bench, tmp_path):
    (tmp_path / "roots").write_text(f"{GUIDS[5]}\n")
    bench.config.write_text(f"state_file = false\n[engine]\nroots = ['{GUIDS[1]}']\n")
    found = bench.ask("updn", f"root_guid_file {tmp_path / 'roots'}\n")
    assert (found["lft"] == lft("updn", roots=(GUIDS[1],))).all()
    assert len(found["lines"]) == 1 and "roots of the plugin's configuration has priority" in found["lines"][0]


@pytest.mark.parametrize(
    ("tables", "place", "problem"),
    [
        ("[engine.updn]\nvls = 12", ":3", "vls = 12, but OpenSM sets up 8 data VLs"),
        ("[engine]\nroots = ['nosuch']\n[engine.nue]\nvls = 3", ":3", "no switch is named 'nosuch'"),
        ("[engine]\nvls = 2\n[engine.updn]\nroots = [5]", ":5", "[5] is not a list of names (write ['5'])"),
        ("[engine]\npasses = 9999", ":3", "9999 is not a valid number of refinement passes"),
        ("[engine]\neffort = 1\nbudget = 1", ":4", "effort and budget both set the effort"),
        ("[engine]\ntorus_config = 'torus.conf'", ":3", "updn reads no torus-2QoS.conf"),
        ("[engine.nue]\nvls = 12", "", ""),
    ],
)
def test_an_error_of_an_engine_option_names_the_line_of_the_option(bench, tables, place, problem):
    """The line is named if there is no last good configuration, and also if there is one."""
    bench.worker = RequestHandler(bench.memory, ENGINES, Reporter(bench.links[0]), bench.config)
    plugin_request.write_request(FABRIC, bench.memory)
    bench.config.with_name("torus.conf").touch()

    def answer(text):
        bench.config.write_text(f"state_file = false\n{text}\n")
        table = read_config(bench.config).to_table()
        return bench.worker.answer({"engine": "ibnue-updn", "sequence": 7, "config": table})

    refused, good, later = answer(tables), answer(""), answer(tables)
    wanted = f"{bench.config}{place}: {problem}" if place else "fabric"
    assert refused["note"].startswith(wanted) and refused["ok"] is not bool(place)
    assert (good["ok"], good["warning"], later["ok"]) == (True, "", True)
    assert later["warning"].startswith(wanted if place else "")
    assert later["warning"].endswith("; the last good configuration is in use" if place else "")


def test_an_error_of_an_option_that_the_file_does_not_set_names_no_line(bench):
    bench.worker = RequestHandler(bench.memory, ENGINES, Reporter(bench.links[0]), bench.config)
    table = {"state_file": False, "engine": {"updn": {"vls": 12}}}
    for engine, conf, problem in (("lash", "lash_start_vl 9\n", "first_vl = 9"), ("updn", "", "vls = 12")):
        plugin_request.write_request(FABRIC, bench.memory, conf=conf)
        note = bench.worker.answer({"engine": f"ibnue-{engine}", "sequence": 7, "config": table})["note"]
        assert note.startswith(f"{problem}, but OpenSM sets up 8 data VLs")


@pytest.mark.parametrize(
    ("text", "why"), [(None, "there is no such file"), ("", "names no switch"), ("x\n", "no GUID")]
)
def test_a_file_of_roots_that_cannot_be_used_is_named_and_roots_are_searched_for(bench, tmp_path, text, why):
    if text is not None:
        (tmp_path / "roots").write_text(text)
    found = bench.ask("updn", f"root_guid_file {tmp_path / 'roots'}\n")
    assert (found["lft"] == lft("updn")).all()
    (line,) = found["lines"]
    assert why in line and "not used" in line


@pytest.mark.parametrize("text", ["garbage\n", "", None])
def test_a_file_that_gets_an_error_does_not_change_the_tables(bench, tmp_path, text):
    file = tmp_path / "roots"
    file.write_text(f"{GUIDS[5]}\n")
    first = bench.ask("updn", f"root_guid_file {file}\n")
    bench.worker.finish_publication()
    file.unlink() if text is None else file.write_text(text)
    again = bench.ask("updn", f"root_guid_file {file}\n")
    assert (again["lft"] == first["lft"]).all() and "tables unchanged" in again["note"]
    (line,) = again["lines"]
    assert line.startswith(f"opensm.conf: root_guid_file {file}: not used: ")
    assert line.endswith("; its last usable version stays in use")
    bench.worker.finish_publication()
    file.write_text(f"{GUIDS[2]}\n")
    assert (bench.ask("updn", f"root_guid_file {file}\n")["lft"] == lft("updn", roots=(GUIDS[2],))).all()


def test_the_last_usable_version_is_known_after_a_restart(tmp_path):
    file, kept = tmp_path / "roots", tmp_path / "kept"
    conf = OpensmConf({"root_guid_file": str(file)})

    def taken(content):
        file.write_text(content)
        files = ConfFiles(kept)
        found = files.take_over(conf, "updn", {})
        files.save()
        return found

    assert taken("garbage\n").options == {} and not kept.exists()
    for guid in GUIDS[:2]:
        assert taken(f"{guid}\n").options == {"root_guid_file": str(file)}
        files = ConfFiles(kept)
        file.write_text("garbage\n")
        again = files.take_over(conf, "updn", {})
        assert Path(again.options["root_guid_file"]).read_text() == f"{guid}\n"
        assert again.lines[0].endswith("; its last usable version stays in use")
    assert len(list(kept.iterdir())) == 1


@pytest.mark.parametrize("first", ["false", "'state.npz'"])
def test_no_version_is_saved_while_there_is_no_state_file(bench, tmp_path, monkeypatch, first):
    monkeypatch.setenv("OSM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(bench.worker._saver, "put", lambda job: job())
    (tmp_path / "cache").mkdir()
    file, kept = tmp_path / "roots", tmp_path / "cache" / "ibnue-last-good-opensm-conf"
    for number, state in enumerate([first, "false", "'state.npz'"]):
        file.write_text(f"{GUIDS[number]}\n")
        bench.config.write_text(f"state_file = {state}\n")
        before = [path.read_bytes() for path in kept.iterdir()] if kept.exists() else []
        bench.ask("updn", f"root_guid_file {file}\n")
        bench.worker.finish_publication()
        after = [path.read_bytes() for path in kept.iterdir()] if kept.exists() else []
        assert after == (before if state == "false" else [file.read_bytes()])


def test_a_file_that_does_not_answer_is_replaced_by_its_last_usable_version(tmp_path, monkeypatch):
    roots, weights, conf_file = (tmp_path / name for name in ("roots", "weights", "opensm.conf"))
    roots.write_text(f"{GUIDS[0]}\n")
    weights.write_text(f"{GUIDS[0]} 1 3\n")
    conf_file.write_text("mc_primary_root_guid 0x10\n")
    conf = OpensmConf({"root_guid_file": str(roots), "config_file": str(conf_file)})
    files, answers, real = ConfFiles(), threading.Event(), os.open
    files.take_over(conf, "updn", {})
    monkeypatch.setattr("osm_plugin.silent_files.ANSWER_SECONDS", 0.05)
    silent = {roots, weights, conf_file}
    monkeypatch.setattr("os.open", lambda name, *args: (name in silent and answers.wait(), real(name, *args))[1])
    conf = OpensmConf({**conf.values, "hop_weights_file": str(weights)})
    for _ in range(2):
        taken = files.take_over(conf, "updn", {})
        assert Path(taken.options["root_guid_file"]).read_text() == f"{GUIDS[0]}\n"
        assert "link_weights" not in taken.options and taken.multicast_roots == (0x10,)
        why = "not used: {0}: has not answered for 0.05 s"
        assert taken.lines == [
            f"opensm.conf: root_guid_file {roots}: {why.format(roots)}; its last usable version stays in use",
            f"opensm.conf: hop_weights_file {weights}: {why.format(weights)}",
            f"opensm.conf: {conf_file}: has not answered for 0.05 s; {', '.join(FOREIGN)} keep their last values",
        ]
    unread = ConfFiles().take_over(OpensmConf({"config_file": str(conf_file)}), "updn", {})
    assert unread.lines == [f"opensm.conf: {conf_file}: has not answered for 0.05 s; {', '.join(FOREIGN)} are unknown"]
    assert files.take_over(conf, "nue", {}).lines[0].endswith("not for nue")
    answers.set()
    until(lambda: files.take_over(conf, "updn", {}).options["root_guid_file"] == str(roots))


def test_a_folder_of_saved_versions_that_does_not_answer_stops_no_sweep(tmp_path, monkeypatch):
    file, kept = tmp_path / "roots", tmp_path / "kept"
    conf = OpensmConf({"root_guid_file": str(file)})
    file.write_text(f"{GUIDS[0]}\n")
    files = ConfFiles(kept)
    files.take_over(conf, "updn", {})
    files.save()
    file.write_text("garbage\n")
    os.mkfifo(kept / "silent")  # A read of the pipe blocks until the pipe is opened for writing.
    monkeypatch.setattr("osm_plugin.silent_files.ANSWER_SECONDS", 0.01)
    files = ConfFiles(kept)
    assert f"saved versions of files not read yet: {kept} has not answered" in files.take_over(conf, "updn", {}).lines
    (kept / "silent").write_text("")
    until(lambda: files.take_over(conf, "updn", {}).options)
    assert not any("not read yet" in line for line in files.take_over(conf, "updn", {}).lines)


def test_options_of_an_engine_that_does_not_exist_are_reported_once(bench):
    bench.config.write_text("state_file = false\n[engine.ibnue-updn]\nseed = 2\n[engine.upd]\nseed = 3\n")
    unused = "of the plugin's configuration: not used: there is no engine"
    expected = [
        f"[engine.ibnue-updn] {unused} 'ibnue-updn' (write [engine.updn])",
        f"[engine.upd] {unused} 'upd'",
    ]
    assert bench.ask("updn", "")["lines"] == expected
    assert bench.ask("updn", "")["lines"] == []


def test_a_configuration_that_is_not_used_repeats_no_line(bench, tmp_path):
    """The worker tries the new configuration first, so one request uses two configurations."""
    (tmp_path / "roots").write_text(f"{GUIDS[5]}\n0xdead\n")
    conf = f"root_guid_file {tmp_path / 'roots'}\n"
    assert len(bench.ask("updn", conf)["lines"]) == 1
    bench.config.write_text("state_file = false\n[engine]\nvls = 99\n")
    # The engine nue does not use the file of roots.
    assert [len(bench.ask(engine, conf)["lines"]) for engine in ("updn", "nue", "updn", "nue")] == [0, 1, 0, 0]


def test_roots_are_not_for_engines_without(bench, tmp_path):
    (tmp_path / "roots").write_text(f"{GUIDS[5]}\n")
    (line,) = bench.ask("nue", f"root_guid_file {tmp_path / 'roots'}\n")["lines"]
    assert line.endswith("not used: it is for auto and updn and ftree and mud and dnup and lturn, not for nue")


def test_an_option_that_the_engine_declares_imports_no_other_engine():
    code = "import sys; from osm_plugin.opensm_conf import OpensmConf, take_over;"
    code += "take_over(OpensmConf({'root_guid_file': '/x'}), 'updn', {});"
    code += "sys.exit('routing.engines.ftree' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_search_for_a_better_balance_that_fails_is_made_three_times(bench, monkeypatch):
    less, tried, notes = FABRIC.without_links([0]), [], []
    monkeypatch.setattr("osm_plugin.route_or_reroute.spread", lambda *_, **__: tried.append(1) or 1 // 0)
    for fabric in (FABRIC, less, less, less, less, less, FABRIC, less, less):
        notes.append(bench.ask("updn", "", fabric)["note"])
        bench.worker.finish_publication()
    for number, note in enumerate(notes[2:5], 1):
        assert f"rebalancing failed ({number} of 3 attempts): ZeroDivisionError" in note
        assert "tables unchanged" in note
    assert ["rebalancing" in note for note in notes[5:]] == [False, False, False, True] and len(tried) == 4


def test_failed_searches_for_a_better_balance_are_counted_for_each_tables(bench, monkeypatch):
    monkeypatch.setattr("osm_plugin.route_or_reroute.spread", lambda *_, **__: 1 // 0)
    less, fewer = FABRIC.without_links([0]), FABRIC.without_links([0, 5])
    found = []
    for fabric in (FABRIC, less, less, less, fewer, fewer, fewer, fewer, fewer):
        note = bench.ask("updn", "", fabric)["note"]
        bench.worker.finish_publication()
        found += re.findall(r"failed \((\d) of 3 attempts", note) or ["-"]
    assert "".join(found) == "--12-123-"


def test_an_attempt_that_fails_leaves_no_line_about_the_state(bench):
    bench.ask("updn")
    bench.worker.finish_publication()
    plugin_request.write_request(FABRIC, bench.memory)
    config = read_config(bench.config).to_table()
    assert not bench.worker.answer({"engine": "ibnue-ftree", "sequence": 7, "config": config})["ok"]
    note = bench.ask("updn")["note"]
    assert "tables unchanged" in note and "state ignored" not in note


@pytest.mark.parametrize("engine", ["updn", "minhop", "nue", "sssp", "dfsssp", "lash", "ftree"])
def test_a_link_with_a_weight_carries_less(bench, tmp_path, engine):
    fabric = generate("kary-ntree", ["4", "2"])
    channel = int(np.flatnonzero(fabric.terminals_at[fabric.channels.src] > 0)[0])
    switch, port = int(fabric.channels.src[channel]), int(fabric.channels.port[channel])
    position = tmp_path / "weights"
    position.write_text(f"# switch port weight\n{int(fabric.switch_guid[switch]):#x} {port} 50\nbad line\n0xdead 1 2\n")
    before = bench.ask(engine, "", fabric)["lft"]
    after = bench.ask(engine, f"hop_weights_file {position}\n", fabric)
    lids = fabric.endport_lid
    assert np.count_nonzero(after["lft"][switch, lids] == port) < np.count_nonzero(before[switch, lids] == port)
    assert after["lines"] == []


def test_a_port_that_is_ignored_attracts(bench, tmp_path):
    build = FabricBuilder("pair")
    one, other = (build.add_device(NodeKind.SWITCH, guid, f"s{guid}", 12) for guid in (1, 2))
    for port in (1, 2, 3):
        build.connect(one, port, other, port)
    for number in range(6):
        ca = build.add_device(NodeKind.CA, 0x100 + 16 * number, f"h{number}", 1)
        build.connect((one, other)[number % 2], 4 + number // 2, ca, 1)
    fabric = build.build()
    (tmp_path / "ignored").write_text("0x1 2\n")
    plain, ignored = (
        bench.ask("minhop", conf, fabric)["lft"][0, fabric.endport_lid].tolist()
        for conf in ("", f"port_prof_ignore_file {tmp_path / 'ignored'}\n")
    )
    assert [plain.count(port) for port in (1, 2, 3)] == [1, 1, 1]
    assert [ignored.count(port) for port in (1, 2, 3)] == [0, 3, 0]


def test_scatter_ports_is_the_seed(bench):
    found = bench.ask("nue", "scatter_ports 77\n")
    assert (found["lft"] == lft("nue", seed=77)).all()
    assert (found["lft"] != lft("nue")).any()


def test_the_first_vl_of_lash(bench):
    taken, verdicts = take_over(OpensmConf({"lash_start_vl": "2"}), "lash", {})
    assert taken.options == {"first_vl": 2} and [v.honoured for v in verdicts] == [True]
    assert bench.ask("lash", "lash_start_vl 2\n")["vls"] >= 3
    (line,) = bench.ask("updn", "lash_start_vl 2\n")["lines"]
    assert line.endswith("it is for lash, not for updn")


def test_a_first_vl_that_opensm_does_not_set_up_is_refused_with_the_options_that_set_it(bench):
    text = r"first_vl = 1, but OpenSM sets up 1 data VL on this fabric \(.*, or lower first_vl or lash_start_vl\)"
    with pytest.raises(AssertionError, match=text):
        bench.ask("lash", "lash_start_vl 1\n", data_vls=1)


def test_the_most_vls_of_nue(bench):
    assert bench.ask("nue")["vls"] == 8
    assert bench.ask("nue", "nue_max_num_vls 3\n")["vls"] == 3
    assert bench.ask("nue", "nue_max_num_vls 0\n")["vls"] == 8
    assert bench.ask("nue", "nue_max_num_vls 12\n", data_vls=4)["vls"] == 4


def test_multicast_roots_come_from_the_file_that_opensm_passes_over(bench, tmp_path):
    conf = tmp_path / "opensm.conf"
    conf.write_text(
        f"mc_primary_root_guid 0xdead # old\nmc_secondary_root_guid\t'{GUIDS[3]}'\nremote_guid_sorting TRUE\nlmc 2\n"
    )
    assert set(foreign_options(str(conf))) == {"mc_primary_root_guid", "mc_secondary_root_guid", "remote_guid_sorting"}
    found = bench.ask("updn", f"config_file {conf}\n")
    assert np.flatnonzero(found["parent"] < 0).tolist() == [3]
    assert np.flatnonzero(bench.ask("updn")["parent"] < 0).tolist() != [3]
    assert [line for line in found["lines"] if "remote_guid_sorting TRUE: not used" in line] == found["lines"]


def test_throttled_links_stay_unused_unless_the_fabric_falls_apart(bench):
    between = np.flatnonzero((FABRIC.link_device < FABRIC.switches).all(axis=1))
    slow = between[:2].tolist()
    found = bench.ask("updn", "avoid_throttled_links TRUE\n", throttled=slow)
    for link in slow:
        for side in (0, 1):
            switch, port = FABRIC.link_device[link, side], FABRIC.link_port[link, side]
            assert not (found["lft"][switch] == port).any()
    assert found["lines"] == ["opensm.conf: avoid_throttled_links: 2 throttled links left unused"]
    found = bench.ask("updn", "avoid_throttled_links TRUE\n", throttled=between.tolist())
    assert (found["lft"] == lft("updn")).all()
    assert "would be split" in found["lines"][0]


def test_every_option_that_is_not_honoured_has_one_line_once(bench, tmp_path):
    values = {"FALSE": "TRUE", "0": "7"}
    conf = "".join(f"{option.name} {values.get(option.usual, tmp_path)}\n" for option in OPTIONS)
    lines = bench.ask("updn", conf)["lines"]
    silent = {option.name for option in OPTIONS if option.served} | {"scatter_ports"}
    named = [line.split()[1] for line in lines]
    assert len(named) == len(set(named))
    assert set(named) == {option.name for option in OPTIONS} - silent
    assert all("not used: " in line and "\n" not in line and len(line) < 900 for line in lines)
    assert bench.ask("updn", conf)["lines"] == []
    assert len(bench.ask("updn", conf.replace("max_reverse_hops 7", "max_reverse_hops 8"))["lines"]) == 1


@pytest.mark.parametrize(("data_vls", "row", "policy", "said"), [
    (8, "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0", "", True),
    (8, "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,7", "", False),  # OpenSM's default
    (1, "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0", "", False),  # with one VL, the row stays in the switches
    # the log line about the policy names SLs and VLs
    (8, "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0", "qos_policy_sls 0,1\n", False),
])  # fmt: skip
def test_sl2vl_tables_that_are_not_used_are_named(bench, data_vls, row, policy, said):
    lines = bench.ask("nue", f"{policy}qos_swe_sl2vl {row}\n", data_vls=data_vls)["lines"]
    assert [line for line in lines if "qos_sl2vl" in line] == [
        "opensm.conf: qos_sl2vl: not used: without a QoS policy, tables with several VLs have SL-to-VL tables of"
        " their own (vls = 1 leaves yours)"
    ] * said


def test_options_in_the_text_are_those_of_the_table():
    text = (Path(plugin_request.__file__).parents[1] / "osm_plugin" / "options.c").read_text()
    written = {part.split('"')[0] for part in text.split('(text, "')[1:]} | {
        part.split('"')[0] for part in text.split('(&text, "')[1:]
    }
    names = {option.name for option in OPTIONS} - {
        "mc_primary_root_guid", "mc_secondary_root_guid", "remote_guid_sorting",
    }  # fmt: skip
    assert names <= written


def test_weights_have_to_be_positive():
    with pytest.raises(OptionError, match="weights of links"):
        EngineOptions(link_weights=((1, 1, 0.0),))
    assert IGNORED_WEIGHT > 0


def test_the_documentation_has_every_option():
    page = (Path(plugin_request.__file__).parents[1] / "docs" / "plugin.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|$", page, re.MULTILINE))
    assert {option.name: rows.get(option.name) for option in OPTIONS} == {
        option.name: option.about for option in OPTIONS
    }
