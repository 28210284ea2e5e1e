"""Read Prometheus' text format, and reject every text that does not follow the format strictly."""

import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)")


def parsed(text):
    """Return the value of each sample by name and labels.  A line that does not follow the format fails an
    assertion.
    """
    samples, kinds, helped = {}, {}, set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, meaning = line.removeprefix("# HELP ").split(" ", 1)
            assert re.fullmatch(NAME, name) and meaning and name not in helped
            helped.add(name)
        elif line.startswith("# TYPE "):
            name, kind = line.removeprefix("# TYPE ").split(" ")
            assert kind in ("gauge", "counter") and name in helped and name not in kinds
            assert (kind == "counter") == name.endswith("_total")
            kinds[name] = kind
        else:
            found = SAMPLE.fullmatch(line)
            assert found, line
            assert list(kinds)[-1] == found[1], "samples stand below their TYPE"
            key = found[1], found[2] or ""
            assert key not in samples
            samples[key] = float(found[3])
    return samples
