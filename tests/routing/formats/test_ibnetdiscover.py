"""Check the reader of ibnetdiscover's output, with real output and with faulty output."""

import contextlib
import random
import re
from pathlib import Path

import pytest
from in_one_test import cases_in_one_test

from routing.errors import IbnueError, InputWarning
from routing.formats.fabric_files import read_fabric
from routing.formats.ibnetdiscover import is_ibnetdiscover, parse_ibnetdiscover
from routing.rates import SPEED_OF

DATA = Path(__file__).parent / "data"
TEXT = (DATA / "mixed.ibnetdiscover").read_text()
SMALL = """
switchguid=0x7(7)
Switch\t4 "S-0000000000000007"\t\t# "a switch" base port 0 lid 3 lmc 0
[1]\t"H-0000000000000009"[1](19) \t\t# "a host" lid 4 4xNDR
[2]\t"S-0000000000000007"[3]\t\t# "a switch" lid 3 4xQDR
[3]\t"S-0000000000000007"[2]\t\t# "a switch" lid 3 4xFDR10

caguid=0x9
Ca\t2 "H-0000000000000009"\t\t# "a host"
[1](19) \t"S-0000000000000007"[1]\t\t# lid 4 lmc 2 "a switch" lid 3 4xNDR
"""


def read(text):
    return parse_ibnetdiscover(text, "x")


def test_a_small_fabric_entry_by_entry():
    fabric = read(SMALL)
    assert (fabric.switch_guid.tolist(), fabric.terminal_guid.tolist(), fabric.endport_guid.tolist()) == (
        [7],
        [9],
        [0x19],
    )
    assert (fabric.switch_name, fabric.terminal_name) == (("a switch",), ("a host",))
    assert (fabric.switch_lid[0], fabric.endport_lid[0], fabric.endport_lmc[0]) == (3, 4, 2)
    assert fabric.link_speed.tolist() == [SPEED_OF["NDR"], SPEED_OF["FDR10"]]


def test_real_output_and_the_net_file_it_came_from():
    found, made = read_fabric(DATA / "mixed.ibnetdiscover"), read_fabric(DATA / "mixed.net")
    assert found.switch_guid.tolist() == made.switch_guid.tolist()
    assert found.switch_name == made.switch_name
    seen = [row for row, name in enumerate(made.terminal_name) if name not in ("b0", "b1")]
    assert found.terminal_name == tuple(made.terminal_name[row] for row in seen)
    assert set(found.endport_guid.tolist()) < set(made.endport_guid.tolist())
    rates = sorted(zip(made.link_width.tolist(), made.link_speed.tolist(), strict=True))
    rates.remove((12, SPEED_OF["DDR"]))  # these are the two CAs that are cabled to each other only
    assert sorted(zip(found.link_width.tolist(), found.link_speed.tolist(), strict=True)) == rates
    assert found.switch_lid.tolist() == [2, 9, 3, 5]


def test_full_and_grouped_output_with_lmc():
    fabric = read_fabric(DATA / "mixed_lmc2.ibnetdiscover")
    assert fabric.endport_lmc.tolist() == [2] * 6
    assert fabric.endport_lid.tolist() == [12, 4, 20, 24, 28, 36]
    plain = read_fabric(DATA / "mixed.ibnetdiscover")
    assert fabric.link_device.tolist() == plain.link_device.tolist()
    assert fabric.link_speed.tolist() == plain.link_speed.tolist()


def test_grouped_output_repeats_records():
    grouped = read_fabric(DATA / "chassis_grouped.ibnetdiscover")
    plain = read_fabric(DATA / "chassis.ibnetdiscover")
    made = read_fabric(DATA / "chassis.net")
    assert grouped.digest == plain.digest
    assert grouped.link_device.tolist() == made.link_device.tolist()
    assert grouped.switch_name == made.switch_name


def test_a_record_may_be_repeated_in_grouped_output_only():
    again = SMALL + SMALL.split("\ncaguid", maxsplit=1)[0]
    with pytest.raises(IbnueError, match="belongs to 'a switch' already"):
        read(again)
    assert read("Chassis 1\n" + again).digest == read(SMALL).digest
    with pytest.raises(IbnueError, match="belongs to 'a switch' already"):
        read("Chassis 1\n" + SMALL + SMALL.replace("Switch\t4", "Switch\t5"))


def test_ports_without_lid_get_one():
    text = re.sub(r"lid \d+", "lid 0", SMALL).replace("lmc 2", "lmc 0")
    fabric = parse_ibnetdiscover(text, "x", lmc=1)
    assert (fabric.switch_lid[0], fabric.endport_lid[0], fabric.endport_lmc[0]) == (1, 2, 1)


def test_external_ports_and_chassis_lines_are_passed_over():
    text = "Chassis 1 (guid 0x5)\n" + SMALL.replace('[2]\t"S', '[2][ext 17]\t"S').replace('007"[3]', '007"[3][ext 18]')
    assert read(text).digest == read(SMALL).digest


@cases_in_one_test("cut", range(TEXT.count("\n") - 1))
def test_a_file_that_was_cut_is_never_half_a_fabric(cut):
    with pytest.raises(IbnueError):
        read("\n".join(TEXT.split("\n")[:cut]))


@cases_in_one_test("cut", range(1, len(SMALL) - 2, 3))
def test_a_line_that_was_cut(cut):
    with pytest.raises(IbnueError):
        read(SMALL[:cut])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('[3]\t"S-0000000000000007"[2]', '[2]\t"S-0000000000000007"[1]', "x:6: port 2 of 0x7 is used twice"),
        ("lid 3 4xNDR", "lid 3 4xHDR", r"x:4: the link runs at 4x 106\.25 Gb/s here and at 4x 53\.125 Gb/s in line 10"),
        ("lid 3 4xNDR", "lid 3 4xNEW", "x:10: unknown rate '4xNEW'"),
        ('0007"[1]\t\t#', '0007"[4]\t\t#', "x:4: port 1 of 0x7 is cabled .*, but that is cabled to port 4"),
        ("lid 4 lmc 2", "lid 49152 lmc 0", "x:10: LID 0xc000 of 'a host' is not a unicast LID"),
        ("lid 4 lmc 2", "lid 3 lmc 0", "x:10: LID 3 belongs to 'a switch' and to 'a host'"),
        ("lid 4 lmc 2", "lid 6 lmc 2", "x:10: base LID 0x6 of 'a host' is not a multiple"),
        ("\n[1](19)", "\n[1](7)", "x:10: port GUID 0x7 of 'a host' is the GUID of switch 'a switch'"),
        ("Ca\t2", "Ca\t0", "x:9: 'a host' has 0 ports"),
        ("Ca\t2", "Cb\t2", "x:9: .* is not a line that ibnetdiscover prints"),
        ("H-0000000000000009\"\t", "H-0000000000000007\"\t", "x:9: GUID 0x7 of 'a host' belongs to 'a switch'"),
        ("\n[1](19)", "\n[2](19)", "x:4: port 1 of 0x7 is cabled to port 1 of 0x9, which does not state this cable"),
        ("caguid=0x9\n", "[1]\n", "x:8: .* is not a line that ibnetdiscover prints"),
    ],
)  # fmt: skip
def test_wrong_files_are_named_with_their_line(old, new, message):
    assert old in SMALL
    with pytest.raises(IbnueError, match=message) as caught:
        read(SMALL.replace(old, new, 1))
    assert "\n" not in str(caught.value)


def test_very_long_lines_do_not_take_long():
    with pytest.raises(IbnueError):
        read(SMALL + "[4]\t" + '"' * 2_000_000)


def warned(text):
    """Return a fabric, and the warnings about its file."""
    with pytest.warns(InputWarning) as caught:
        fabric = read(text)
    return fabric, [str(warning.message) for warning in caught]


def test_ports_that_no_subnet_manager_has_reached():
    text = SMALL.replace("lid 4 lmc 2", "lid 65535 lmc 7").replace("lid 4 4xNDR", "lid 65535 4xNDR")
    fabric, output = warned(text)
    assert output == ["x: 1 port has LID 65535: no subnet manager has configured them; they count as without a LID"]
    assert (fabric.switch_lid[0], fabric.endport_lid[0], fabric.endport_lmc[0]) == (3, 1, 0)
    fabric, output = warned(re.sub(r"lid \d+", "lid 65535", SMALL))
    assert output == ["x: 2 ports have LID 65535: no subnet manager has configured them; they count as without a LID"]
    assert (fabric.switch_lid[0], fabric.endport_lid[0]) == (1, 2)


def test_rates_that_the_program_did_not_know():
    fabric = read(SMALL.replace("lid 3 4xNDR", "lid 3 4x???"))  # the other end of the link states the rate
    assert fabric.link_speed.tolist() == [SPEED_OF["NDR"], SPEED_OF["FDR10"]]
    for shown in ("4x???", "??x???", "?xNDR", "???"):
        fabric, output = warned(SMALL.replace("4xNDR", shown).replace("4xFDR10", "4xQDR"))
        if shown == "?xNDR":
            assert fabric.link_speed.tolist() == [SPEED_OF["NDR"], SPEED_OF["QDR"]]
        else:
            assert fabric.link_speed.tolist() == [SPEED_OF["QDR"]] * 2
        assert fabric.link_width.tolist() == [4, 4]
        assert output == ["x: 1 link has an unknown rate (?); ibnue assumes 4xQDR, the most frequent one"]
    fabric, output = warned(re.sub(r"4x[A-Z0-9]+", "4x???", SMALL))
    assert fabric.link_speed.tolist() == [SPEED_OF["SDR"]] * 2
    assert output == ["x: 2 links have an unknown rate (?); ibnue assumes 4xSDR, because no port states a rate"]


@pytest.mark.parametrize("blanks", [lambda text: text.replace("\t", " "), str.expandtabs])
@pytest.mark.parametrize("name", ["mixed", "mixed_lmc2", "chassis", "chassis_grouped"])
def test_tabs_that_became_blanks(blanks, name, tmp_path):
    text = (DATA / f"{name}.ibnetdiscover").read_text()
    path = tmp_path / "blanks"
    path.write_text(blanks(text) + "  ")
    assert read_fabric(path).digest == read_fabric(DATA / f"{name}.ibnetdiscover").digest


@pytest.mark.filterwarnings("ignore::routing.errors.InputWarning")
def test_mutated_files_are_read_or_refused():
    rng = random.Random(13)
    bits = ["65535", "?", "4x???", " ", "\t", "lid", '"', "[", "\n", "lmc 9", "??", "S-", "0"]
    for _ in range(1500):
        text = rng.choice([TEXT, SMALL, SMALL.expandtabs()])
        for _ in range(rng.randint(1, 6)):
            begin = rng.randrange(len(text))
            text = text[:begin] + rng.choice(bits) + text[begin + rng.randint(0, 6) :]
        with contextlib.suppress(IbnueError):
            read(text)


def test_a_terminal_log():
    """PuTTY removes tabs and doubles carriage returns.  A log of an administrator also has warnings of the program."""
    log = "=~=~=~=~= PuTTY log =~=~=~=\nibwarn: [7] sim_connect: attached\n" + TEXT.replace("\t", "")
    assert is_ibnetdiscover(log)
    for prompt in ("", "\rhost [ mgmt-ha-active ] (config) # ", "[root@host ~]# ", "root@host:~$ ibnetdiscover > x\n"):
        assert read(log + prompt).digest == read(TEXT).digest


def test_messages_of_the_discovery(tmp_path):
    """The options -s and -d print each step.  A device that does not answer is an error message on a line."""
    steps = 'DR path slid 0; dlid 0; 0,1,2 -> new Switch {000b8cffff004939} portnum 0 lid 0-0 ""\n'
    assert read(steps + TEXT).digest == read(TEXT).digest
    silent = "src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1,1,31 Attr 0x11:0) bad status 110; Timed out\n"
    (tmp_path / "x").write_text(silent + TEXT)
    with pytest.warns(InputWarning, match="requests of the discovery have no answer"):
        assert read_fabric(tmp_path / "x").digest == read(TEXT).digest
