"""Check that an invalid configuration is not used until it is valid again."""

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from waiting import until

from osm_plugin.config import PluginConfig, config_from_table, read_config
from osm_plugin.last_good import SAVED, ConfigFile, LastGood, read_saved, saved_folder, stamp_of
from routing.errors import InputError, OptionError, RoutingError
from routing.formats.guid_files import read_guid_list


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("OSM_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    return tmp_path / "ibnue.toml"


def test_a_configuration_goes_to_the_worker_and_comes_back(tmp_path):
    path = tmp_path / "ibnue.toml"
    path.write_text(
        "deadline = 3\nstate_file = false\nbundle = 'b.npz'\n[engine]\nvls = 2\n[engine.updn]\nroots = ['a']"
    )
    config = read_config(path)
    assert config_from_table(json.loads(json.dumps(config.to_table())), path) == config
    assert config_from_table(json.loads(json.dumps(PluginConfig().to_table())), path) == PluginConfig()


@pytest.mark.parametrize("table", [{"dead_line": 3}, {"deadline": "soon"}, {"engine": {"": 3}}, {"threads": 1000}])
def test_a_table_that_was_changed_is_refused(table, tmp_path):
    with pytest.raises(InputError):
        config_from_table(table, tmp_path)


@pytest.mark.parametrize("wrong", ["deadline = 'soon'", "dead_line = 3", "[[[", None])
def test_a_file_that_becomes_wrong_is_reported_once_for_each_change(path, wrong):
    path.write_text("deadline = 3")
    file = ConfigFile(path)
    assert file.refresh().deadline == 3
    path.unlink() if wrong is None else path.write_text(wrong)
    for _ in range(3):
        assert file.refresh().deadline == 3
    (line,) = file.warnings
    assert line.startswith(str(path)) and line.endswith("; the last good configuration stays in use")
    path.write_text("threads = 'many'")
    file.refresh()
    assert len(file.warnings) == 2 and f"{path}:1: 'threads' is 'many'" in file.warnings[1]
    path.write_text("deadline = 4.5")
    assert file.refresh().deadline == 4.5
    assert file.warnings[2:] == [f"{path}: can be read again"]


def test_a_start_fails_if_the_state_of_the_file_is_unknown(path):
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        ConfigFile(path.with_name("x" * 300)).refresh()


def test_a_start_with_a_wrong_file_fails_unless_a_good_one_was_saved(path):
    path.write_text("dead_line = 3")
    with pytest.raises(InputError, match=f"{path}:1: unknown key 'dead_line'"):
        ConfigFile(path).refresh()
    path.write_text("deadline = 3")
    good = LastGood(path)
    good.use(read_config(path), lambda config: "")
    good.save()
    path.write_text("dead_line = 3")
    file = ConfigFile(path)
    assert file.refresh().deadline == 3
    (line,) = file.warnings
    assert (
        "unknown key 'dead_line'" in line
        and f"started with the last good configuration, saved in {path.parent}" in line
    )
    (saved_folder(path) / SAVED).write_text("{")
    with pytest.raises(InputError, match="unknown key 'dead_line'"):
        ConfigFile(path).refresh()


def test_a_file_of_another_name_has_another_good_configuration(path):
    path.write_text("deadline = 3")
    good = LastGood(path)
    good.use(read_config(path), lambda config: "")
    good.save()
    assert read_saved(path.with_name("other.toml")) is None and read_saved(path) == read_config(path)


def test_a_saved_configuration_that_overwrites_a_file_is_not_used(path):
    path.write_text("deadline = 3")
    good = LastGood(path)
    good.use(replace(read_config(path), log_file=str(path)), lambda config: "")
    good.save()
    assert str(path) in (saved_folder(path) / SAVED).read_text()
    path.write_text("dead_line = 3")
    with pytest.raises(InputError, match="unknown key 'dead_line'"):
        ConfigFile(path).refresh()


def test_a_configuration_that_no_message_carries_is_refused(path):
    path.write_text(f"[engine]\nroots = {['sw'] * 10000}")
    with pytest.raises(InputError, match=r"is too long \(list roots in a file"):
        ConfigFile(path).refresh()


def roots_of(config):
    """Read the file of roots, as an action of the worker does."""
    return str(read_guid_list(config.options_of("updn")["root_guid_file"]))


@pytest.mark.parametrize("wrong", ["no GUID\n", None])
@pytest.mark.parametrize("again", [False, True], ids=["same worker", "another worker"])
def test_a_named_file_that_becomes_wrong_is_replaced_by_its_last_good_copy(path, wrong, again):
    roots = path.with_name("roots")
    roots.write_text("0x10\n0x20\n")
    path.write_text("[engine.updn]\nroot_guid_file = 'roots'")
    config, good = read_config(path), LastGood(path)
    assert good.use(config, roots_of) == ("(16, 32)", "")
    good.save()
    roots.unlink() if wrong is None else roots.write_text(wrong)
    good = LastGood(path) if again else good
    result, warning = good.use(config, roots_of)
    assert (
        result == "(16, 32)" and warning.startswith(str(roots)) and "the last good configuration is in use" in warning
    )
    assert good.use(config, roots_of) == ("(16, 32)", "")
    roots.write_text("0x30\n")
    assert good.use(config, roots_of) == ("(48,)", "the configuration is valid again, and in use")
    good.save()
    assert sorted(file.suffix for file in saved_folder(path).iterdir()) == ["", ".json"]  # one copy is left
    roots.unlink()
    assert good.use(config, roots_of)[0] == "(48,)"


@pytest.mark.parametrize("both", [False, True], ids=["only port rules fail", "both requests fail"])
def test_a_problem_of_one_or_both_requests_is_reported_once(path, both):
    rules = path.with_name("rules")
    path.write_text("policies = 'rules'")
    config, good, warnings = read_config(path), LastGood(path), []

    def read_rules(config):
        if "right" not in Path(config.policies).read_text():
            raise OptionError("the rules are wrong")
        return "done"

    for text in ("right", "wrong", "wrong", "right"):
        rules.write_text(text)
        warnings.append(good.use(config, read_rules if both else lambda _: "routed")[1])
        warnings.append(good.use(config, read_rules, ports=True)[1])
        good.save()
    wrong = f"{path}: the rules are wrong; the last good configuration is in use"
    assert list(filter(None, warnings)) == [wrong, "the configuration is valid again, and in use"]


def test_a_silent_file_is_replaced_by_its_copy(path, monkeypatch):
    roots, other = path.with_name("roots"), path.with_name("other")
    roots.write_text("0x10\n")
    other.write_text("0x20\n")
    path.write_text("[engine.updn]\nroot_guid_file = 'roots'")
    config, good, answers, real = read_config(path), LastGood(path), threading.Event(), os.open
    good.use(config, roots_of)
    good.save()
    monkeypatch.setattr("osm_plugin.silent_files.ANSWER_SECONDS", 0.05)
    monkeypatch.setattr("os.open", lambda name, *args: (name == roots and answers.wait(), real(name, *args))[1])
    warning = f"{roots}: has not answered for 0.05 s; the last good configuration is in use"
    assert [good.use(config, roots_of) for _ in range(2)] == [("(16,)", warning), ("(16,)", "")]
    path.write_text("[engine.updn]\nroot_guid_file = 'other'")
    assert good.use(read_config(path), roots_of)[0] == "(32,)"
    with pytest.raises(InputError, match="has not answered"):
        LastGood(None).use(config, roots_of)
    answers.set()
    until(lambda: good.use(config, roots_of)[1] == "" and good.use(config, roots_of)[0] == "(16,)")


def test_port_rules_without_a_copy_are_not_read_from_a_silent_file(path, monkeypatch):
    rules, answers, real = path.with_name("rules"), threading.Event(), os.open
    for file in (rules, path.with_name("guids")):
        file.touch()
    path.write_text("state_file = false\npolicies = 'rules'")
    good = LastGood(path)
    good.use(read_config(path), lambda config: "", ports=True)
    good.save()
    monkeypatch.setattr("osm_plugin.silent_files.ANSWER_SECONDS", 0.05)
    monkeypatch.setattr("os.open", lambda name, *args: (name == rules and answers.wait(), real(name, *args))[1])
    path.write_text("state_file = false\npolicies = 'rules'\n[classes.storage]\nguid_file = 'guids'")
    with pytest.raises(InputError, match="has not answered"):
        good.use(read_config(path), lambda config: "", ports=True)
    answers.set()


def test_errors_that_no_configuration_can_avoid_are_not_tried_twice(path):
    path.write_text("[engine]\nvls = 3")
    good, calls = LastGood(path), []

    def refuse(kind):
        def action(config):
            calls.append(config)
            raise kind("no")

        return action

    with pytest.raises(OptionError):
        good.use(read_config(path), refuse(OptionError))  # no good configuration is known
    good.use(read_config(path), lambda config: "")
    good.save()
    with pytest.raises(OptionError):
        good.use(read_config(path), refuse(OptionError))  # the good configuration equals this configuration
    path.write_text("[engine]\nvls = 4")
    with pytest.raises(RoutingError):
        good.use(read_config(path), refuse(RoutingError))  # the cause is not the configuration
    assert len(calls) == 3
    with pytest.raises(OptionError):
        good.use(read_config(path), refuse(OptionError))
    assert len(calls) == 5


def test_rules_for_ports_are_good_once_they_were_read(path):
    rules = path.with_name("rules.toml")
    rules.write_text("broken")
    path.write_text("policies = 'rules.toml'")
    config, good = read_config(path), LastGood(path)

    def read(config):
        text = Path(config.policies).read_text()
        if text == "broken":
            raise InputError("broken", path=config.policies)
        return text

    good.use(config, lambda config: "")
    good.save()
    with pytest.raises(InputError):
        good.use(config, read, ports=True)
    rules.write_text("one")
    assert good.use(config, read, ports=True) == ("one", "")
    good.save()
    rules.write_text("broken")
    assert good.use(config, read, ports=True)[0] == "one"
    good.use(config, lambda config: "")  # computing tables in between does not remove the copy
    good.save()
    assert good.use(config, read, ports=True)[0] == "one"


def test_without_a_state_file_nothing_is_saved(path):
    path.write_text("state_file = false\n[engine]\nvls = 1")
    good = LastGood(path)
    good.use(read_config(path), lambda config: "")
    good.save()
    assert not saved_folder(path).exists()

    def only_one(config):
        if config.options_of("updn")["vls"] > 1:
            raise OptionError("too many")
        return "one"

    path.write_text("state_file = false\n[engine]\nvls = 2")
    assert good.use(read_config(path), only_one)[0] == "one"


def test_a_file_system_that_does_not_answer_is_waited_for_once(path, monkeypatch):
    path.write_text("deadline = 3")
    file, answers = ConfigFile(path), threading.Event()
    assert file.refresh().deadline == 3
    monkeypatch.setattr("osm_plugin.silent_files.ANSWER_SECONDS", 0.05)
    monkeypatch.setattr("osm_plugin.last_good.stamp_of", lambda path: answers.wait() and stamp_of(path))
    path.write_text("deadline = 4.5")
    for _ in range(3):
        assert file.refresh().deadline == 3
    assert file.warnings == [f"{path}: has not answered for 0.05 s; the last good configuration stays in use"]
    with pytest.raises(InputError, match="has not answered"):
        ConfigFile(path).refresh()
    answers.set()
    until(lambda: file.refresh().deadline == 4.5)
    assert file.warnings[1:] == [f"{path}: can be read again"]
