"""A slow reference for the packet simulator, in plain Python.  In each tick with an event, it examines every channel.

It takes the arguments of the kernel, and must reach equal counters at every stop.
"""

from slow_simulate.faults import NEVER
from slow_simulate.machine import Slow

__all__ = ["NEVER", "Slow"]
