"""Check that ``ibnue plugin check`` reads opensm.conf as OpenSM does.  ``opensm -c`` writes the values that OpenSM
uses.
"""

import re
import signal
import subprocess

import pytest

from osm_plugin.check_conf import check_configuration
from osm_plugin.opensm_conf import settings_in
from routing.formats.text import c_number

pytestmark = pytest.mark.lab

PLAIN = """event_plugin_name ibnue
event_plugin_options --config {toml}
routing_engine ibnue-nue,no_fallback
qos TRUE
lmc 1
scatter_ports 7
"""
KEYS = (
    "event_plugin_name",
    "routing_engine",
    "qos",
    "lmc",
    "scatter_ports",
    "qos_max_vls",
    "qos_high_limit",
    "sm_priority",
)

CHANGES = {
    "tab": ("lmc 1", "lmc\t1"),
    "spaces": ("lmc 1", "  lmc   1  "),
    "carriage returns": ("\n", "\r\n"),
    "comment": ("lmc 1", "lmc 1 # a comment"),
    "comment without a space": ("lmc 1", "lmc 1#2"),
    "comment before": ("lmc 1", "#lmc 1"),
    "hexadecimal": ("lmc 1", "lmc 0x2"),
    "octal": ("lmc 1", "lmc 02"),
    "out of range": ("lmc 1", "lmc 9"),
    "negative": ("lmc 1", "lmc -1"),
    "text": ("lmc 1", "lmc two"),
    "equals sign": ("lmc 1", "lmc = 1"),
    "equals sign without a space": ("qos TRUE", "qos=TRUE"),
    "colon": ("lmc 1", "lmc: 1"),
    "capital": ("lmc 1", "Lmc 1"),
    "capitals repeated": ("lmc 1", "lmc 1\nLMC 2"),
    "engine in capitals repeated": ("lmc 1", "lmc 1\nRouting_Engine minhop"),
    "repeated": ("lmc 1", "lmc 1\nlmc 2"),
    "repeated wrongly": ("lmc 1", "lmc 1\nlmc 9"),
    "vertical tab": ("lmc 1", "lmc\v1"),
    "form feed": ("lmc 1", "lmc\f1"),
    "no-break space": ("lmc 1", "lmc\u00a01"),
    "line separator": ("lmc 1", "lmc 1\u2028qos FALSE"),
    "true": ("qos TRUE", "qos true"),
    "yes": ("qos TRUE", "qos yes"),
    "1": ("qos TRUE", "qos 1"),
    "TRUE and more": ("qos TRUE", "qos TRUE TRUE"),
    "repeated boolean": ("qos TRUE", "qos TRUE\nqos maybe"),
    "false": ("qos TRUE", "qos false"),
    "quotes": ("ibnue-nue,no_fallback", '"ibnue-nue,no_fallback"'),
    "single quotes": ("ibnue-nue,no_fallback", "'ibnue-nue,no_fallback'"),
    "one quote": ("ibnue-nue,no_fallback", '"ibnue-nue,no_fallback'),
    "space after the comma": ("ibnue-nue,no_fallback", "ibnue-nue, no_fallback"),
    "space instead of a comma": ("ibnue-nue,no_fallback", "ibnue-nue no_fallback"),
    "most VLs": ("qos TRUE", "qos TRUE\nqos_max_vls 15"),
    "too many VLs": ("qos TRUE", "qos TRUE\nqos_max_vls 16"),
    "negative VLs": ("qos TRUE", "qos TRUE\nqos_max_vls -1"),
    "highest limit": ("qos TRUE", "qos TRUE\nqos_high_limit 255"),
    "limit too high": ("qos TRUE", "qos TRUE\nqos_high_limit 256"),
    "limit as text": ("qos TRUE", "qos TRUE\nqos_high_limit two"),
    "priority": ("qos TRUE", "qos TRUE\nsm_priority 16"),
    "no end of line": ("scatter_ports 7\n", "scatter_ports 7"),
}


def values_of_opensm(conf, folder):
    """Return the values that OpenSM uses with a configuration file, by name."""
    found = folder / "found.conf"
    subprocess.run(["opensm", "-F", conf, "-c", found], check=True, capture_output=True)
    return dict(re.findall(r"^([a-z_]+) (.*)$", found.read_text(), re.M))


def equal(mine, opensms):
    return (
        mine == opensms
        or (mine.upper(), opensms) == ("FALSE", "FALSE")
        or c_number(mine) == c_number(opensms) is not None
    )


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_without_an_error_has_the_values_that_opensm_uses(tmp_path, change):
    toml, conf = tmp_path / "ibnue.toml", tmp_path / "opensm.conf"
    toml.write_text("")
    text = PLAIN.format(toml=toml).replace(*CHANGES[change])
    conf.write_bytes(text.encode())
    used, read = values_of_opensm(conf, tmp_path), settings_in(text)
    usual = {"lmc": "0", "qos": "FALSE", "qos_max_vls": "0", "qos_high_limit": "-1", "sm_priority": "0"}
    differ = [key for key in KEYS if not equal(read.get(key, usual.get(key)), used[key])]
    wrong = [finding.text for finding in check_configuration(toml, conf) if finding.wrong]
    assert wrong or not differ, (change, differ)


CHANGED_LATER = (
    *("subnet_timeout", "packet_life_time", "head_of_queue_lifetime", "leaf_head_of_queue_lifetime", "vl_stall_count"),
    *("leaf_vl_stall_count", "local_phy_errors_threshold", "overrun_errors_threshold", "sm_sl"),
    *("transaction_timeout", "sminfo_polling_timeout", "max_op_vls"),
)
"""Options for which "opensm -c" writes the given value, although a running OpenSM does not use this value."""
ELSEWHERE = ("scatter_ports", "max_op_vls")
"""Options that ``effect_of_wrong_value`` does not know, because other functions of the check report wrong values."""
LIMITS = (0, 3, 7, 15, 29, 31, 255, 65_535, (1 << 31) - 1, (1 << 32) - 1, (1 << 64) - 1)


@pytest.mark.parametrize("value", ["two", "-2", *sorted({number + more for number in LIMITS for more in (0, 1)})])
def test_numbers_that_opensm_does_not_use_are_reported(tmp_path, value):
    empty, conf = tmp_path / "empty.conf", tmp_path / "opensm.conf"
    empty.write_text("")
    usual = values_of_opensm(empty, tmp_path)
    # One file sets all options but two, because a test of each option would take too long.  OpenSM compares the values
    # of three options with each other, so the file sets only one of these three options.
    names = [
        name for name, text in usual.items()
        if c_number(text) is not None and not name.startswith("cc_")
        and name not in ("m_key_lease_period", "long_transaction_timeout")
    ]  # fmt: skip
    conf.write_text("qos TRUE\n" + "".join(f"{name} {value}\n" for name in names))
    used = values_of_opensm(conf, tmp_path)
    unlimited = {"max_wire_smps"} if value == 0 else set()
    ignored = {name for name in names if c_number(used[name]) != c_number(str(value))} - unlimited - {*ELSEWHERE}
    texts = [finding.text for finding in check_configuration(None, conf) if finding.wrong]
    reported = {name for name in names if any(f": {name} is {value}, " in text for text in texts)}
    assert ignored <= reported and reported - ignored <= {*CHANGED_LATER}


@pytest.mark.parametrize("name", ["console", "part_enforce"])
def test_opensm_crashes_without_a_word_that_it_needs(tmp_path, name):
    conf = tmp_path / "opensm.conf"
    conf.write_text(f"{name} (null)\n")
    done = subprocess.run(["opensm", "-F", conf, "-c", tmp_path / "found.conf"], check=False, capture_output=True)
    assert done.returncode == -signal.SIGSEGV
