"""Check that the Prometheus rules name metrics that the plugin writes, and that the drop-in calls an existing
command.
"""

import re
from pathlib import Path

from osm_plugin import status
from routing.cli.plugin import plugin

FOLDER = Path(__file__).parents[2] / "docs" / "examples" / "monitoring"


def test_rules_are_about_metrics_of_the_plugin():
    rules = (FOLDER / "ibnue-alerts.yml").read_text()
    written = set(re.findall(r'"([a-z_]+)"', Path(status.__file__).read_text()))
    expressions = re.findall(r"^        expr: (.*)$", rules, re.MULTILINE)
    assert len(expressions) == rules.count("- alert: ")
    for expression in expressions:
        names = re.findall(r"ibnue_(\w+)", expression)
        assert names and set(names) <= written, expression


def test_the_drop_in_calls_a_command_that_exists():
    called = re.search(r"ibnue plugin (\w+)$", (FOLDER / "opensm-ibnue.conf").read_text(), re.MULTILINE)
    assert called is not None and called[1] in plugin.commands
