"""Check the comparison with BookSim2: ibnue's tables and delays, and the figures that are read from BookSim2's
output.
"""

from collections import Counter

import numpy as np
import pytest

from benchmarks.booksim import SIDE, equal_switching, main, run_booksim, run_ibnue, torus_network
from routing.deadlock.proof import prove


@pytest.fixture(scope="module")
def network():
    return torus_network()


def test_tables_are_free_of_loops_and_load_all_links_equally(network):
    assert prove(network.fabric, network.routing).certificate is not None
    load = Counter()
    for sender in range(0, network.fabric.endports, 2):
        for lid in network.fabric.endport_lid[1::2].tolist():
            for directions in range(4):
                load.update(vc // 2 for vc in network.vcs_of_path(sender, lid + directions))
    # Four paths from each of the 64 senders to the 64 receivers have 4 hops on average, over 256 channels.
    assert set(load.values()) == {4 * SIDE**2 * SIDE**2 * 4 // 256}
    assert len(load) == 256


@pytest.mark.parametrize("receiver", [0, 1, 27])
def test_the_lids_of_a_receiver_combine_the_vls_of_both_ends_equally(network, receiver):
    fabric, routing = network.fabric, network.routing
    first = int(fabric.endport_lid[1::2][receiver])
    lids = np.arange(first, first + 16)
    sls = routing.service_levels.from_sender(fabric.endport_switch[0], fabric.endport_lid[0])[lids]
    last_vls = routing.sl2vl[fabric.lids.switch[lids], 1, fabric.lids.port[lids], sls]
    pairs = Counter(zip((sls & 1).tolist(), last_vls.tolist(), strict=True))
    assert pairs == dict.fromkeys([(0, 0), (0, 1), (1, 0), (1, 1)], 4)


def test_latency_without_load_is_that_of_the_delays(network):
    # A head takes 3 cycles for each of 5 switches, because paths have 4 hops on average.  It reaches
    # the CA 2 cycles later.
    assert run_ibnue(network, 0.01, equal_switching(1)).latency == pytest.approx(17, rel=0.01)


def booksim(tmp_path, text):
    program = tmp_path / "booksim"
    program.write_text(f"#!/bin/sh\ngrep -q 'topology = torus' $1 || exit 1\n{text}\nexit 255\n")
    program.chmod(0o755)
    return program


def test_the_last_figures_of_the_output_are_read(tmp_path):
    lines = [
        "Packet latency average = 90.5",
        "Accepted packet rate average = 0.1",
        "Time taken is 5000 cycles",
        "Packet latency average = 17.25 (1 samples)",
        "Accepted packet rate average = 2e-1 (1 samples)",
    ]
    program = booksim(tmp_path, "".join(f"echo '{line}'\n" for line in lines))
    result = run_booksim(program, 0.2, 1)
    assert (result.latency, result.accepted) == (17.25, 0.2)
    assert result.speed > 0


def test_output_without_figures_is_reported(tmp_path):
    with pytest.raises(SystemExit, match=r"printed no 'Packet latency average'.*\n.*something else"):
        run_booksim(booksim(tmp_path, "echo something else"), 0.2, 1)


def test_a_missing_program_is_reported(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path / "none")])
    assert "is not a program: build BookSim2" in capsys.readouterr().err
