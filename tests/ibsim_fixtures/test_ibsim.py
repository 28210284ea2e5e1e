import time
from pathlib import Path

import pytest
from lab_nets import net_text, ring

from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.ibsim_text import Client, Device, PortState
from ibsim_fixtures.processes import LabError, find_program, find_umad2sim, missing_packages
from routing.errors import EnvironmentProblem, InputError, OptionError

lab_test = pytest.mark.lab


@lab_test
def test_devices_and_ports_are_known(ring4):
    with Ibsim(ring4) as ibsim:
        assert ibsim.device("sw1") == Device("sw1", "sw1", "Switch", 0x200001, 12)
        assert ibsim.device(0x200001) == ibsim.device("0x200001") == ibsim.device("sw1")
        assert [d.id for d in ibsim.devices] == [f"sw{i}" for i in range(4)] + [f"h{i}" for i in range(4)]
        ports = ibsim.ports()
        assert len(ports) == 4 * 12 + 4
        assert ports[0] == PortState("sw0", 1, ("h0", 1), "Init", "LinkUp")
        assert ports[4] == PortState("sw0", 5, None, "Down", "Polling")
        with pytest.raises(OptionError, match="no device 'sw9'"):
            ibsim.unlink("sw9")


@lab_test
def test_descriptions_find_devices(tmp_path):
    path = tmp_path / "found.net"
    path.write_text(
        'switchguid=0x7001(7001)\nSwitch\t4 "S-0000000000007001"\t\t# "leaf 1" base port 0 lid 2 lmc 0\n'
        '[1]\t"H-0000000000007002"[1](7003) \t\t# "host 1 HCA-1" lid 1 4xQDR\n\n'
        'caguid=0x7002\nCa\t1 "H-0000000000007002"\t\t# "host 1 HCA-1"\n'
        '[1](7003) \t"S-0000000000007001"[1]\t\t# lid 1 lmc 0 "leaf 1" lid 2 4xQDR\n'
    )
    with Ibsim(path) as ibsim:
        assert ibsim.device("leaf 1").guid == 0x7001
        ibsim.unlink("leaf 1", 1)
        assert all(port.peer is None for port in ibsim.ports())
        ibsim.relink("host 1 HCA-1")
        assert ibsim.ports("leaf 1")[0].peer == ("H-0000000000007002", 1)


def _cables(ibsim):
    return {(port.device, port.port, *port.peer) for port in ibsim.ports() if port.peer}


@lab_test
def test_links_switches_and_cas_come_and_go(ring4):
    with Ibsim(ring4) as ibsim:
        whole = _cables(ibsim)
        for device, port, cables in (("sw0", 2, 2), ("sw0", None, 6), ("h3", None, 2), ("h3", 1, 2)):
            ibsim.unlink(device, port)
            left = _cables(ibsim)
            assert left < whole
            assert len(whole - left) == cables
            assert all(device in (near, far) for near, _, far, _ in whole - left)
            ibsim.relink(device, port)
            assert _cables(ibsim) == whole
        ibsim.clear("sw0", 2)
        ibsim.link("sw0", 12, "sw2", 12)
        assert ("sw2", 12, "sw0", 12) in _cables(ibsim)
        with pytest.raises(OptionError, match="is not linked"):
            ibsim.unlink("sw0", 9)
        with pytest.raises(OptionError, match=r"bad port|can't unlink"):
            ibsim.unlink("sw0", 77)


@lab_test
def test_errors_lose_packets_at_one_port(ring4):
    with Ibsim(ring4) as ibsim:
        ibsim.error("sw2", 100)
        assert "sw2" not in ibsim.run("ibnetdiscover", "-t", 200)
        ibsim.error("sw2", 0)
        assert '"sw2"' in ibsim.run("ibnetdiscover")
        with pytest.raises(OptionError, match="0 to 100"):
            ibsim.error("sw2", 101)


@lab_test
def test_wait_stops_the_simulator(ring4):
    with Ibsim(ring4) as ibsim:
        before = time.monotonic()
        ibsim.wait(1)
        assert time.monotonic() - before >= 1
        ibsim.timeout = 0.5
        with pytest.raises(LabError, match=r"did not answer 'wait 9' within 0\.5 s"):
            ibsim.command("wait 9")
        with pytest.raises(LabError, match=r"was killed by signal (15|9)"):
            ibsim.dump()


@lab_test
def test_programs_run_where_they_are_put(ring4):
    with Ibsim(ring4) as ibsim:
        assert ibsim.sm_host == "h0"
        assert f"0x{ibsim.device('h1').guid:016x}" in ibsim.run("smpquery", "-D", "nodeinfo", 0, host="h1")
        with pytest.raises(LabError, match="smpquery nodeinfo 77 ended with exit status"):
            ibsim.run("smpquery", "nodeinfo", 77)
        assert ibsim.clients() == []


@lab_test
def test_a_client_that_ibsim_has_disconnected_meanwhile_is_no_error(ring4, monkeypatch):
    with Ibsim(ring4) as ibsim:
        ended = Client(pid=0, device="h0", is_sm=True)
        monkeypatch.setattr("ibsim_fixtures.ibsim.clients_of", lambda _: [(0, ended)])
        monkeypatch.setattr("ibsim_fixtures.ibsim.is_alive", lambda _: False)
        assert ibsim.clients() == []


@lab_test
def test_a_switch_may_be_the_host(tmp_path):
    path = tmp_path / "switches.net"
    path.write_text('Switch 4 "a"\n[1] "b"[1]\n\nSwitch 4 "b"\n[1] "a"[1]\n')
    with Ibsim(path) as ibsim:
        assert ibsim.sm_host == "a"
    with Ibsim(path, sm_host="b") as ibsim:
        assert ibsim.sm_host == "b"


@lab_test
def test_sizes_follow_the_fabric(net):
    # ibsim has room by default for 256 switches, 2048 devices and 13312 ports.
    with Ibsim(net(800, ring(800), 2, ports=20)) as ibsim:
        assert len(ibsim.devices) == 2400
        assert len(ibsim.ports()) == 800 * 20 + 1600


@lab_test
def test_includes_are_relative_to_the_file(tmp_path):
    text = net_text(4, ring(4))
    (tmp_path / "switches.net").write_text(text[: text.index("Hca")])
    path = tmp_path / "all.net"
    path.write_text('include "switches.net"\n' + text[text.index("Hca") :])
    with Ibsim(path) as ibsim:
        assert len(ibsim.devices) == 8


@lab_test
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('Switch 4 "a"\n[1] "b"[1]\n', 'can\'t find remote node "b"'),
        ('Switch 4 "a"\n\nSwitch 4 "a"\n', r"bad\.net:\d: .*already exists"),
        ('Switch 4 "a"\n[9] "a"[1]\n', "bad port num 9"),
        ('Switch 4 "a"\n[1] "b"[1]\n\nSwitch 4 "b"\n[2] "a"[1]\n', "is not connected to"),
        ("nothing here\n", "not a fabric"),
    ],
)
def test_files_that_ibsim_refuses_are_bad_input(tmp_path, text, problem):
    path = tmp_path / "bad.net"
    path.write_text(text)
    with pytest.raises(InputError, match=problem), Ibsim(path):
        pass


@lab_test
def test_a_missing_file_is_bad_input(tmp_path):
    with pytest.raises(InputError, match=r"none\.net: cannot be read"), Ibsim(tmp_path / "none.net"):
        pass


@lab_test
def test_console_refuses_what_it_does_not_know(ring4):
    with Ibsim(ring4) as ibsim:
        with pytest.raises(OptionError, match="does not know"):
            ibsim.command("bogus")
        with pytest.raises(OptionError, match="one line"):
            ibsim.command("dump\nquit")
        assert "dumped 8 nodes" in ibsim.dump()


@lab_test
def test_the_death_of_ibsim_is_noticed(ring4):
    with Ibsim(ring4) as ibsim, pytest.raises(LabError, match="ended with exit status 0"):
        ibsim.command("quit")


@lab_test
def test_nothing_is_left(ring4):
    with pytest.raises(ZeroDivisionError), Ibsim(ring4) as ibsim:
        folder = ibsim.folder
        ibsim.run("smpquery", "-D", "nodeinfo", 0)
        assert [path.name for path in folder.iterdir()] == ["ibsim.err"]
        raise ZeroDivisionError
    assert not folder.exists()
    with pytest.raises(LabError, match="not running"):
        ibsim.dump()


def test_missing_programs_name_their_package(monkeypatch, tmp_path):
    with pytest.raises(EnvironmentProblem, match="no-such-thing is not installed"):
        find_program("no-such-thing")
    monkeypatch.setattr("ibsim_fixtures.processes.shutil.which", lambda *_, **__: None)
    monkeypatch.setattr("ibsim_fixtures.processes._UMAD2SIM_PLACES", (str(tmp_path),))
    monkeypatch.delenv("IBNUE_UMAD2SIM", raising=False)
    with pytest.raises(EnvironmentProblem, match="apt install ibsim-utils"):
        find_program("ibsim")
    with pytest.raises(EnvironmentProblem, match="apt install libumad2sim0"):
        find_umad2sim()
    assert missing_packages() == ["ibsim-utils", "infiniband-diags", "libumad2sim0", "opensm"]


@lab_test
def test_a_speed_that_ibsim_cannot_read_is_an_error_with_a_remedy(tmp_path):
    rack = Path(__file__).parents[2] / "docs" / "examples" / "rack" / "ibnetdiscover.txt"
    path = tmp_path / "fast.txt"
    path.write_text(rack.read_text().replace("4xSDR", "4xNDR"))
    with (
        pytest.raises(InputError, match=r"ibnue fabric FILE -o NEW\.net writes a file that ibsim can read"),
        Ibsim(path),
    ):
        pass
