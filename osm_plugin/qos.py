"""Combine the SLs of the administrator's QoS policy with the layers (VLs) of the engine's tables.

OpenSM chooses an SL for every path record: by QoS level, by partition, or as the request demands.  OpenSM passes this
SL to the engine as a hint.  Tables with one layer are safe on any SL, so each path keeps the SL of the hint.

With more layers, every traffic class (an SL of the policy) gets one SL for each layer.  No two pairs of a class and a
layer share an SL.  The SL of a path thus states two things: the class of the path, and the layer in which the path is
proven.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from osm_plugin.opensm_conf import OpensmConf
from routing.cdg.certificate import Certificate, check_certificate
from routing.cdg.trace import uniform_sl2vl
from routing.deadlock.proof import Proof
from routing.errors import RoutingError
from routing.fabric import Fabric
from routing.numerals import count_noun, parse_decimal
from routing.tables import DATA_VLS, Routing

CLASSES = np.dtype([("sl_for", "u1", 256), ("vl_like", "u1", 16)])
"""Record type of the SLs and VLs of the QoS classes (``ibnue_classes`` in layout.h)."""
SLS = 16
UNUSED_VL = 255
_USUAL_SL2VL = (*range(15), 7)


@dataclass(frozen=True)
class QosPolicy:
    """The part of the administrator's QoS policy on which tables depend.

    Attributes
    ----------
    sls
        SLs that OpenSM assigns by QoS level, by partition and by ``sm_sl``, in ascending order.  Without a policy, the
        tuple is empty, and all traffic uses SL 0.
    sl2vl
        VL of each of the 16 SLs, from the option ``qos_swe_sl2vl`` or ``qos_sl2vl``.
    """

    sls: tuple[int, ...] = ()
    sl2vl: tuple[int, ...] = _USUAL_SL2VL

    @classmethod
    def of(cls, conf: OpensmConf) -> QosPolicy:
        """Return the QoS policy in the opensm.conf options of a request."""
        sls = {*_numbers(conf.get("qos_policy_sls")), *_numbers(conf.get("partition_sls"))}
        if sls:
            sls |= set(_numbers(conf.get("sm_sl")))
        row = _numbers(conf.get("qos_swe_sl2vl"))
        return cls(tuple(sorted(sl for sl in sls if sl < SLS)), row if len(row) == SLS else _USUAL_SL2VL)

    @property
    def most_layers(self) -> int:
        """Return the maximum number of layers (VLs of the tables) for which there are enough SLs.

        Every class needs a separate SL for each layer.
        """
        return SLS // max(1, len(self.sls))

    def sl2vl_line(self, vls: int) -> str:
        """Return a line for the log if ``qos_sl2vl`` does not fit tables with ``vls`` VLs; "" otherwise.

        - With several VLs, the line states that the SL-to-VL tables of opensm.conf are not used.
        - With one VL, the SL-to-VL tables of opensm.conf stay in use.  If these tables map an SL in use to VL 15, the
          line states that switches discard the packets with this SL.
        """
        # Tables with one VL keep the SL-to-VL tables of opensm.conf, in which VL 15 means that packets are discarded.
        lost = " and ".join(f"SL {sl}" for sl in self.sls or (0,) if self.sl2vl[sl] == DATA_VLS)
        if vls == 1 and lost:
            return f"opensm.conf: qos_sl2vl: switches discard packets with {lost}: their VL is 15 (use VLs 0 to 14)"
        if vls == 1 or self.sls or self.sl2vl == _USUAL_SL2VL:
            return ""
        return (
            "opensm.conf: qos_sl2vl: not used: without a QoS policy, tables with several VLs have SL-to-VL tables of"
            " their own (vls = 1 leaves yours)"
        )


def _numbers(text: str | None) -> tuple[int, ...]:
    found = [parse_decimal(word.strip()) for word in (text or "").split(",")]
    return tuple(number for number in found if number is not None)


@dataclass(frozen=True, eq=False)
class Classes:
    """Tables for OpenSM, in which every QoS class has its own SLs and VLs.

    Attributes
    ----------
    routing
        The tables.  Their SLs are the SLs of the first class.
    sl_for
        uint8[16, 16], the SL of a path.  The first index is the SL that OpenSM passes as a hint, and the second is the
        SL in the tables.
    vl_like
        uint8[16], index: a VL of ``routing``; value: the VL of the policy from which it gets its arbitration weight.
        255: the VL is unused.
    layer_vl
        int64[V], index: a VL of ``routing``; value: the VL of the engine's tables from which it gets its traffic.  -1:
        the VL is unused.
    line
        A line for the log; empty if paths use the SLs of the engine's tables.
    """

    routing: Routing
    sl_for: npt.NDArray[np.uint8]
    vl_like: npt.NDArray[np.uint8]
    layer_vl: npt.NDArray[np.int64]
    line: str = ""

    @property
    def identity(self) -> bytes:
        """Return bytes that identify the SLs and VLs of the classes; b"" if paths use the SLs of the engine's
        tables.
        """
        return self.as_array().tobytes() + self.layer_vl.tobytes() if self.line else b""

    def as_array(self) -> npt.NDArray[np.void]:
        """Return the SLs and VLs of the classes as the struct that the C part of the plugin (the shim) reads."""
        found = np.zeros(1, CLASSES)
        found["sl_for"], found["vl_like"] = self.sl_for.reshape(-1), self.vl_like
        return found


def classes_of(fabric: Fabric, routing: Routing, policy: QosPolicy, data_vls: int) -> Classes:
    """Assign SLs and VLs to every QoS class of a QoS policy.

    Parameters
    ----------
    fabric, routing
        The engine's tables.
    policy
        The administrator's QoS policy.
    data_vls
        Number of data VLs that OpenSM sets up.

    Raises
    ------
    RoutingError
        There are fewer SLs than the number of classes times the number of layers.
    """
    hints = np.arange(SLS, dtype=np.uint8)
    row, same = uniform_sl2vl(routing), np.tile(hints, (SLS, 1))
    if routing.vls == 1:  # Tables with one VL are safe with any SLs and VLs, so those of the policy are kept.
        return Classes(routing, same.T.copy(), np.full(SLS, UNUSED_VL, np.uint8), np.zeros(1, np.int64))
    if row is None:
        line = "QoS: paths use the SLs of the tables, because their VLs change on the path" if policy.sls else ""
        vl_like = np.where(hints < routing.vls, hints, UNUSED_VL).astype(np.uint8)
        return Classes(routing, same, vl_like, np.arange(routing.vls), line)
    used = np.unique(routing.sl[..., fabric.lids.switch >= 0]) if (fabric.lids.switch >= 0).any() else hints[:1]
    layers = [int(vl) for vl in np.unique(row[used])]
    if not policy.sls:
        return _without_policy(routing, row, layers)
    return _Assignment(routing, row, layers, policy, data_vls).classes()


def _without_policy(routing: Routing, row: npt.NDArray[np.uint8], layers: list[int]) -> Classes:
    """Return the SLs and VLs for a subnet without a QoS policy: paths use the engine's SLs.

    A query for a path record may demand an SL.  The path gets this SL only if this SL and the engine's SL for the path
    have the same VL; otherwise, the path gets the engine's SL.

    ``row`` has the VL of each SL in the engine's tables, and ``layers`` lists the VLs that these tables use.
    """
    hints = np.arange(SLS, dtype=np.uint8)
    sl_for = np.where(row[:, None] == row[None, :], hints[:, None], hints[None, :]).astype(np.uint8)
    vl_like = np.full(SLS, UNUSED_VL, np.uint8)
    vl_like[layers] = layers[0]
    return Classes(routing, sl_for, vl_like, np.arange(routing.vls))


@dataclass(frozen=True, eq=False)
class _Assignment:
    """Assigns SLs and VLs to each class of a policy, for each layer (VL of the engine's tables)."""

    engine: Routing
    row: npt.NDArray[np.uint8]
    layers: list[int]
    policy: QosPolicy
    data_vls: int

    def classes(self) -> Classes:
        """Return the tables with the SLs and VLs of all classes.

        Raises
        ------
        RoutingError
            There are too few SLs.
        """
        policy, layers = self.policy, self.layers
        if len(policy.sls) * len(layers) > SLS:
            raise RoutingError(
                f"{count_noun(len(policy.sls), 'SL')} of the QoS policy times {count_noun(len(layers), 'layer')} of the"
                f" tables are more than {SLS} SLs (use updn or nue, whose tables need one layer, or fewer SLs)"
            )
        class_of, layer_of, sl = self._sls()
        vls, shared = self._vls()
        vl = np.array(vls)[class_of, layer_of]
        own_layer = np.array([layers.index(value) if value in layers else 0 for value in self.row.tolist()])
        hints = np.arange(SLS)
        sl_for = np.where(layer_of[:, None] == own_layer[None, :], hints[:, None], sl[class_of][:, own_layer])
        # The label of a layer is the SL of the first class for this layer.  In the new tables, the SL of each path is
        # the label of its layer, not the engine's SL.  The arrays ``sl_for`` and ``by_label`` both give the SL that
        # senders use for a path.  Their first index is the hint.  The second index is the engine's SL in ``sl_for``,
        # and the label in ``by_label``.
        label = sl[0][own_layer]
        by_label = np.where(layer_of[:, None] == layer_of[None, :], hints[:, None], sl[class_of][:, layer_of])
        assert (by_label[:, label] == sl_for).all()
        vl_like, layer_vl = np.full(SLS, UNUSED_VL, np.uint8), np.full(int(vl.max()) + 1, -1, np.int64)
        for row in vls:
            vl_like[row], layer_vl[row] = row[0], layers
        routing = replace(
            self.engine, sl=label.astype(np.uint8)[self.engine.sl], sl2vl=vl.astype(np.uint8), vls=int(vl.max()) + 1
        )
        return Classes(routing, by_label.astype(np.uint8), vl_like, layer_vl, self._line(sl, vls, shared))

    def _sls(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Assign an SL to each class in each layer.

        In the first layer of a class, paths have the SL that the policy gives to the class.  All SLs that are left over
        belong to the default class, and are distributed round robin over its layers.  The default class is the class of
        SL 0 or, if the policy does not use SL 0, the class of the lowest SL.

        Returns
        -------
        class_of
            int64[16], the class of each SL, as an index of the policy's list of SLs.
        layer_of
            int64[16], the layer of each SL, as an index of the list of layers.
        table
            int64[classes, layers], the first SL of each class in each layer.
        """
        sls, count = self.policy.sls, len(self.layers)
        free = [sl for sl in range(SLS) if sl not in sls]
        class_of, layer_of = np.zeros(SLS, np.int64), np.zeros(SLS, np.int64)
        table = np.zeros((len(sls), count), np.int64)
        for number, first in enumerate(sls):
            table[number] = [first, *(free.pop(0) for _ in range(count - 1))]
            class_of[table[number]], layer_of[table[number]] = number, np.arange(count)
        for position, sl in enumerate(free):
            layer_of[sl] = position % count
        return class_of, layer_of, table

    def _vls(self) -> tuple[list[list[int]], bool]:
        """Assign a VL to each class in each layer.

        Classes that ``qos_sl2vl`` maps to the same VL share their VLs.  In the first layer of a class, paths keep the
        class's VL of the policy, with the arbitration weight of this VL.  If there are too few VLs, every class uses
        the VLs of the engine's tables.

        Returns
        -------
        vls
            For each class, the VL of each layer.
        shared
            Whether classes share VLs although the policy separates them.
        """
        count, usable = len(self.layers), range(self.layers[0], self.data_vls)
        wanted = [self.policy.sl2vl[sl] & (_power_above(self.data_vls) - 1) for sl in self.policy.sls]
        groups = list(dict.fromkeys(wanted))
        if len(groups) * count > len(usable):
            return [self.layers for _ in wanted], len(groups) > 1
        firsts = {group: group for group in groups if group in usable}
        free = [vl for vl in usable if vl not in firsts]
        vls = {group: [firsts[group] if group in firsts else free.pop(0)] for group in groups}
        for group in groups:
            vls[group] += [free.pop(0) for _ in range(count - 1)]
        return [vls[group] for group in wanted], False

    def _line(self, sl: npt.NDArray[np.int64], vls: list[list[int]], shared: bool) -> str:
        summary = ", ".join(
            f"SL {policy_sl} has SLs {_list(own)} on VLs {_list(vl_table)}"
            for policy_sl, own, vl_table in zip(self.policy.sls, sl.tolist(), vls, strict=True)
        )
        few = "; classes share VLs, because there are too few VLs" if shared else ""
        return f"QoS: {count_noun(len(self.layers), 'layer')} for each class: {summary}{few}"


def _power_above(vls: int) -> int:
    """Return the smallest power of two that is at least ``vls``.

    If a port has ``vls`` data VLs, OpenSM masks the VLs in the port's SL-to-VL tables with this number minus 1.
    """
    return 1 << (vls - 1).bit_length()


def _list(numbers: list[int]) -> str:
    return "/".join(map(str, numbers))


def check_classes(fabric: Fabric, classes: Classes, proof: Proof, *, threads: int) -> None:
    """Check the certificate for the traffic of all classes together, on the VLs that OpenSM sets up for these classes.

    If the classes use the SLs of the engine's tables, nothing is checked, because these tables are already proven.

    Raises
    ------
    FalseCertificate
        The traffic of a class violates the certificate.
    """
    if not classes.line or proof.certificate is None or uniform_sl2vl(classes.routing) is None:
        return
    known = proof.certificate
    order = np.zeros((len(classes.layer_vl), known.order.shape[1]), np.int32)
    for vl, layer in enumerate(classes.layer_vl.tolist()):
        if 0 <= layer < len(known.order):
            order[vl] = known.order[layer]
    alternatives = np.bitwise_or.reduce(1 << classes.sl_for.astype(np.int64), axis=0)
    certificate = Certificate(order, known.strength, known.scope)
    check_certificate(fabric, classes.routing, certificate, alternatives=alternatives, threads=threads)
