"""Check every pair of mechanisms in a case: it runs and accounts for all packets, or the file is refused with a
reason.
"""

import re
from itertools import combinations

import pytest
from sim_accounts import account

from routing.errors import InputError
from routing.simulate import adaptive_cases
from routing.simulate.case_runners import run_case
from routing.simulate.mechanisms.registry import IN_CASES
from routing.simulate.scenario import read_scenario

MECHANISMS = {
    "congestion": "congestion = { threshold = 2 }",
    "qcn": "qcn = { sample = 2 }",
    "recn": "recn = { set_aside = 1, threshold = 2, spread = 1 }",
    "bubble": "bubble = { }",
    "port choice": "port_choice = { shortest = true }",
    "proven ports": "port_choice = { shortest = false }",
    "injection limit": "injection_limit = { packets = 3 }",
    "replies": "replies = { sl = 1, outstanding = 2, bytes = 256 }",
    "back-off": "replies = { sl = 1, forward_sl = 0, bytes = 64, input = 1, output = 1, outstanding = 3, backoff = 5 }",
    "rescues": "replies = { forward_sl = 0, rescue_sl = 1, bytes = 256, input = 1, output = 1, detect = 10 }",
    "retransmission": "retransmission = { timeout = 20 }",
}
OTHERS = {
    "HOQLife": "remedy = { hoq = 3 }",
    "lifetime": "remedy = { lifetime = 9 }",
    "Loop Breaker": 'remedy = { breaker = "loop", detect = 2 }',
    "Deadlock Breaker": 'remedy = { breaker = "deadlock", detect = 2 }',
    "pauses": "pauses = { xoff = 2, xon = 1 }",
    "FIFO": 'inputs = "fifo"',
    "speedup": "speedup = 0",
    "random": 'arbitration = "random"',
    "crossbar": 'arbitration = "crossbar"',
    "adaptive": 'adaptive = { schemes = ["bubble"] }',
}
WRITES = {
    "fault": 'fault = [{ cable = ["sw0", "sw1"], at = 20, until = 40 }]',
    "re-route": 'fault = [{ cable = ["sw0", "sw1"], at = 20, until = 40, reroute = [25, 50] }]',
    "watch": "watch = { every = 20 }",
    "window": "window = 2",
}
HOW = ("at once", "one by one", "rounds", "removed first", "drained", "single scheme", "double scheme")
CHANGES = {
    f"change {how}": f'change = {{ how = "{how}", at = 20, engine = "dnup", vls = 2{", every = 4" * (how != HOW[0])} }}'
    for how in HOW
}
ALONG_PATHS = {
    f"paths {how}": f'change = {{ how = "{how}", at = {at}{", every = 10" * (how != HOW[0])} }}'
    for how, at in (("at once", 20), ("one by one", 0), ("drained", 0), ("double scheme", 20))
}
RUN, CASE = "[timing]\npacket = 256\nbuffer = 6\n[run]\nuntil = 60\n", '[[case]]\nname = "c"\nexpect = { }\n'
TAIL = f"{RUN}sample = 20\n{CASE}"
ROUTED = 'title = "t"\n[fabric]\ngenerator = "ring:4,cas=1"\n[routing]\nengine = "lash"\nvls = 2\n'
PATTERN = f'{ROUTED}[traffic]\npattern = "uniform"\nprocess = "poisson"\nload = 0.8\n{TAIL}'
WORKLOAD = f'{ROUTED}{RUN}{CASE}what = "workload"\nworkload = {{ collective = "ring-allreduce", bytes = 2048 }}\n'
PATHS = """title = "t"
[fabric]
switches = ["sw0", "sw1", "c"]
cables = [["sw0", "sw1"], ["sw1", "c"], ["sw0", "c"]]
cas = { x = "sw0", y = "sw1", z = "c" }
[routing]
vls = 2
[[flow]]
path = ["x", "sw0", "sw1", "y"]
then = ["x", "sw0", "c", "sw1", "y"]
""" + "".join(
    f'[[flow]]\npath = ["{a}", "{near}", "{far}", "{b}"]\n'
    for a, near, far, b in (
        ("y", "sw1", "sw0", "x"), ("z", "c", "sw0", "x"), ("z", "c", "sw1", "y"), ("y", "sw1", "c", "z"),
        ("x", "sw0", "c", "z"),
    )
) + TAIL  # fmt: skip
FILES = {
    PATTERN: {**MECHANISMS, **OTHERS, **WRITES, **CHANGES},
    PATHS: {**MECHANISMS, **OTHERS, **WRITES, **ALONG_PATHS},
    WORKLOAD: {**MECHANISMS, **OTHERS},
}
REPLIES = "replies|back-off|rescues"
REFUSED = (
    ("watch", "change.*|paths.*|fault|re-route", "has a watch beside a change or a fault"),
    ("re-route", "change.*|paths.*", "has a change beside a re-route"),
    ("pauses", "Deadlock Breaker|bubble", "has pauses beside .*, which needs credits"),
    ("bubble", "change.*|paths.*|watch|re-route|Loop Breaker", "has bubble, which uses the first tables, beside"),
    ("bubble", "recn", "beside bubble, which does not protect set-aside VLs"),
    ("bubble", REPLIES, "beside bubble, which does not protect the VLs of replies"),
    (
        "port choice",
        "change.*|paths.*|watch|re-route|Loop Breaker",
        "has port_choice, which uses the first tables, beside",
    ),
    ("port choice", "recn|bubble", "has port_choice beside .* the paths of the tables"),
    (
        "adaptive",
        f"change.*|paths.*|watch|re-route|.* Breaker|congestion|qcn|recn|bubble|port choice|proven ports|{REPLIES}",
        "has adaptive switches beside|, which uses the first tables, beside|port_choice",
    ),
    ("adaptive", "pauses|FIFO|speedup", 'does nothing without "tables" among the schemes'),
    ("adaptive", "random", "has adaptive switches beside random arbitration"),
    ("adaptive", "crossbar", 'has adaptive switches beside arbitration "crossbar"'),
    ("proven ports", f"change.*|paths.*|watch|re-route|Loop Breaker|recn|bubble|{REPLIES}", "port_choice"),
)


def reason(text, *names):
    """Return the pattern of the error for a file with two parts, or None if the case has to run."""
    if text == WORKLOAD and any(re.fullmatch(REPLIES, name) for name in names):
        return "replies does nothing for workload"
    found = (
        why for one, other, why in REFUSED for a, b in (names, names[::-1])
        if re.fullmatch(one, a) and re.fullmatch(other, b)
    )  # fmt: skip
    return next(found, None)


def pairs(text):
    """Yield the names of every two parts of a case, except two values of one key."""
    parts = FILES[text]
    for one, other in combinations(parts, 2):
        if parts[one].split(" =")[0] == parts[other].split(" =")[0]:
            continue
        if text != PATHS or any(name in ALONG_PATHS for name in (one, other)):
            yield one, other


def test_every_mechanism_of_the_schema_is_among_the_pairs():
    assert {part.split(" =")[0] for part in MECHANISMS.values()} == {kind.table for kind in IN_CASES}


@pytest.fixture
def simulations(monkeypatch):
    """Return the list of the simulations that cases have run."""
    made = []
    for name in ("simulate", "simulate_adaptive"):
        original = getattr(adaptive_cases, name)

        def kept(*values, of=original, **named):
            made.append(of(*values, **named))
            return made[-1]

        monkeypatch.setattr(adaptive_cases, name, kept)
    return made


@pytest.mark.parametrize(
    ("text", "one"),
    [(text, one) for text in FILES for one in dict.fromkeys(first for first, _ in pairs(text))],
    ids=lambda value: value if "\n" not in value else ("pattern", "paths", "workload")[list(FILES).index(value)],
)
def test_two_mechanisms_run_together_or_are_refused(tmp_path, simulations, text, one):
    path = tmp_path / "mine.toml"
    for first, other in pairs(text):
        if first != one:
            continue
        path.write_text(f"{text}{FILES[text][one]}\n{FILES[text][other]}\n")
        simulations.clear()
        why = reason(text, one, other)
        if why:
            with pytest.raises(InputError, match=why) as caught:
                read_scenario(path)
            assert caught.value.remedy, (one, other)
            continue
        scenario = read_scenario(path)
        found = run_case(scenario, scenario.cases[0]).found
        assert len(simulations) == 1, (one, other)
        account(simulations[0])
        assert simulations[0].totals()["delivered"] > 0, (one, other, found)
