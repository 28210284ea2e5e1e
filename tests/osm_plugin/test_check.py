"""``ibnue plugin check``: a configuration and opensm.conf together."""

import json
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


def test_options_without_a_value_are_not_set(files):
    files[1].write_text("routing_engine (null)\nevent_plugin_name (null)\nevent_plugin_options (null)\n")
    assert [text.partition(": ")[2].partition(" (")[0] for text in wrong(files)] == [
        "event_plugin_name does not name ibnue",
        f"{files[0]} is not named",
        "routing_engine names no engine of the plugin",
    ]


def test_a_missing_opensm_conf_is_named_with_the_command_that_writes_it(tmp_path, monkeypatch):
    monkeypatch.setattr("osm_plugin.check_conf.OPENSM_CONF", tmp_path / "opensm.conf")
    done = CliRunner().invoke(plugin, ["check", "--libdir", str(tmp_path)])
    assert f"note   {tmp_path / 'opensm.conf'} does not exist, so no opensm.conf is checked ('opensm -c" in done.output


def test_a_check_without_findings_is_one_line(files, tmp_path, monkeypatch):
    monkeypatch.setattr("osm_plugin.installed.inspect", lambda *_: SimpleNamespace(library=tmp_path, problems=()))
    done = CliRunner().invoke(plugin, ["check", str(files[0]), "--opensm-conf", str(files[1])])
    assert (done.output, done.exit_code) == ("nothing is wrong\n", 0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("deadline = 'soon'", "ibnue.toml:1: 'deadline' is 'soon'"),
        ("[engine]\nroot_guid_file = 'none'", "engine.root_guid_file: "),
        ("policies = 'none'", "policies: "),
        ("bundle = 'none'", "bundle: "),
        ("[engine]\nobjective = 'peace'", "unknown objective 'peace'"),
        ("[engine.none]\nvls = 1", "[engine.none]: unknown engine"),
        ("[engine]\neffort = 1\nbudget = 2", "effort and budget both set the effort"),
    ],
)
def test_a_wrong_configuration(files, text, complaint):
    files[0].write_text(text)
    (line,) = wrong(files)
    assert complaint in line


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("event_plugin_name ibnue", "event_plugin_name other", "event_plugin_name does not name ibnue"),
        ("event_plugin_options", "#", "is not named (event_plugin_options --config"),
        ("ibnue.toml", "other.toml", "event_plugin_options names"),
        ("ibnue-nue", "ibnue-neu,ibnue-updn", "unknown engine 'ibnue-neu'"),
        ("ibnue-nue", "nue", "routing_engine names no engine of the plugin"),
        ("ibnue-nue", "ibnue-bundle", "ibnue-bundle needs a bundle"),
        ("qos TRUE", "qos FALSE", "ibnue-nue is configured with 4 VLs, but without QoS OpenSM sets up only one"),
    ],
)
def test_an_opensm_conf_that_does_not_fit(files, old, new, complaint):
    files[1].write_text(files[1].read_text().replace(old, new))
    (line,) = wrong(files)
    assert complaint in line and str(files[1]) in line


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        (",no_fallback", "", "without no_fallback OpenSM uses its own minhop"),
        ("qos TRUE", "qos TRUE\nuse_ucast_cache TRUE", "use_ucast_cache TRUE: OpenSM does not call the engine"),
        ("qos TRUE", "qos TRUE\nscatter_ports 8", ""),
    ],
)
def test_what_is_worth_knowing_is_not_wrong(files, old, new, note):
    files[1].write_text(files[1].read_text().replace(old, new))
    assert wrong(files) == []
    assert any(note in finding.text for finding in check_configuration(*files)) or not note


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
