import pytest

from ibsim_fixtures.opensm_log import EventKind, LogReader, finished_sweep, fruitless_sweeps, last_sweep

BOX = """Nov 20 15:05:14 713051 [DF21A6C0] 0x04 -> state_mgr_sweep_hop_0:


******************************************************************
********************* INITIATING HEAVY SWEEP *********************
******************************************************************


"""
SWEEP = (
    BOX
    + """Nov 20 15:05:14 716938 [DF21A6C0] 0x04 -> ucast_mgr_route: building routing with 'updn' routing algorithm...
Nov 20 15:05:14 716940 [DF21A6C0] 0x01 -> ucast_mgr_route: updn: cannot build lid matrices
Nov 20 15:05:14 717000 [DF21A6C0] 0x04 -> ucast_mgr_route: building routing with 'minhop' routing algorithm...
Nov 20 15:05:14 717938 [DF21A6C0] 0x02 -> osm_ucast_mgr_process: minhop tables configured on all switches
Nov 20 15:05:14 723051 [DF21A6C0] 0x02 -> SUBNET UP
"""
)
LONE = "Nov 20 15:05:13 000001 [E2221740] 0x01 -> setup_routing_engines: Failed to setup routing engine 'no_fallback'\n"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "opensm.log"


def test_a_sweep(log):
    log.write_text(LONE + SWEEP)
    sweep = finished_sweep(LogReader(log).read(), 0)
    assert sweep.engine == "minhop"
    assert sweep.tried == ("updn", "minhop")
    assert sweep.routing_seconds == pytest.approx(0.001, abs=1e-6)
    assert sweep.seconds == pytest.approx(0.01, abs=1e-6)
    assert sweep.errors == ("ucast_mgr_route: updn: cannot build lid matrices",)
    assert sweep.position == len(LONE + SWEEP)
    assert last_sweep(LogReader(log).read()) == sweep


def test_no_fallback_is_no_error(log):
    log.write_text(LONE)
    assert [event.kind for event in LogReader(log).read()] == [EventKind.OTHER]


def test_any_cut_gives_the_same_events(log):
    text = LONE + SWEEP + BOX
    log.write_text(text)
    whole = [(event.kind, event.text) for event in LogReader(log).read()]
    assert [kind for kind, _ in whole].count(EventKind.HEAVY_SWEEP) == 2
    for cut in range(0, len(text), 7):
        log.write_text(text[:cut])
        reader = LogReader(log)
        reader.read()
        log.write_text(text)
        assert [(event.kind, event.text) for event in reader.read()] == whole, cut


def test_a_sweep_that_was_in_flight_does_not_count(log):
    log.write_text(SWEEP + SWEEP)
    events = LogReader(log).read()
    first = finished_sweep(events, 0)
    middle = len(SWEEP) // 2
    assert first.position == len(SWEEP)
    assert finished_sweep(events, middle).position == 2 * len(SWEEP)
    assert finished_sweep(events, middle, any_start=True).position == len(SWEEP)
    assert finished_sweep(events, len(SWEEP) + middle) is None
    assert last_sweep(events).position == 2 * len(SWEEP)
    assert last_sweep(events[1:3]) is None


def test_fruitless_sweeps_are_counted_from_the_mark(log):
    line = (
        "Nov 20 15:05:14 716942 [DF21A6C0] 0x01 -> osm_ucast_mgr_process: "
        "No routing engine able to successfully configure  switch tables on current fabric\n"
    )
    log.write_text(BOX + line + BOX + line)
    events = LogReader(log).read()
    assert fruitless_sweeps(events, 0) == 2
    assert fruitless_sweeps(events, len(BOX + line)) == 1
    assert finished_sweep(events, 0) is None


def test_a_log_that_is_not_there_yet(log):
    reader = LogReader(log)
    assert reader.read() == []
    log.write_text(LONE)
    assert len(reader.read()) == 1
