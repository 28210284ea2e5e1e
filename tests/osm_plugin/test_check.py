"""Check ``ibnue plugin check``: a configuration and opensm.conf together."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from osm_plugin.check_conf import check_configuration
from routing.cli.plugin import plugin
from routing.errors import EnvironmentProblem

CONF = """
event_plugin_name ibnue
event_plugin_options --config {toml}
routing_engine ibnue-nue,no_fallback
qos TRUE
"""
EACH_MAX_VLS = "".join(f"\nqos_{kind}_max_vls 8" for kind in ("ca", "sw0", "swe", "rtr"))


@pytest.fixture
def files(tmp_path):
    toml, conf = tmp_path / "ibnue.toml", tmp_path / "opensm.conf"
    toml.write_text("[engine]\nvls = 4\n")
    conf.write_text(CONF.format(toml=toml))
    return toml, conf


def wrong(files):
    return [finding.text for finding in check_configuration(*files) if finding.wrong]


def test_a_pair_that_fits(files):
    assert check_configuration(*files) == []


def test_errors_in_policy_and_partitions_have_file_and_line(files, tmp_path):
    policy, partitions = tmp_path / "policy", tmp_path / "partitions"
    policy.write_text("qos-ulps\n  default : 99\nend-qos-ulps\n")
    partitions.write_text("Default=0x7fff ALL=full;\n")
    with files[1].open("a") as conf:
        conf.write(f"qos_policy_file {policy}\npartition_config_file {partitions}\n")
    nothing = "OpenSM ignores or misreads a file with an error"
    colon = "a partition has no colon before its ports (write 'NAME=PKEY, FLAG=VALUE : PORT=full;')"
    assert wrong(files) == [
        f"{files[1]}:7: partition_config_file: {partitions}:1: {colon}; {nothing}",
        f"{files[1]}:6: qos_policy_file: {policy}:2: SL 99 does not exist (use 0 to 15); {nothing}",
    ]
    files[1].write_text(files[1].read_text().replace("qos TRUE", "qos FALSE"))
    assert not any("qos_policy_file" in text for text in wrong(files))


def test_errors_in_independent_parts_are_reported_together(files, tmp_path):
    rules = tmp_path / "rules"
    rules.write_text("[[rule]]\nhoq_life = 99\nvl_stall_count = 9\n")
    files[0].write_text(
        "worker_user = 'nosuch'\nbundle = 'none'\nshadow = 'none'\nlog_file = 'none/log'\npolicies = 'rules'\n"
        "[classes.storge]\nweight = 1\n[classes.storage]\nguid_file = 'none'\n[engine]\nvls = 99\n"
    )
    files[1].write_text(files[1].read_text().replace("qos TRUE", "qos TRUE\nlmc 9"))
    starts = [
        f"{files[0]}:1: there is no user 'nosuch'",
        f"{files[0]}:6: unknown class 'storge'",
        f"{files[0]}:2: bundle: ",
        f"{files[0]}:5: policies: {rules}:2: hoq_life is 99",
        f"{files[0]}:5: policies: {rules}:3: vl_stall_count is 9",
        f"{files[0]}:9: classes.storage.guid_file: ",
        f"{files[0]}:11: [engine]: 99 is not",
        f"{files[0]}:4: log_file: ",
        f"{files[0]}:3: shadow: ",
        f"{files[1]}:6: lmc is 9",
    ]
    found = wrong(files)
    assert [text[: len(start)] for text, start in zip(found, starts, strict=False)] == starts and len(found) == len(
        starts
    )


@pytest.mark.parametrize(
    ("toml", "engine", "problem"),
    [
        ("bundle = 'tables'\nthreads = \n", "ibnue-bundle", "is not TOML: "),
        ("shadow = 'ibnue-nue'\n\xff", "minhop", "is not UTF-8 text"),
        # The plugin's configuration sets these options itself, so `lash_start_vl` of opensm.conf has no effect.
        ("[engine]\nfirst_vl = \nvls = 2\n", "ibnue-lash", "is not TOML: "),
    ],
)
def test_a_configuration_that_is_not_toml_does_not_hide_errors_of_opensm_conf(files, toml, engine, problem):
    """An engine that needs a setting of the configuration is not reported, because the file may have this setting."""
    files[0].write_bytes(toml.encode("latin-1"))
    more = "lmc 9\nqos TRUE\nmax_op_vls 3\nlash_start_vl 5\n"
    files[1].write_text(files[1].read_text().replace("ibnue-nue", engine) + more)
    for named in (files, (None, files[1])):
        first, second = wrong(named)
        assert first.startswith(f"{files[0]}:2: {problem}") and second.startswith(f"{files[1]}:6: lmc is 9")


def test_all_errors_of_guid_files_and_classes_are_reported(files, tmp_path):
    guids, bad = tmp_path / "guids", tmp_path / "bad"
    guids.write_text("0x1\n0x2\n")
    bad.write_text("spine0\n0x1\nspine1\n")
    files[0].write_text(
        f"[classes.io]\nguid_file = 'guids'\nweight = 'a'\n[classes.storage]\nguid_file = '{guids}'\nweight = 1000\n"
        "[classes.compute]\nguid_file = 'bad'\n"
    )
    remedy = "(OpenSM rejects the whole file)"
    assert wrong(files) == [
        *(
            f"{files[0]}:8: classes.compute.guid_file: {bad}:{line}: no GUID at the start of the line {remedy}"
            for line in (1, 3)
        ),
        f"{files[0]}:3: [classes.io]: 'a' is not a weight (write a number, or SOURCE:DESTINATION such as 1:4)",
        f"{files[0]}:6: [classes.storage]: 1000:1000 is not a weight (use 0 to 100)",
        f"{files[0]}:1: [classes]: GUID 0x1 is listed as io and as storage; GUID 0x2 is listed as io and as storage"
        " (list each GUID in one class)",
    ]


def test_an_overwritten_file_is_reported_once(files):
    files[0].write_text("status_file = 'ibnue.toml'\nlog_file = 'ibnue.toml'\n")
    assert len(wrong(files)) == 2


def test_options_without_a_value_are_not_set(files):
    files[1].write_text("routing_engine (null)\nevent_plugin_name (null)\nevent_plugin_options (null)\n")
    assert [text.partition(": ")[2].partition(" (")[0] for text in wrong(files)] == [
        "event_plugin_name does not name ibnue",
        f"{files[0]} is not named",
        "routing_engine names no engine of the plugin",
    ]


def test_an_opensm_conf_in_the_place_of_the_configuration_is_named(files):
    expected = f"{files[1]}: is an opensm.conf, not a configuration of the plugin (--opensm-conf {files[1]})"
    assert wrong((files[1], None)) == [expected]


def test_a_missing_opensm_conf_is_named_with_the_command_that_writes_it(tmp_path, monkeypatch):
    monkeypatch.setattr("osm_plugin.check_conf.OPENSM_CONF", tmp_path / "opensm.conf")
    done = CliRunner().invoke(plugin, ["check", "--libdir", str(tmp_path)])
    assert f"note   {tmp_path / 'opensm.conf'} does not exist, so no opensm.conf is checked ('opensm -c" in done.output
    assert "note   no configuration of the plugin is named, so its defaults apply (" in done.output


@pytest.mark.parametrize("named", [True, False])
def test_a_check_without_findings_is_one_line(files, tmp_path, monkeypatch, named):
    monkeypatch.setattr("osm_plugin.installed.inspect", lambda *_: SimpleNamespace(library=tmp_path, problems=()))
    done = CliRunner().invoke(plugin, ["check", *[str(files[0])][:named], "--opensm-conf", str(files[1])])
    assert (done.output, done.exit_code) == (f"nothing is wrong in {files[0]}, {files[1]}, the library\n", 0)


def test_the_configuration_that_opensm_conf_names_is_checked(files):
    files[0].write_text("threads = 1\ndeadline = 'soon'\n")
    (line,) = wrong((None, files[1]))
    assert f"{files[0]}:2: 'deadline' is 'soon'" in line
    files[0].unlink()
    assert wrong((None, files[1])) == [
        f"{files[0]}: cannot be read: No such file or directory (check event_plugin_options)"
    ]
    files[1].write_text("event_plugin_name ibnue\nrouting_engine ibnue-updn,no_fallback\n")
    assert check_configuration(None, files[1]) == []


def test_a_relative_path_depends_on_the_folder_of_opensm(files, monkeypatch):
    monkeypatch.chdir(files[0].parent)
    files[1].write_text(CONF.format(toml=files[0].name))
    (finding,) = check_configuration(None, files[1])
    assert not finding.wrong and "opensm.conf:3: event_plugin_options: ibnue.toml depends on" in finding.text


def test_commands_on_earlier_tables_use_the_configuration_that_opensm_conf_names(files, tmp_path, monkeypatch):
    monkeypatch.setattr("osm_plugin.check_conf.OPENSM_CONF", files[1])
    files[0].write_text(f"state_file = '{tmp_path / 'mine.npz'}'\n")
    assert CliRunner().invoke(plugin, ["history"]).output == f"{tmp_path / 'mine.history'} has no tables\n"


@pytest.mark.parametrize(
    ("toml", "line"),
    [
        ("\n[engine]\neffort = 1\nvls = 16", 4),
        ("\n[engine]\neffort = 1\nbudget = 2", 4),
        ("\n[engine.none]\nvls = 1", 2),
        ("\nshadow = 'none'", 2),
        ("\nstate_file = 'none/state.npz'", 2),
        ("\n[engine.updn]\nroot_guid_file = 'none'", 3),
        ("\nbundle = 'none'", 2),
    ],
)
def test_an_error_in_the_configuration_has_file_and_line(files, toml, line):
    files[0].write_text(toml)
    (text,) = wrong(files)
    assert text.startswith(f"{files[0]}:{line}: ")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("ibnue-nue", "ibnue-neu,ibnue-updn", 4),
        ("event_plugin_name ibnue", "event_plugin_name other", 2),
        ("qos TRUE", "qos TRUE\nlmc 9", 6),
        ("qos TRUE", "qos TRUE\nlmc 1\nlmc 9", 7),
        ("qos TRUE", "qos yes\nqos TRUE\nLmc 1", 7),
        ("qos TRUE", "qos TRUE\nhop_weights_file /none", 6),
        ("qos TRUE", "qos TRUE\nqos_policy_file /etc", 6),
        ("\nevent_plugin_name", "\ufeffsm_priority 3\nevent_plugin_name", 1),
    ],
)
def test_an_error_in_opensm_conf_has_file_and_line(files, old, new, line):
    files[1].write_text(files[1].read_text().replace(old, new))
    (text,) = wrong(files)
    assert text.startswith(f"{files[1]}:{line}: ")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("deadline = 'soon'", "ibnue.toml:1: 'deadline' is 'soon'"),
        ("vls = 4", "ibnue.toml:1: unknown key 'vls' (write it into the table [engine])"),
        ("[engine.updn]\nroot_guid_file = 'none'", "engine.updn.root_guid_file: "),
        ("policies = 'none'", "policies: "),
        ("bundle = 'none'", "bundle: "),
        ("[engine]\nobjective = 'peace'", "unknown objective 'peace'"),
        ("[engine.none]\nvls = 1", "[engine.none]: unknown engine (known are"),
        ("[engine.ibnue-nue]\nvls = 1", "[engine.ibnue-nue]: unknown engine (write [engine.nue])"),
        ("[engine]\neffort = 1\nbudget = 2", "effort and budget both set the effort"),
        ("[engine]\nvls = 16", "[engine]: 16 is not a valid number of data VLs (use 1 to 15, min or auto)"),
        ("[engine]\nvls = '8'", "[engine]: '8' is not a valid number of data VLs"),
        ("[engine.nue]\neffort = -1", "[engine.nue]: -1 is not a valid effort"),
        ("[engine.updn]\nroots = [5, 'a']", "[engine.updn]: [5, 'a'] is not a list of names (write ['5', 'a'])"),
        ("[engine]\npartition = 'half'", "[engine]: 'half' is not a valid partition"),
        ("[engine]\nbudget = -1", "[engine]: budget is -1, wanted seconds from 0"),
        ("[engine]\nbudget = nan", "[engine]: budget is nan, wanted seconds from 0"),
        ("shadow = 'none'", "shadow: unknown engine 'none' (known are auto, updn"),
        ("log_file = '/'", "log_file: /: is a folder (name a file)"),
        ("log_file = 'none/worker.log'", "none: there is no such folder (create it, or name another folder)"),
        ("state_file = 'none/state.npz'", "state_file: "),
        ("metrics_file = 'none/ibnue.prom'", "metrics_file: "),
        ("metrics_file = '/dev/full'", "ibnue.toml:1: metrics_file: /dev/full: is not a regular file (name a file)"),
        ("log_file = 'pipe'", "pipe: is not a regular file (name a file)"),
        ("status_file = 'ibnue.toml'", "ibnue.toml: is also this configuration file (name another file)"),
        ("log_file = 'opensm.conf'", "ibnue.toml:1: log_file: {}/opensm.conf: is also opensm.conf (name another file)"),
        ("status_file = 'roots'", "roots: is also root_guid_file of opensm.conf (name another file)"),
        ("[engine]\nroots = ['sw0']", "ibnue-nue would route nothing: nue has no roots (leave them out, or use updn)"),
    ],
)
def test_a_wrong_configuration(files, text, complaint, tmp_path):
    files[0].write_text(text)
    files[1].write_text(files[1].read_text() + f"root_guid_file {tmp_path / 'roots'}\n")
    (tmp_path / "roots").write_text("0x1\n")
    os.mkfifo(tmp_path / "pipe")
    (line,) = wrong(files)
    assert complaint.format(tmp_path) in line


@pytest.mark.parametrize("log", ["/dev/null", "opensm.log"])
def test_the_log_can_be_a_device_or_opensms_log(files, tmp_path, log):
    files[0].write_text(f"log_file = '{log}'\n")
    files[1].write_text(files[1].read_text() + f"log_file {tmp_path / 'opensm.log'}\n")
    assert check_configuration(*files) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("event_plugin_name ibnue", "event_plugin_name other", "event_plugin_name does not name ibnue"),
        (
            "qos TRUE",
            "qos TRUE\nhop_weights_file /none",
            "hop_weights_file /none: not used: /none: there is no such file",
        ),
        ("qos TRUE", "qos TRUE\nscatter_ports two", "scatter_ports two: not used: it is not a number"),
        ("qos TRUE", "qos TRUE\nqos_policy_file /etc", "qos_policy_file: /etc: is a folder (name a file)"),
        (
            "qos TRUE",
            "qos TRUE\npartition_config_file /none",
            "partition_config_file: there is no file /none, so OpenSM",
        ),
        ("event_plugin_name ibnue", "event_plugin_name a,b,ibnue", "event_plugin_name does not name ibnue"),
        ("event_plugin_name ibnue", "event_plugin_name a ,ibnue", "event_plugin_name does not name ibnue"),
        ("event_plugin_name ibnue", "event_plugin_name a, ibnue,b", "event_plugin_name does not name ibnue"),
        ("event_plugin_options", "#", "is not named (event_plugin_options --config"),
        ("ibnue.toml", "other.toml", "event_plugin_options names"),
        ("ibnue-nue", "ibnue-neu,ibnue-updn", "unknown engine 'ibnue-neu'"),
        ("ibnue-nue", "nue", "routing_engine names no engine of the plugin"),
        ("ibnue-nue", "ibnue-bundle", "ibnue-bundle needs a bundle"),
        ("qos TRUE", "qos FALSE", "ibnue-nue is configured with 4 VLs, but without QoS OpenSM sets up only one"),
        (
            "nue,no_fallback\nqos TRUE",
            "lash\nqos FALSE\nlash_start_vl 1",
            "lash is configured with lash_start_vl = 1, but without QoS OpenSM sets up only one (qos TRUE, or remove",
        ),
        ("qos TRUE", "qos TRUE\nmax_op_vls 2", "4 VLs, but with max_op_vls 2 OpenSM sets up only 2 (raise max_op_vls"),
        ("qos TRUE", "qos TRUE\nqos_swe_max_vls 1", "4 VLs, but with qos_swe_max_vls 1 OpenSM sets up only 1 (raise"),
        ("qos TRUE", "qos TRUE\nqos_max_vls 2\nqos_ca_max_vls 8", "4 VLs, but with qos_max_vls 2 OpenSM sets up only"),
        ("qos TRUE", "qos TRUE\nmax_op_vls 9", "max_op_vls is 9, which limits nothing (use 1 to 5)"),
        (
            "qos TRUE",
            "qos TRUE\nqos_ca_sl2vl 0,1,2",
            "reads qos_ca_sl2vl 0,1,2 only in part (write 16 VLs from 0 to 15)",
        ),
        (
            "qos TRUE",
            f"qos TRUE\nqos_ca_sl2vl {'15,' * 16}",
            "opensm.conf:6: qos_ca_sl2vl maps SL 0 to VL 15, so its packets are discarded if the tables use one VL",
        ),
        ("qos TRUE", f"qos TRUE\nsm_sl 2\nqos_sl2vl 0, 0,15{',0' * 13}", "opensm.conf:7: qos_sl2vl maps SL 2 to VL"),
        ("qos TRUE", "qos TRUE\nqos_vlarb_low 0:4,1:x", "reads qos_vlarb_low 0:4,1:x only in part (write VL:WEIGHT,"),
        ("qos TRUE", "qos TRUE\nlmc 9", "lmc is 9, which OpenSM ignores (use 0 to 7)"),
        ("qos TRUE", "qos TRUE\nsm_priority 16", "sm_priority is 16, which OpenSM ignores (use 0 to 15)"),
        ("qos TRUE", "qos TRUE\nfdr10 3", "opensm.conf:6: fdr10 is 3, which OpenSM ignores (use 0 to 2)"),
        ("qos TRUE", "qos TRUE\nforce_link_width 32", "is 32, which OpenSM ignores (use 0 to 31 or 255)"),
        ("qos TRUE", "qos TRUE\nsubnet_timeout 33", "of which OpenSM uses only the low bits (use 0 to 31)"),
        ("qos TRUE", "qos TRUE\nsubnet_timeout 256", "which OpenSM ignores (use 0 to 31)"),
        ("qos TRUE", "qos TRUE\ntransaction_timeout 0", "is 0, with which OpenSM does not start (use 1 to 4294967295)"),
        ("qos TRUE", "qos TRUE\nsminfo_polling_timeout 0", "is 0, so a standby OpenSM queries the master without a"),
        ("qos TRUE", "qos TRUE\nconsole on", "console is on, which OpenSM ignores (use off, local, loopback, socket)"),
        ("qos TRUE", "qos TRUE\npart_enforce (null)", "with which OpenSM crashes (use both, in, out, off)"),
        ("qos TRUE", "qos TRUE\nsweep_on_trap yes", "sweep_on_trap is yes, which OpenSM takes as FALSE (write TRUE"),
        *(
            (
                "qos TRUE",
                f"qos TRUE\nqos_{kind}{end} {value}",
                f"qos_{kind}{end} is {value}, which OpenSM ignores (use 0 to",
            )
            for kind in ("", "ca_", "sw0_", "swe_", "rtr_")
            for end, value in (("max_vls", 16), ("max_vls", -3), ("high_limit", 256), ("high_limit", "two"))
        ),
        (
            "qos TRUE",
            "qos TRUE\nqos_policy_file none",
            "qos_policy_file: there is no file none, so no QoS policy applies",
        ),
        ("\nevent_plugin_name", "\ufeffsm_priority 3\nevent_plugin_name", "begins with a byte order mark"),
        ("ibnue-nue", "minhop,ibnue-nue", "minhop routes every fabric, so OpenSM never tries ibnue-nue"),
        ("event_plugin_name ibnue", "event_plugin_name ibnue ibnue", "names ibnue 2 times (event_plugin_name ibnue)"),
    ],
)
def test_an_opensm_conf_that_does_not_fit(files, old, new, complaint):
    files[1].write_text(files[1].read_text().replace(old, new))
    (line,) = wrong(files)
    assert complaint in line and str(files[1]) in line


@pytest.mark.parametrize(
    ("conf", "toml", "complaints"),
    [
        ("qos FALSE", "first_vl = 1", ["first_vl = 1, but without QoS OpenSM sets up only one (qos TRUE, or remove"]),
        (
            "qos TRUE\nmax_op_vls 4",
            "first_vl = 4\nvls = 8",
            ["with 8 VLs from VL 4 on, but with max_op_vls 4 OpenSM sets up only 8"],
        ),
        ("qos TRUE\nmax_op_vls 4", "first_vl = 4\nvls = 4", []),
        ("qos TRUE\nmax_op_vls 1", "first_vl = 1", ["first_vl = 1, but with max_op_vls 1 OpenSM sets up only 1"]),
        ("qos TRUE\nmax_op_vls 0", "vls = 1", ["max_op_vls is 0, so OpenSM does not set the VLs of ports, and ibnue"]),
        ("qos TRUE\nmax_op_vls 0", "vls = 2", ["max_op_vls is 0", "2 VLs, but with max_op_vls 0 OpenSM sets up only"]),
    ],
)
def test_vls_that_ports_do_not_have(files, conf, toml, complaints):
    files[0].write_text(f"[engine]\n{toml}\n")
    files[1].write_text(files[1].read_text().replace("qos TRUE", conf))
    for line, complaint in zip(wrong(files), complaints, strict=True):
        assert complaint in line


@pytest.mark.parametrize(
    ("name", "complaints"),
    [
        ("max_op_vl", ["OpenSM does not know the option max_op_vl and ignores it (write max_op_vls, or remove"]),
        ("colour", ["OpenSM does not know the option colour and ignores it (remove the line)"]),
        ("max_op_vls", []),
        ("guid", []),
        ("mc_primary_root_guid", []),
    ],
)
def test_options_that_opensm_does_not_have(files, tmp_path, monkeypatch, name, complaints):
    program = tmp_path / "opensm"
    options = ["event_plugin_name", "event_plugin_options", "routing_engine", "qos", "max_op_vls", "my_guid"]
    program.write_bytes(b"\0".join(each.encode() for each in ["", *options, ""]))
    monkeypatch.setattr("osm_plugin.check_conf.opensm_program", {Path("/usr"): str(program)}.get)
    with files[1].open("a") as conf:
        conf.write(f"{name} 4\n")
    for line, complaint in zip(wrong(files), complaints, strict=True):
        assert line.startswith(f"{files[1]}:6: {complaint}")
    assert check_configuration(*files, tmp_path) == []  # No OpenSM is installed below this folder.
    monkeypatch.setattr("osm_plugin.installed.inspect", lambda *_: SimpleNamespace(library=tmp_path, problems=()))
    words = ["check", str(files[0]), "--opensm-conf", str(files[1]), "--prefix"]
    outputs = [CliRunner().invoke(plugin, [*words, prefix]).output for prefix in (str(tmp_path), "/usr")]
    assert ["does not know the option" in output for output in outputs] == [False, bool(complaints)]
    program.write_text("#!/bin/sh\n")
    assert wrong(files) == []


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        (",no_fallback", "", "without no_fallback OpenSM uses its own minhop"),
        ("qos TRUE", "qos TRUE\nuse_ucast_cache TRUE", "use_ucast_cache TRUE: OpenSM does not call the engine"),
        ("qos TRUE", "qos TRUE\nscatter_ports 8", ""),
        ("\nevent_plugin_name", "\ufeff# comment\nevent_plugin_name", "begins with a byte order mark, so OpenSM"),
        (
            "ibnue-nue",
            "ibnue-nue,ftree",
            "OpenSM uses ftree if the engines before it fail; ibnue does not prove its tables",
        ),
        ("ibnue-nue", "updn,ibnue-nue", "OpenSM tries updn before ibnue-nue; ibnue does not prove its tables"),
        ("ibnue-nue", "ibnue-nue,updn", "finds no root switches, and OpenSM then uses the next engine (set"),
        ("ibnue-nue,no_fallback", "ibnue-nue,updn", "OpenSM then uses the next engine, or minhop (set root_guid_file)"),
    ],
)
def test_notes_are_not_errors(files, old, new, note):
    files[1].write_text(files[1].read_text().replace(old, new))
    assert wrong(files) == []
    assert any(note in finding.text for finding in check_configuration(*files)) or not note


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("qos TRUE", "qos TRUE # for several VLs"),
        ("qos TRUE", "qos\tTRUE"),
        ("qos TRUE", "qos TRUE\nqos_max_vls 0\nmax_op_vls 4"),
        ("ibnue-nue,no_fallback", '"ibnue-nue,no_fallback"'),
        ("event_plugin_name ibnue", "event_plugin_name 'ibnue'\r"),
        ("qos TRUE", "qos TRUE\nqos_ca_max_vls 0\nqos_swe_max_vls 15\nqos_max_vls 0x8\nqos_ca_high_limit -1"),
        ("qos TRUE", "qos TRUE\nqos_high_limit 255\nqos_rtr_high_limit 0\nsm_priority 15\npartition_config_file\n"),
        ("qos TRUE", f"qos TRUE\nqos_max_vls 2{EACH_MAX_VLS}"),
        ("event_plugin_name ibnue", "event_plugin_name other, ibnue another"),
        ("event_plugin_name ibnue", "event_plugin_name , ,ibnue"),
        ("qos TRUE", "qos TRUE\nlmc 0x7"),
        ("qos TRUE", f"qos TRUE\nqos_sl2vl 0, 1,{','.join(['2'] * 13)},15\nqos_swe_vlarb_high 0:255,14:0\n"),
        ("qos TRUE", "qos TRUE\nqos_policy_file /none/etc/opensm/qos-policy.conf"),
        ("qos TRUE", "qos TRUE\nqos_policy_file /dev/null"),
        ("qos TRUE", "qos TRUE\nfdr10 2\nforce_link_speed 15\nforce_link_speed_ext 30\nconsole local\nm_key 0x10"),
    ],
)
def test_lines_are_read_as_opensm_reads_them(files, old, new):
    files[1].write_text(files[1].read_text().replace(old, new))
    assert check_configuration(*files) == []


@pytest.mark.parametrize("line", ["log_prefix yes", "log_prefix true", "node_name_map_name Yes"])
def test_values_that_may_be_any_text_are_not_truth_values(files, line):
    with files[1].open("a") as conf:
        conf.write(f"{line}\n")
    assert wrong(files) == []


def test_a_folder_has_no_partitions(files):
    with files[1].open("a") as conf:
        conf.write("partition_config_file /etc\n")
    nothing = "OpenSM ignores or misreads a file with an error"
    assert wrong(files) == [f"{files[1]}:6: partition_config_file: /etc: is a folder (name a file); {nothing}"]


def test_without_qos_the_limits_of_qos_do_not_count(files):
    files[0].write_text("")
    files[1].write_text(files[1].read_text().replace("qos TRUE", "qos FALSE\nqos_max_vls 16\nqos_high_limit 256"))
    assert wrong(files) == []


def test_a_misspelt_config_option_is_wrong(files):
    files[1].write_text(files[1].read_text().replace("--config", "--conf"))
    assert any(
        "event_plugin_options --conf" in line and "so the defaults apply (write --config FILE)" in line
        for line in wrong((None, files[1]))
    )


def test_in_shadow_mode_opensms_own_engine_is_not_wrong(files):
    files[0].write_text("shadow = 'ibnue-nue'\n")
    files[1].write_text(files[1].read_text().replace("ibnue-nue,no_fallback", "minhop"))
    assert check_configuration(*files) == []


def test_an_option_of_one_engine_is_no_obstacle_to_the_next(files):
    files[0].write_text("[engine.updn]\nroots = ['sw0']\n")
    files[1].write_text(files[1].read_text().replace("ibnue-nue", "ibnue-updn,ibnue-nue"))
    assert check_configuration(*files) == []


def test_roots_of_both_options_count(files, tmp_path):
    """A hint states that both options apply, and that the roots of opensm.conf are ignored."""
    roots = tmp_path / "roots"
    roots.write_text("0x1\n")
    files[0].write_text(f"[engine.updn]\nroots = ['sw0']\nroot_guid_file = '{roots}'\n")
    files[1].write_text(files[1].read_text().replace("ibnue-nue", "ibnue-updn") + f"root_guid_file {roots}\n")
    assert wrong(files) == []
    first, second = [finding.text for finding in check_configuration(*files)]
    assert "[engine.updn]: roots and root_guid_file both apply, the switches of roots first" in first
    assert "not used: roots of the plugin's configuration has priority" in second


@pytest.mark.parametrize("missing", [0, 1])
def test_a_file_that_cannot_be_read(files, missing):
    files[missing].unlink()
    with pytest.raises(EnvironmentProblem):
        check_configuration(*files)


def test_the_command_says_it_in_json(files, tmp_path):
    arguments = ["check", str(files[0]), "--opensm-conf", str(files[1]), "--libdir", str(tmp_path), "--json"]
    done = CliRunner().invoke(plugin, arguments, standalone_mode=False)
    reported = json.loads(done.stdout)
    assert done.return_value == 1 and not reported["ok"]
    (finding,) = reported["findings"]
    assert finding["wrong"] and "libibnue.so does not exist (run 'ibnue plugin install')" in finding["text"]
