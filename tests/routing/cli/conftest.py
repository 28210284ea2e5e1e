import os
import subprocess
import sys
from pathlib import Path

import pytest

import routing


@pytest.fixture
def python(tmp_path_factory):
    """Return a function that starts Python with the present packages, in a folder far from the sources."""
    found = os.pathsep.join([str(Path(routing.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])

    def start(*args, **environment):
        return subprocess.Popen(
            # A process in the background ignores Ctrl-C, a process under nohup ignores SIGHUP, and their children
            # inherit this.
            ["env", "--default-signal=INT,HUP,TERM", sys.executable, *map(str, args)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=tmp_path_factory.mktemp("away"), env={**os.environ, "PYTHONPATH": found, **environment},
        )  # fmt: skip

    return start
