import os
import subprocess
import sys
from pathlib import Path

import pytest

import routing


@pytest.fixture
def python(tmp_path_factory):
    """Start another Python with the packages that this one has, far from the sources in the working directory."""
    found = os.pathsep.join([str(Path(routing.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])

    def start(*args, **environment):
        return subprocess.Popen(
            # A run in the background ignores Ctrl-C and one under nohup SIGHUP, and their children inherit that.
            ["env", "--default-signal=INT,HUP,TERM", sys.executable, *map(str, args)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=tmp_path_factory.mktemp("away"), env={**os.environ, "PYTHONPATH": found, **environment},
        )  # fmt: skip

    return start
