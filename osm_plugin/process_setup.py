"""Prepare a worker process that OpenSM has started: its limits, its signals, and its end together with OpenSM."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
MOST_FILES = 256


def limit_resources() -> None:
    """Disable core files, which would contain the fabric, and limit the number of open files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = MOST_FILES if most == resource.RLIM_INFINITY else min(MOST_FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))


def exit_with_parent(parent: int) -> None:
    """Make the kernel kill this process when the OpenSM thread that started it ends.

    This thread of OpenSM ends only when OpenSM ends.

    ``parent`` is the process id of OpenSM.  If OpenSM has ended already, this process exits.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("OpenSM has ended")


def reset_signals() -> None:
    """Reset the signal mask and the signal handlers, which this process has inherited from OpenSM."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
