"""Recognise a file that a user gives in the wrong place, such as a list of nodes instead of a fabric.

The error message can then state the kind of the file and a remedy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_AS_TABLES = "name it as TABLES, after the fabric"
_DISCOVER = "run `ibnetdiscover`"
_AS_FABRIC = "name it as FABRIC, before the tables"
_LFTS = "OpenSM with -D 0x43, `dump_fts` or `saquery LFTR` print the tables"
HEAD = 1 << 16
"""Number of characters at the beginning of a text by which its kind is recognised."""


@dataclass(frozen=True)
class KnownKind:
    """A kind of file.

    Attributes
    ----------
    pattern
        Pattern that occurs at the beginning of a line, and only in files of this kind.
    name
        Description of the file, for error messages.
    as_fabric
        Remedy if a user gives the file in place of a fabric.  None if the file is a fabric.
    as_tables
        Remedy if a user gives the file in place of tables.  None if the file has tables.
    """

    pattern: re.Pattern[str]
    name: str
    as_fabric: str | None
    as_tables: str | None


def _kind(pattern: str, name: str, as_fabric: str | None = _DISCOVER, as_tables: str | None = _LFTS) -> KnownKind:
    return KnownKind(re.compile(rf"^(?:{pattern})", re.MULTILINE), name, as_fabric, as_tables)


_GUID = "0x[0-9a-fA-F]{1,16}"
_KINDS = (
    _kind(
        rf"(?:Ca|Switch|Router)[ \t]*: {_GUID} ports \d+ devid ", "`ibnetdiscover -l`, a list of nodes without links"
    ),
    _kind(rf"(?:Ca|Switch)[ \t]*: {_GUID} ports \d+ ", "`ibhosts` or `ibswitches`, a list of nodes without links"),
    _kind(r"\+\\x83\\xe7\\x8f", "a cache of `ibnetdiscover`", "run `ibnetdiscover --load-cache` on it"),
    _kind(r"\s*Unicast lids \[", "a dump of forwarding tables", _AS_TABLES, None),
    _kind(rf"\s*(?:osm_ucast_mgr_)?dump_ucast_routes: Switch {_GUID}", "a dump of forwarding tables", _AS_TABLES, None),
    _kind("LFT Record dump:", "`saquery LFTR`, a dump of forwarding tables", _AS_TABLES, None),
    _kind(r"Multicast mlids \[", "`ibroute -M`, multicast tables"),
    _kind("PathRecord dump:", "`saquery PR`, path records", "name it with --sl", "name it with --sl"),
    _kind(r"\w{2,20} ?(?:Record )?dump:", "output of `saquery` without the whole topology"),
    _kind(rf"Switch: guid {_GUID}", "opensm-lid-matrix.dump, hop counts without links"),
    _kind("#in out :", "opensm-sl2vl.dump", "name it with --sl2vl", "name it with --sl2vl"),
    _kind("# LID  : SL : MTU", "opensm-path-records.dump", "name it with --sl", "name it with --sl"),
    _kind(rf"{_GUID} 0x[0-9a-fA-F]{{1,4}} 0x[0-9a-fA-F]{{1,4}}\s*$", "OpenSM's guid2lid", "name it with --guid2lid"),
    _kind(rf"{_GUID}:\d+ {_GUID}:\d+\s*$", "OpenSM's file neighbors, which lacks the devices"),
    _kind(rf'{_GUID}[ \t]+"', "a node name map", "name it with --node-name-map"),
    _kind(rf"{_GUID}\s*$", "a list of GUIDs"),
    _kind(r"PK\x03\x04(?s:.{,40}?)format\.npy", "a bundle of ibnue", _AS_TABLES, None),
    _kind(r"PK\x03\x04", "a zip file", "unpack it", "unpack it"),
    _kind(r"[^\n]*: IB# : Sta ", "ibdiagnet2.net_dump", "use ibdiagnet2.db_csv", "use ibdiagnet2.fdbs"),
    _kind("TOPSYSTEM ", "an IBNL file, the inner links of one type of system"),
    _kind("SwitchName=", "topology.conf of Slurm, which has no ports"),
    _kind("(?:vendid=|switchguid=|caguid=)", "a fabric", None, _AS_FABRIC),
    _kind(r"\{ \S+ Ports:", "a fabric", None, _AS_FABRIC),
    _kind("START_NODES", "ibdiagnet2.db_csv, a fabric", None, "the tables are in ibdiagnet2.fdbs"),
)
"""Kinds of files, in the order in which a text is compared with them."""


def kind_of(text: str) -> KnownKind | None:
    """Return the kind of file to which a text belongs, judged by its first :data:`HEAD` characters.  None if the kind
    is unknown.
    """
    return next((kind for kind in _KINDS if kind.pattern.search(text[:HEAD])), None)
