"""Check the comparison with BookSim2: ibnue's tables and delays, and the figures that are read from BookSim2's
output.
"""

from collections import Counter

import numpy as np
import pytest

from benchmarks.booksim import SIDE, main, run_booksim, run_ibnue, torus_network
from routing.deadlock.proof import prove


@pytest.fixture(scope="module")
def network():
    return torus_network()


def test_tables_are_free_of_loops_and_load_all_links_equally(network):
    assert prove(network.fabric, network.routing).certificate is not None
    load = Counter()
    for sender in range(0, network.fabric.endports, 2):
        for lid in network.fabric.endport_lid[1::2].tolist():
            load.update(vc // 2 for vc in network.vcs_of_path(sender, lid))
    # Paths from each of the 64 senders to the 64 receivers have 4 hops on average, over 256 channels.
    assert set(load.values()) == {SIDE**2 * SIDE**2 * 4 // 256}
    assert len(load) == 256


def test_each_ca_uses_both_vls_equally(network):
    fabric, levels = network.fabric, network.routing.service_levels
    senders, receivers = range(0, fabric.endports, 2), fabric.endport_lid[1::2]
    end_vl = np.array(
        [levels.from_sender(fabric.endport_switch[s], fabric.endport_lid[s])[receivers] & 1 for s in senders]
    )
    assert (end_vl.sum(axis=0) == SIDE**2 // 2).all() and (end_vl.sum(axis=1) == SIDE**2 // 2).all()


def test_latency_without_load_is_that_of_the_delays(network):
    # A head takes 3 cycles for each of 5 switches, because paths have 4 hops on average.  It reaches
    # the CA 2 cycles later.
    assert run_ibnue(network, 0.01, 1).latency == pytest.approx(17, rel=0.01)


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
