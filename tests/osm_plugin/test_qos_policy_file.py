"""Check that ``ibnue plugin check`` reads the QoS policy file: errors have file and line, and OpenSM refuses the file,
too.
"""

import pytest
from in_one_test import cases_in_one_test
from plugin_lab import opensm_agrees

from osm_plugin.qos_policy_file import check_qos_policy
from routing.errors import ParseError, ParseErrors

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
SETUP = """qos-setup
    vlarb-tables
        vlarb-scope
            group: Storage, Compute
            vlarb-high: 0:255,1 : 127
            vl-high-limit: 10
        end-vlarb-scope
    end-vlarb-tables
    sl2vl-tables
        sl2vl-scope
            across-to: Storage
            from: *
            to: 1-5,7
            sl2vl-table: 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,7
        end-sl2vl-scope
    end-sl2vl-tables
end-qos-setup
"""
PORTS = """port-groups
    port-group
        name: Others
        port-name: node 1/P1, vs1 HCA-1/p02
        node-type: ca, SWITCH
        partition: Part1
    end-port-group
end-port-groups
"""
GOOD = {
    "sections": FULL, "rules": ULPS, "both": FULL + ULPS, "no end of line": ULPS.rstrip("\n"),
    "tabs": ULPS.replace("    ", "\t"), "octal": ULPS.replace(": 2", ": 017"), "setup and ports": ULPS + SETUP + PORTS,
    "a list in two lines": ULPS.replace("0x0002, ", "0x0002,\n\n  "),
    "an SL in the next line": ULPS.replace(": 2", ":\n2"),
    "several statements in a line": ULPS + "qos-levels qos-level sl: 3 name: a b end-qos-level end-qos-levels\n",
    "quotation marks around two lines": FULL.replace("DEFAULT", '"defa" "ult"').replace("a # sign", "a\nsl: 4"),
    "a quoted word of the format": FULL.replace("Fast", '"qos-level"').replace("fast\n", '"qos-level"\n'),
    "empty sections": ULPS + "qos-levels\nend-qos-levels\nqos-setup\nend-qos-setup\n",
    "PKey with the bit for full members": ULPS.replace("ipoib:", "ipoib, pkey 0xffff:"),
}  # fmt: skip
BAD = {
    "SL 99 in a rule": (ULPS.replace(": 2", ": 99"), 3, "SL 99 does not exist (use 0 to 15)"),
    "SL 16 as default": (ULPS.replace(": 1\n", ": 16\n"), 2, "SL 16 does not exist"),
    "a word as SL": (ULPS.replace(": 2", ": two"), 3, "'two' is not possible here (write a number from 0 to 15)"),
    "no SL": (ULPS.replace(": 2", ":"), 3, "the line ends too early (write a number from 0 to 15)"),
    "unknown rule": (ULPS.replace("sdp,", "sdpp,"), 3, "'sdpp, port-num 10000-20000 : 2' is not possible in qos-ulps"),
    "unknown name": (FULL.replace("mtu-limit", "mtu_limit"), 19, "'mtu_limit: 4' is not possible in qos-level (known"),
    "unknown section": (FULL.replace("qos-levels", "qos-layers"), 10, "'qos-layers' is not possible in this place (kn"),
    "no end": (ULPS.replace("end-qos-ulps\n", ""), 1, "the section qos-ulps does not end (write end-qos-ulps)"),
    "wrong end": (FULL.replace("    end-qos-level\n", "", 1), 14, "qos-level is not possible here (write it inside"),
    "end alone": (ULPS + "end-qos-ulps\n", 7, "end-qos-ulps without qos-ulps before it (remove it)"),
    "no default": (ULPS.replace("default : 1", ""), 7, "there is no default QoS level (write 'default : 0'"),
    "no SL of a level": (FULL.replace("        sl: 0\n", ""), 11, "qos-level has no sl (add a line 'sl: ...')"),
    "carriage returns": (ULPS.replace("\n", "\r\n"), 1, "its lines end with a carriage return (use Unix line ends)"),
    "unknown level": (FULL.replace("Fast", "Slow"), 23, "there is no QoS level 'slow' (define it in this file)"),
    "unknown group": (FULL.replace("source: Sto", "source: x, Sto"), 23, "there is no port group 'x' (define"),
    "unknown destination": (FULL.replace("source: Sto", "destination: S"), 23, "there is no port group 'srage'"),
    "two names": (FULL.replace("name: Storage", "name: a\nname: b"), 5, "port-group has name more than once (leave"),
    "two SLs": (FULL.replace("sl: 0x3", "sl: 3\nsl: 3"), 19, "qos-level has sl more than once"),
    "no name": (FULL.replace("name: fast", ""), 15, "qos-level has no name (add a line 'name: ...')"),
    "no group": (ULPS + SETUP.replace("across-to: Storage", ""), 16, "sl2vl-scope has no group or across or across-"),
    "a word of the format": (FULL.replace("name: fast", "name: qos-level-a"), 16, "'qos-level-a' is not possible here"),
    "a number as type": (PORTS.replace("ca,", "3,") + ULPS, 5, "'3, SWITCH' is not possible here (write CA, SWITCH"),
    "MTU 9": (FULL.replace("limit: 4", "limit: 9"), 19, "mtu-limit 9 does not exist (use 1 to 5)"),
    "rate 1": (FULL.replace("mtu-limit: 4", "rate-limit: 1"), 19, "rate-limit 1 does not exist (use 2 to 22)"),
    "port 128": (ULPS + SETUP.replace("1-5", "1-128"), 19, "to 128 does not exist (use 0 to 127)"),
    "port number 70000": (ULPS.replace("20000", "70000"), 3, "port-num 70000 does not exist (use 0 to 65535)"),
    "VL 16": (ULPS + SETUP.replace(",14,", ",16,"), 20, "sl2vl-table 16 does not exist (use 0 to 15)"),
    "15 numbers": (ULPS + SETUP.replace(",14,", ","), 20, "sl2vl-table has 15 numbers (write 16 numbers)"),
    "no weight": (ULPS + SETUP.replace(",1 : 127", ",1"), 11, "the line ends too early (write a colon and a weight)"),
    "port name": (PORTS.replace("/P1", "/1") + ULPS, 4, "'node1/1' is not a port name (write 'NODE/P1')"),
    "port 0": (PORTS.replace("p02", "p0") + ULPS, 4, "'vs1HCA-1/p0' is not a port name"),
    "no rules": ("qos-ulps\nend-qos-ulps\n" + ULPS, 1, "qos-ulps is empty (remove it)"),
    "a comment at the end without a line end": (ULPS + "# end", 7, "'#' is not possible in this place"),
    "a quotation mark": (FULL.replace('"a # sign"', "x").replace("SRP", '5" SRP').replace("fast", 'f"'), 16, "port-gr"),
    "unknown PKey": (ULPS.replace("ipoib:", "ipoib, pkey 5:"), 5, "there is no partition with the PKey 0x0005 (define"),
    "text after a name and a value": (FULL.replace("sl: 0\n", "sl: 0 x\n"), 13, "'x' is not possible in qos-level"),
}  # fmt: skip
# OpenSM reads SL 99 as another SL, and 08 as 0.
MISREAD = {
    "SL 99 of a level": (FULL.replace("sl: 0x3", "sl: 99"), 18, "SL 99 does not exist"),
    "08": (FULL.replace("sl: 0x3", "sl: 08"), 18, "'08' is not an octal number (leave out the first 0)"),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_policy_without_an_error_passes(tmp_path, name):
    path = tmp_path / "policy"
    path.write_text(GOOD[name])
    check_qos_policy(path)


@cases_in_one_test("name", [*BAD, *MISREAD])
def test_an_error_is_reported_with_its_line(tmp_path, name):
    text, line, problem = {**BAD, **MISREAD}[name]
    path = tmp_path / "policy"
    path.write_text(text, newline="")
    with pytest.raises(ParseError) as caught:
        check_qos_policy(path, set())
    assert str(caught.value).startswith(f"{path}:{line}: {problem}")


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            "qos-ulps\n  default : 99\n  frob : 1\n  sdp :\n  iser : 2\nend-qos-ulps\n"
            "qos-levels\n  qos-level\n    nam: a\n    sl: 16\n  end-qos-level\nend-qos-levels\n",
            [
                (2, "SL 99 does"),
                (3, "'frob : 1' is not"),
                (4, "the line ends"),
                (9, "'nam: a' is not"),
                (10, "SL 16 do"),
            ],
        ),
        # The check cannot go on after an error in the structure of the sections.
        ("qos-ulps\n  default : 99\nend-qos-levels\n  frob : 1\n", [(2, "SL 99 does"), (3, "end-qos-levels without")]),
    ],
)
def test_all_errors_in_statements_are_reported(tmp_path, text, problems):
    path = tmp_path / "policy"
    path.write_text(text)
    with pytest.raises(ParseErrors) as caught:
        check_qos_policy(path)
    found = [
        (error.line, error.problem[: len(problem)])
        for error, (_, problem) in zip(caught.value.errors, problems, strict=False)
    ]
    assert found == problems and len(caught.value.errors) == len(problems)


def test_unknown_partitions_give_no_verdict_on_pkeys(tmp_path):
    path = tmp_path / "policy"
    path.write_text(BAD["unknown PKey"][0])
    check_qos_policy(path)
    check_qos_policy(path, {5})


@pytest.mark.lab
def test_opensm_refuses_what_the_check_refuses(live, nets, tmp_path):
    policy = tmp_path / "policy"
    policy.write_text(ULPS)
    config = {"qos": True, "qos_policy_file": policy}
    refused = r"ERR AC0[34]: "
    with live(nets("ring", "4", cas=1), "ibnue-updn,no_fallback", config=config) as lab:
        opensm_agrees(lab, policy, GOOD, BAD, refused)
