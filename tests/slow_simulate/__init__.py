"""The packet simulator once more: plain Python, every channel looked at in every tick in which anything happens.

It takes what the kernel takes, and has to come to the same counters at every stop.
"""

from slow_simulate.faults import NEVER
from slow_simulate.machine import Slow

__all__ = ["NEVER", "Slow"]
