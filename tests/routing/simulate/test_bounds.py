"""Check that impossible numbers in a scenario are refused in one line, before anything runs."""

import pytest
from in_one_test import cases_in_one_test
from sim_files import TWO_SWITCHES, refusal

BIG = "1" + 20 * "0"
EVERYTHING = (
    TWO_SWITCHES
    + """\
process = "bursty"
@flow
[timing]
@timing
[run]
@run
[routing]
@routing
[[case]]
name = "c"
@case
expect = { outcome = "progress" }
"""
)


def written(position, line):
    text = EVERYTHING.replace(f"@{position}", line)
    for other in ("flow", "timing", "run", "routing", "case"):
        text = text.replace(f"@{other}", "")
    return text


WHOLE = [
    ("run", "seed"), ("flow", "messages"), ("flow", "message"), ("flow", "sl"), ("timing", "packet"),
    ("timing", "wire"), ("timing", "switch"), ("routing", "vls"), ("routing", "seed"), ("case", "seed"),
    ("case", "wire"), ("case", "vls"), ("case", "seeds"), ("case", "remedy.stall_count"), ("case", "remedy.extra"),
    ("case", "remedy.release_packets"), ("case", "remedy.rounds"), ("case", "adaptive.vls"),
    ("case", "adaptive.ca_vls"), ("case", "chain.channels"), ("case", "chain.usable"),
]  # fmt: skip
REAL = [
    ("flow", "load"), ("flow", "burst"), ("flow", "start"), ("flow", "stop"), ("timing", "buffer"), ("run", "until"),
    ("run", "from"), ("run", "sample"), ("case", "buffer"), ("case", "load"), ("case", "until"), ("case", "from"),
    ("case", "remedy.hoq"), ("case", "remedy.lifetime"), ("case", "remedy.detect"), ("case", "remedy.repeat"),
    ("case", "remedy.release"), ("case", "remedy.sample"), ("case", "change.at"), ("case", "change.every"),
    ("case", "pauses.xoff"), ("case", "adaptive.detect"), ("case", "adaptive.step"),
]  # fmt: skip


@cases_in_one_test("value", [BIG, f"-{BIG}", "-1", "1" + 400 * "0"])
@cases_in_one_test(("position", "key"), WHOLE + REAL)
def test_integers_out_of_bounds(tmp_path, position, key, value):
    error = refusal(tmp_path, written(position, f"{key} = {value}"))
    assert f"{key.split('.')[-1]} cannot be {value[:24]}" in str(error)
    assert error.remedy.startswith("use ")
    assert len(str(error)) < 400
    assert error.line == written(position, f"{key} = {value}").split("\n").index(f"{key} = {value}") + 1


@cases_in_one_test("value", ["1e300", "-0.5", "nan", "inf", "-inf"])
@cases_in_one_test(("position", "key"), REAL)
def test_fractions_out_of_bounds(tmp_path, position, key, value):
    refusal(tmp_path, written(position, f"{key} = {value}"), "cannot be|has to be a number")


@pytest.mark.parametrize(
    ("position", "line"),
    [
        ("case", f'what = "lock-times"\nbuffers = [4, {BIG}]'),
        ("case", 'what = "lock-times"\nbuffers = [4, nan]'),
        ("case", 'what = "lock-times"\nbuffers = [4, true]'),
        ("case", 'what = "adaptive"\nloads = [0.5, 1e-300]'),
        ("case", 'what = "adaptive"\nloads = [0.5, 2]'),
        ("case", 'what = "message-types"\nchain = { channels = 3, escape = [1, -1] }'),
        ("case", f'what = "message-types"\nchain = {{ channels = 3, escape = [1, {BIG}] }}'),
        ("case", 'fault = [{ cable = ["a", "b"], at = nan }]'),
        ("case", 'fault = [{ cable = ["a", "b"], at = -1 }]'),
        ("case", 'fault = [{ cable = ["a", "b"], at = 1, reroute = ["soon"] }]'),
        ("case", 'fault = [{ cable = ["a", "b"], at = 1, reroute = [inf] }]'),
        ("case", 'change = { how = "one by one", at = 1, order = ["a", 2] }'),
        ("case", 'what = "graph"\ngraph = { dependencies = ["a > b"], movable = [["a"]] }'),
        ("routing", 'paths = [["x", 3, "y"]]'),
        ("routing", "paths = [3]"),
    ],
)
def test_lists_with_what_cannot_be(tmp_path, position, line):
    refusal(tmp_path, written(position, line), "cannot be|has to be")


@pytest.mark.parametrize(
    "expected",
    ["tolerance = -1", "tolerance = nan", "tolerance = inf", "tolerance = 1e300", f"tolerance = {BIG}",
     "total = nan", "at_least_total = inf", f"total = 1{400 * '0'}", "throughput = { f0 = nan }", "knot = [nan]"],
)  # fmt: skip
def test_expectations_that_nothing_can_meet_or_anything_does(tmp_path, expected):
    text = written("case", "").replace('outcome = "progress"', expected)
    refusal(tmp_path, text, "cannot be|has to be a number")


def test_a_flow_of_traffic_has_bounds_too(tmp_path):
    text = written("case", "").replace("[run]", '[traffic]\npattern = "shift"\nKEY\n[run]')
    for line in (f"by = {BIG}", "rounds = 0", f"rounds = {BIG}", "load = 0", "hot_share = -1", f"message = {BIG}"):
        refusal(tmp_path, text.replace("KEY", line), "cannot be")


def test_lids_of_a_fabric_have_bounds(tmp_path):
    for value in ("-1", BIG, "8"):
        refusal(tmp_path, written("case", "").replace("[[flow]]", f"lmc = {value}\n[[flow]]", 1), "lmc cannot be")


def test_pauses_over_the_longest_cable_need_a_buffer_that_none_is(tmp_path):
    text = written("timing", f"wire = {2**30 - 1}").replace('name = "c"', 'name = "c"\npauses = { xoff = 4, xon = 2 }')
    refusal(tmp_path, text, "overflow, with pauses")
