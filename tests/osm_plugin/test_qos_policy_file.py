"""``ibnue plugin check`` reads the QoS policy file: errors have file and line, and OpenSM refuses such a file, too."""

import pytest
from plugin_lab import opensm_agrees

from osm_plugin.qos_policy_file import check_qos_policy
from routing.errors import ParseError

FULL = """# port groups of the storage
port-groups
    port-group
        name: Storage
        use: SRP targets: both of them
        port-guid: 0x10, 0x20-0x30,
            0x40
    end-port-group
end-port-groups
qos-levels
    qos-level
        name: DEFAULT
        sl: 0
    end-qos-level
    qos-level   # fast
        name: fast
        use: "a # sign"
        sl: 0x3
        mtu-limit: 4
    end-qos-level
end-qos-levels
qos-match-rules
    qos-match-rule
        source: Storage
        service-id: 22,4719-5000
        qos-level-name: Fast
    end-qos-match-rule
end-qos-match-rules
"""
ULPS = """qos-ulps
    default : 1
    sdp, port-num 10000-20000 : 2
    ANY, pkey 0x0002, 0x0003 : 3
    ipoib:4
end-qos-ulps
"""
GOOD = {"sections": FULL, "rules": ULPS, "both": FULL + ULPS, "no end of line": ULPS.rstrip("\n"),
        "tabs": ULPS.replace("    ", "\t"), "octal": ULPS.replace(": 2", ": 017")}  # fmt: skip
BAD = {
    "SL 99 in a rule": (ULPS.replace(": 2", ": 99"), 3, "SL 99 does not exist (use 0 to 15)"),
    "SL 16 as default": (ULPS.replace(": 1\n", ": 16\n"), 2, "SL 16 does not exist"),
    "a word as SL": (ULPS.replace(": 2", ": two"), 3, "'two' is not an SL (use 0 to 15)"),
    "no SL": (ULPS.replace(": 2", ":"), 3, "'' is not an SL"),
    "unknown rule": (ULPS.replace("sdp,", "sdpp,"), 3, "'sdpp, port-num 10000-20000 : 2' is not a rule of qos-ulps"),
    "unknown name": (FULL.replace("mtu-limit", "mtu_limit"), 19, "'mtu_limit: 4' is not possible in qos-level (known"),
    "unknown section": (FULL.replace("qos-levels", "qos-layers"), 10, "'qos-layers' is not possible here (known are"),
    "no end": (ULPS.replace("end-qos-ulps\n", ""), 1, "the section qos-ulps does not end (write end-qos-ulps)"),
    "wrong end": (FULL.replace("    end-qos-level\n", "", 1), 14, "qos-level is not possible here (write it inside"),
    "end alone": (ULPS + "end-qos-ulps\n", 7, "end-qos-ulps without qos-ulps before it (remove it)"),
    "no default": (ULPS.replace("default : 1", ""), 7, "there is no default QoS level (write 'default : 0'"),
    "no SL of a level": (FULL.replace("        sl: 0\n", ""), 11, "qos-level has no sl (add a line 'sl: ...')"),
    "carriage returns": (ULPS.replace("\n", "\r\n"), 1, "its lines end with a carriage return (use Unix line ends)"),
    "unknown level": (FULL.replace("Fast", "Slow"), 23, "there is no QoS level 'slow' (define it in qos-levels)"),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_a_policy_without_an_error_passes(tmp_path, name):
    path = tmp_path / "policy"
    path.write_text(GOOD[name])
    check_qos_policy(path)


@pytest.mark.parametrize("name", BAD)
def test_an_error_is_reported_with_its_line(tmp_path, name):
    text, line, problem = BAD[name]
    path = tmp_path / "policy"
    path.write_text(text, newline="")
    with pytest.raises(ParseError) as caught:
        check_qos_policy(path)
    assert str(caught.value).startswith(f"{path}:{line}: {problem}")


def test_a_line_with_several_statements_gives_no_verdict(tmp_path):
    path = tmp_path / "policy"
    path.write_text(ULPS + "qos-levels qos-level name: a sl: 3 end-qos-level end-qos-levels\n")
    check_qos_policy(path)


@pytest.mark.lab
def test_opensm_refuses_what_the_check_refuses(live, nets, tmp_path):
    policy = tmp_path / "policy"
    policy.write_text(ULPS)
    config = {"qos": True, "qos_policy_file": policy}
    refused = r"ERR AC0[34]: "
    with live(nets("ring", "4", cas=1), "ibnue-updn,no_fallback", config=config) as lab:
        opensm_agrees(lab, policy, GOOD, BAD, refused)
