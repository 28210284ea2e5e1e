"""Find SLs with which the LFTs of a fabric can be replaced by other LFTs without a credit loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from routing._kernels.assign_vls import NO_VL, PathGroups, assign_vls
from routing.cdg.acyclic import AcyclicCdg
from routing.cdg.certificate import Certificate
from routing.fabric import Channels, Fabric
from routing.reroute.sl_assignment import counted_paths, longest_first, path_groups, vls_of_sls
from routing.tables import Routing

ATTEMPTS = 4
"""Number of attempts.  Each attempt first handles the paths that found no VL in the attempt before."""


def sls_for_change(
    fabric: Fabric,
    routing: Routing,
    lft: npt.NDArray[np.uint8],
    *,
    dependencies: AcyclicCdg,
    certificate: Certificate,
    vl_bit: npt.NDArray[np.uint16],
    sl_of_vl: npt.NDArray[np.uint8],
    visits: int,
) -> npt.NDArray[np.uint8] | None:
    """Return SLs with which the entries of tables can be replaced by ``lft`` in two steps.

    The SLs change first, and the entries later.  With the returned SLs, no credit loop occurs in two situations:

    - The entries are those of ``routing``.  Some senders use the SLs of ``routing``, and others use the returned SLs.
    - The entries are ``lft``, and all senders use the returned SLs.

    Parameters
    ----------
    fabric, routing
        Complete tables.  All ports have the same SL2VL mapping, and SLs are by source switch and LID.
    lft
        uint8[S, L], the complete LFTs of the second situation.
    dependencies
        The dependencies of ``routing``.
    certificate
        The certificate of ``routing``.
    vl_bit
        uint16[16], 1 << VL of each SL.
    sl_of_vl
        uint8[V], an SL for each VL of the certificate.  255: no path may change to this VL.
    visits
        Limit of the channels that the cycle searches of an attempt may visit.

    Returns
    -------
    uint8[S, L] or None
        The SLs.  None if a path finds no VL.

    Notes
    -----
    The kernel that assigns VLs accepts only one LFT for each switch.  So it gets two copies of the fabric: the first
    copy has the present entries, and the second copy has the new entries.  The two paths from a switch to a LID, one in
    each copy, form one group, so that they get the same VL.  Cost: :func:`routing._kernels.assign_vls.assign_vls` for
    all paths.
    """
    copies, (switches, lids), lid_switch = _two_copies(fabric.channels), lft.shape, fabric.lids.switch
    both = np.full((2 * switches, 2 * lids), NO_VL, np.uint8)
    both[:switches, :lids], both[switches:, lids:] = routing.lft, lft
    masks = np.concatenate([dependencies.masks, np.zeros_like(dependencies.masks)])
    order = np.concatenate([dependencies.order, len(fabric.channels) + dependencies.order], axis=1)
    at, lid = longest_first(fabric, replace(routing, lft=lft), counted_paths(fabric, certificate))
    lid_switch = np.concatenate([lid_switch, np.where(lid_switch < 0, np.int32(-1), lid_switch + np.int32(switches))])
    present = vls_of_sls(vl_bit)[routing.sl[at, lid]]
    for _ in range(ATTEMPTS):
        groups = path_groups(fabric, at, lid, present, replies=certificate.strength == "reversible")
        vl, *_ = assign_vls(
            copies, lid_switch, both, _in_two_copies(groups, switches, lids), masks=masks, order=order,
            allowed_vls=sl_of_vl != NO_VL, budget=visits,
        )  # fmt: skip
        if not (left := vl == NO_VL).any():
            sl = routing.sl.copy()
            sl[at, lid] = np.where(vl == present, sl[at, lid], sl_of_vl[vl])
            return sl
        first = np.argsort(~left, kind="stable")
        at, lid, present = at[first], lid[first], present[first]
    return None


def _two_copies(channels: Channels) -> Channels:
    """Return the channels of a fabric that consists of two separate copies of the given fabric.

    The switches, channels and links of the second copy have the numbers after those of the first copy.
    """
    switches, links = len(channels.first) - 1, 1 + int(channels.link.max(initial=-1))

    def twice(values: npt.NDArray[np.int32], more: int) -> npt.NDArray[np.int32]:
        return np.concatenate([values, values + np.int32(more)])

    count, at_port = len(channels), channels.at_port
    return replace(
        channels,
        src=twice(channels.src, switches),
        dst=twice(channels.dst, switches),
        port=np.tile(channels.port, 2),
        dst_port=np.tile(channels.dst_port, 2),
        reverse=twice(channels.reverse, count),
        capacity=np.tile(channels.capacity, 2),
        link=twice(channels.link, links),
        first=np.append(channels.first, channels.first[1:] + np.int32(count)),
        into=twice(channels.into, count),
        into_first=np.append(channels.into_first, channels.into_first[1:] + np.int32(count)),
        at_port=np.concatenate([at_port, np.where(at_port < 0, np.int32(-1), at_port + np.int32(count))]),
    )


def _in_two_copies(groups: PathGroups, switches: int, lids: int) -> PathGroups:
    """Return groups that have each path in both copies of the fabric."""
    group = np.tile(np.repeat(np.arange(len(groups.start)), np.diff(groups.first)), 2)
    order = np.argsort(group, kind="stable")
    source = np.concatenate([groups.source, groups.source + np.int32(switches)])
    lid = np.concatenate([groups.lid, groups.lid + np.int32(lids)])
    return PathGroups(2 * groups.first, source[order], lid[order], groups.start)
