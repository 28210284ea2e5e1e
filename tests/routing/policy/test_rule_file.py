"""Check the contents of rule files that are allowed, and the errors for other contents."""

import math

import pytest
from in_one_test import cases_in_one_test

from routing.errors import EnvironmentProblem, OptionError, ParseError, ParseErrors
from routing.policy import Breaker, Selector, Speed, hoq_code, hoq_seconds, read_policy

EVERYTHING = """
# rules of a site
[[rule]]
name = "spines"
switch = ["spine-*", "0x0002c9*"]
ports = "1-3, 7"
role = ["core", "loop"]
speed = ">=100"
hoq_life = 15
vl_stall_count = 7
deadlock_breaker = { detect_time = "1ms", check_period = "50us", release_period = "2.5us", extra_mtus = 2 }

[[rule]]
ports = [4]
speed = "EDR"
hoq_life = "50ms"
override = true
[rule.loop_breaker]
detect_time = "200us"

[[rule]]
switch = "leaf"
ports = 9
speed = 56
hoq_life = "never"
loop_breaker = false
"""


def test_everything_that_a_rule_can_say(write):
    first, second, third = read_policy(write(EVERYTHING)).rules
    assert (first.name, first.line, first.override) == ("spines", 3, False)
    assert first.select == Selector(("spine-*", "0x0002c9*"), (1, 2, 3, 7), ("core", "loop"), Speed(">=", 100.0))
    assert dict(first.values) == {
        "hoq_life": 15,
        "vl_stall_count": 7,
        "breaker": Breaker("deadlock", 1e-3, 50e-6, 2.5e-6, 2),
    }
    assert (second.name, second.line, second.line_of("loop_breaker"), second.override) == ("rule 2", 13, 18, True)
    assert second.select == Selector((), (4,), (), Speed(lane_speed=25.78125))
    assert dict(second.values) == {"hoq_life": 14, "breaker": Breaker("loop", 200e-6, 10e-6, 10e-6)}
    assert third.select == Selector(("leaf",), (9,), (), Speed("=", 56.0))
    assert dict(third.values) == {"hoq_life": 20, "breaker": Breaker("none")}


@pytest.mark.parametrize("breaker", ["true", "{}", "{ on = true }"])
def test_a_breaker_with_the_usual_times(write, breaker):
    (rule,) = read_policy(write(f"[[rule]]\nloop_breaker = {breaker}\n")).rules
    assert dict(rule.values) == {"breaker": Breaker("loop", 100e-6, 10e-6, 10e-6)}


@cases_in_one_test(
    ("line", "expected", "remedy"),
    [
        ("hoq_life = 32", "hoq_life is 32", "0 to 31"),
        ("hoq_life = -1", "hoq_life is -1", "0 to 31"),
        ("hoq_life = true", "hoq_life is True", "0 to 31"),
        ("hoq_life = 1.5", "hoq_life is 1.5", "0 to 31"),
        ("hoq_life = '3 s'", "3 s is more than the longest HOQLife (2.15 s)", "never"),
        ("hoq_life = '3'", "hoq_life is '3'", "100us"),
        ("hoq_life = '0us'", "hoq_life is '0us'", "100us"),
        (f"hoq_life = '{'9' * 400}s'", "hoq_life is '999", "100us"),
        (f"hoq_life = '0.{'0' * 320}1us'", "hoq_life is '0.000", "100us"),
        ("hoq_life = '\u0663us'", "hoq_life is '\u0663us'", "100us"),
        (f"loop_breaker = {{ detect_time = '{'9' * 400}s' }}", "detect_time is '999", "100us"),
        ("vl_stall_count = 8", "vl_stall_count is 8", "1 to 7"),
        ("vl_stall_count = 0", "vl_stall_count is 0", "0 is undefined"),
        ("hoq_live = 3", "unknown key 'hoq_live'", "hoq_life"),
        ("ports = '0-3'", "ports is '0-3'", "1 to 254"),
        ("ports = '3-1'", "ports is '3-1'", "1 to 254"),
        ("ports = []", "ports is []", "1 to 254"),
        ("ports = [255]", "ports is [255]", "1 to 254"),
        ("ports = [true]", "ports is [True]", "1 to 254"),
        ("role = 'spine'", "unknown role 'spine'", "leaf, core, ca-facing, switch-facing, loop"),
        ("role = 3", "role is 3", "text"),
        ("switch = []", "switch is empty", "leave it out"),
        ("switch = ['']", "switch is ['']", "text"),
        ("speed = 'fast'", "speed is 'fast'", "EDR"),
        ("speed = true", "speed is True", "EDR"),
        ("speed = 0", "speed is 0", "over 0"),
        ("speed = '<0.0'", "speed is '<0.0'", "over 0"),
        (f"speed = '>={'9' * 400}'", "speed is '>=999", "over 0"),
        ("hoq_life = 12.0", "hoq_life is 12.0", '"never"'),
        ("hoq_life = '12'", "hoq_life is '12'", "0 to 31 without quotes"),
        ("hoq_life = 2020-01-01", "hoq_life is 2020-01-01", "0 to 31"),
        (f"ports = [{'1, ' * 5000}300]", "ports is [1, 1, ", "1 to 254"),
        ("name = '  '", "name is '  '", "text"),
        ('name = "a\\nb"', "name is 'a\\nb'", "one line"),
        (f"name = '{'x' * 5000}'", "name is 'xxx", "60 characters"),
        ("override = 1", "override is 1", "true or false"),
        ("name = ''", "name is ''", "text"),
        ("deadlock_breaker = 3", "deadlock_breaker is 3", "true, false or a table"),
        ("deadlock_breaker = { on = 1 }", "on is 1", "true or false"),
        ("deadlock_breaker = { detect_time = 3 }", "detect_time is 3", "100us"),
        ("deadlock_breaker = { detect = '3us' }", "unknown key 'detect'", "detect_time"),
        ("deadlock_breaker = { extra_mtus = 0 }", "extra_mtus is 0", "1 to 255"),
        ("loop_breaker = { extra_mtus = 1 }", "unknown key 'extra_mtus'", "detect_time, check_period"),
        ("loop_breaker = { detect_time = '1us' }", "longer than detect_time", "at least once"),
        ("loop_breaker = true\ndeadlock_breaker = true", "one breaker, not both", "leave one"),
    ],
)
def test_invalid_values_are_refused_with_their_line(write, line, expected, remedy):
    usual = "" if line.startswith("hoq_life") else "hoq_life = 3\n"
    path = write(f"# rules\n[[rule]]\n{usual}{line}\n")
    with pytest.raises(ParseError) as error:
        read_policy(path)
    assert expected in error.value.problem
    assert len(error.value.problem) < 120
    assert remedy in str(error.value.remedy)
    wrong = 3 + usual.count("\n") + line.count("\n")
    assert str(error.value).startswith(f"{path}:{wrong}: ")


def test_all_errors_of_a_file_are_reported(write):
    rule = "[[rule]]\nname = 'a'\nrole = ['spine', 'tip']\nhoq_life = 99\nvl_stall_count = 9\nports = 0\n"
    path = write(f"x = 1\n{rule}colour = 3\n[[rule]]\nname = 'a'\n[[rule]]\nhoq_live = 1\n")
    with pytest.raises(ParseErrors) as caught:
        read_policy(path)
    assert [(error.line, error.problem) for error in caught.value.errors] == [
        (1, "unknown key 'x'"),
        (4, "unknown role 'spine'"),
        (4, "unknown role 'tip'"),
        (5, "hoq_life is 99"),
        (6, "vl_stall_count is 9"),
        (7, "ports is 0"),
        (8, "unknown key 'colour'"),
        (9, "a sets nothing"),
        (10, "two rules are called 'a'"),
        (12, "unknown key 'hoq_live'"),
    ]
    known = "known are leaf, core, ca-facing, switch-facing, loop"
    assert str(caught.value).startswith(
        f"{path}: 10 errors: line 1: unknown key 'x' (begin every rule with [[rule]]); "
    )
    assert f"; line 4: unknown role 'spine' ({known}); line 4: " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("[[rule]]\nname = 'a'\n", 1, "sets nothing"),
        ("[[rule]]\nhoq_life = \n", 2, "not TOML"),
        ("x = 1\n[[rule]]\nhoq_life = 1\n", 1, "unknown key 'x'"),
        ("\n[rule]\nhoq_life = 1\n", 2, "not a list"),
        ("[[rule]]\nname = 'a'\nhoq_life = 1\n[[rule]]\nname = 'a'\nhoq_life = 1\n", 5, "two rules are called 'a'"),
    ],
)
def test_files_that_are_none(write, text, line, expected):
    with pytest.raises(ParseError) as error:
        read_policy(write(text))
    assert expected in str(error.value)
    assert error.value.line == line


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("on = 3", "on is 3"),
        ("detect = '1ms'", "unknown key 'detect' of deadlock_breaker"),
        ("check_period = '1s'", "check_period of deadlock_breaker (1 s) is longer than detect_time"),
        ("detect_time = '1us'", "check_period of deadlock_breaker (10 us) is longer than detect_time"),
        ("extra_mtus = 0", "extra_mtus is 0"),
    ],
)
def test_keys_of_a_breaker_are_refused_where_they_stand(write, key, expected):
    path = write(f"[[rule]]\nname = 'a'\n[rule.deadlock_breaker]\nrelease_period = '1ms'\n{key}\n")
    with pytest.raises(ParseError) as error:
        read_policy(path)
    assert str(error.value).startswith(f"{path}:5: {expected}")


def test_other_files(write, tmp_path):
    assert read_policy(write("# nothing\n")).rules == ()
    with pytest.raises(EnvironmentProblem):
        read_policy(tmp_path / "none.toml")
    with pytest.raises(ParseError):
        read_policy(write("rule = 3\n"))


def test_lifetimes_and_their_codes():
    assert hoq_seconds(0) == 4.096e-6
    assert hoq_seconds(18) == pytest.approx(1.0737, rel=1e-4)
    assert [hoq_seconds(code) for code in (20, 31)] == [math.inf, math.inf]
    for code in range(20):
        assert hoq_code(hoq_seconds(code)) == code
        assert hoq_code(hoq_seconds(code) * 0.99) == code
        if code < 19:
            assert hoq_code(hoq_seconds(code) * 1.01) == code + 1
    with pytest.raises(OptionError):
        hoq_code(2.2)
