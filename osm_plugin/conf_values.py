"""Find values in opensm.conf that OpenSM ignores or changes, or with which OpenSM fails."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from routing.formats.text import c_number

UNSET = "(null)"
"""Text that OpenSM writes into an opensm.conf in place of the value of an option that is not set."""
WORDS = {"console": ("off", "local", "loopback", "socket"), "part_enforce": ("both", "in", "out", "off")}
"""Options whose values are words, with the words that OpenSM knows."""
TEXTS = re.compile(r"log_prefix|event_plugin_\w+|\w+_(file|dir|name)")
"""Pattern of the names of options whose values may be any text."""
_NUMBERS: Mapping[str, Sequence[tuple[int, int]]] = {
    "fdr10": [(0, 2)],
    "m_key_protection_level": [(0, 3)],
    r"lmc|\w*vl_stall_count": [(0, 7)],
    "force_link_speed": [(0, 7), (15, 15)],
    "force_link_speed_ext": [(0, 7), (30, 31)],
    r"sm_sl|sm_priority|(local_phy|overrun)_errors_threshold|qos_(\w+_)?max_vls": [(0, 15)],
    "subnet_timeout|packet_life_time|(leaf_)?head_of_queue_lifetime": [(0, 31)],
    "force_link_width": [(0, 31), (255, 255)],
    r"qos_(\w+_)?high_limit": [(-1, 255)],
    "log_flags|sm_assigned_guid|lash_start_vl|nue_max_num_vls": [(0, 255)],
    "m_key_lease_period|max_reverse_hops|console_port": [(0, 65_535)],
    "perfmgr_sweep_time_s": [(1, 65_535)],
    "max_wire_smps2?": [(0, (1 << 31) - 1)],
    "sweep_interval|polling_retry_number|transaction_retries|long_transaction_timeout": [(0, (1 << 32) - 1)],
    "max_(smps|msg_fifo)_timeout|log_max_size|perfmgr_xmit_wait_threshold": [(0, (1 << 32) - 1)],
    "transaction_timeout|sminfo_polling_timeout|perfmgr_max_outstanding_queries": [(1, (1 << 32) - 1)],
    "guid|subnet_prefix|m_key|sm_key|sa_key": [(0, (1 << 64) - 1)],
}
"""Ranges of valid numbers for options whose values are numbers, by a pattern of the names of the options.  A range is
given by its smallest and its largest number.
"""
_EFFECTS = {
    "sm_sl": "which is not an SL",
    "transaction_timeout": "with which OpenSM does not start",
    "sminfo_polling_timeout": "so a standby OpenSM queries the master without a pause",
    r"\w*vl_stall_count|subnet_timeout|\w+_life_?time|\w+_errors_threshold": "of which OpenSM uses only the low bits",
}
"""Effect of an invalid value in OpenSM, by a pattern of the names of options, if the value is a number up to 255.
OpenSM ignores larger numbers and texts, and all invalid values of other options.
"""


def effect_of_wrong_value(name: str, value: str) -> str:
    """Return a text if OpenSM does not use the value of an option as it is, or fails with it; "" otherwise.

    The text has the value, its effect, and the valid values.
    """
    number = c_number(value)
    valid = next((ranges for names, ranges in _NUMBERS.items() if re.fullmatch(names, name)), [])
    wanted = " or ".join(f"{max(0, low)} to {high}" if low < high else f"{high}" for low, high in valid)
    effect = "with which OpenSM crashes" if value == UNSET else "which OpenSM ignores"
    if number is not None and 0 <= number <= 255:
        effect = next((text for names, text in _EFFECTS.items() if re.fullmatch(names, name)), effect)
    if name in WORDS:
        right, wanted = value in WORDS[name], ", ".join(WORDS[name])
    else:
        right = not valid or (number is not None and any(low <= number <= high for low, high in valid))
    return "" if right else f"{name} is {value}, {effect} (use {wanted})"
