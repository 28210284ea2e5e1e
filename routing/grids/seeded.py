"""Arrange coordinates as a torus-2QoS.conf states them: dimensions x, y and z, their directions, and the datelines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routing.errors import InputError
from routing.fabric import Fabric
from routing.formats.torus_conf import AXES, TorusConf, TorusSeed
from routing.grids.coordinates import Coordinates, Grid, Kind, links_axis

RING_OF_FOUR = 4


def seeded(coordinates: Coordinates, conf: TorusConf, fabric: Fabric) -> Coordinates:
    """Return coordinates with the dimensions and datelines of a torus-2QoS.conf.

    A seed of the file is a switch with some of its links, which define the directions.  The function uses the first
    seed whose switches are all in one grid, and changes only this grid.  The dimensions of the changed grid are in the
    order x, y, z.  On each ring of at least five switches, position 0 is the origin that the file states.  The dateline
    is between the last position and position 0.

    Raises
    ------
    InputError
        The file states another topology than the cables have, two switches of a seed are not neighbours, or no seed has
        all of its switches in one grid.
    """
    row_of = {guid: row for row, guid in enumerate(fabric.switch_guid.tolist())}
    for seed in conf.seeds:
        switches = [seed.switch, *(link.end for link in seed.links.values())]
        if not all(guid in row_of for guid in switches):
            continue
        for number, grid in enumerate(coordinates.grids):
            if all(row_of[guid] in grid.switches for guid in switches):
                grids = list(coordinates.grids)
                grids[number] = _arranged(grid, conf, seed, row_of)
                return replace(coordinates, grids=tuple(grids))
    raise InputError(
        "no seed has all of its switches in one part of the fabric", path=conf.path,
        remedy="name a seed of other switches after next_seed",
    )  # fmt: skip


def _arranged(grid: Grid, conf: TorusConf, seed: TorusSeed, row_of: dict[int, int]) -> Grid:
    """Return ``grid`` with the coordinates that a torus-2QoS.conf (``conf``) states.

    The dimensions get the order x, y, z of the file.  Coordinates along a ring of at least five switches are counted
    from the file's origin in the file's ascending direction.  All other coordinates keep their values.

    ``seed`` is a switch of the file whose links define the directions.  ``row_of`` maps the GUID of each switch to its
    row in the fabric.

    Raises
    ------
    InputError
        The file does not fit the grid.
    """
    columns, sizes, kinds = [], [], []
    used: list[int] = []
    start = grid.position[int(np.searchsorted(grid.switches, row_of[seed.switch]))]
    for axis, (radix, is_ring) in enumerate(zip(conf.radix, conf.is_ring, strict=True)):
        if radix == 1:
            continue
        own = _axes_of(grid, conf, seed, axis, row_of)
        _check_form(grid, conf, axis, [one for one, _ in own])
        for one, step in own:
            column, kind = grid.position[:, one], grid.kind[one]
            if is_ring and grid.size[one] > RING_OF_FOUR:
                column = (step * (column - start[one]) - seed.datelines.get(axis, 0)) % radix
                kind = Kind.RING
            columns.append(column)
            sizes.append(grid.size[one])
            kinds.append(kind)
            used.append(one)
    if left := [one for one in range(grid.dimensions) if one not in used]:
        raise InputError(
            f"the topology lacks a dimension of {grid.size[left[0]]} switches that the cables have",
            path=conf.path, line=conf.line, remedy=f"the fabric is {grid.text}",
        )  # fmt: skip
    order = tuple(range(len(columns)))
    return Grid(grid.switches, np.stack(columns, axis=1), tuple(sizes), tuple(kinds), order)


def _axes_of(grid: Grid, conf: TorusConf, seed: TorusSeed, axis: int, row_of: dict[int, int]) -> list[tuple[int, int]]:
    """Return the dimensions of the grid that correspond to dimension ``axis`` of the file.

    Each dimension comes with the step, +1 or -1, that leads in the positive direction of the file.

    A ring of four switches in the file corresponds to two dimensions of the grid, each of size two.
    """
    links = {step: link for (one, step), link in seed.links.items() if one == axis}
    is_four = conf.is_ring[axis] and conf.radix[axis] == RING_OF_FOUR
    if len(links) < (2 if is_four else 1):
        wanted = (
            f"{AXES[axis]}p_link and {AXES[axis]}m_link" if is_four else f"{AXES[axis]}p_link or {AXES[axis]}m_link"
        )
        raise InputError(
            f"the seed of switch {seed.switch:#x} lacks a link in dimension {AXES[axis]}",
            path=conf.path, line=next(iter(seed.links.values())).line, remedy=f"name {wanted} for this seed",
        )  # fmt: skip
    found: dict[int, int] = {}
    start = grid.position[int(np.searchsorted(grid.switches, row_of[seed.switch]))]
    for step, link in links.items():
        end = grid.position[int(np.searchsorted(grid.switches, row_of[link.end]))]
        one, along = (int(each[0]) for each in links_axis(grid, start[None], end[None]))
        if one < 0:
            raise InputError(
                f"switches {link.start:#x} and {link.end:#x} are not neighbours", path=conf.path, line=link.line,
                remedy=f"the fabric is {grid.text}",
            )  # fmt: skip
        found.setdefault(one, step * along)
    return list(found.items())


def _check_form(grid: Grid, conf: TorusConf, axis: int, own: list[int]) -> None:
    """Check that the dimensions ``own`` of the grid have the size and the form of dimension ``axis`` of the file.

    Raises
    ------
    InputError
        The dimensions have another size or form.
    """
    radix, is_ring = conf.radix[axis], conf.is_ring[axis]
    size, kind = grid.size[own[0]], grid.kind[own[0]]
    if is_ring and radix == RING_OF_FOUR:
        fits = len(own) == 2 and all(grid.size[one] == 2 for one in own)
    elif kind is Kind.CLIQUE:
        fits = is_ring and size == radix == 3
    else:
        fits = size == radix and (is_ring or kind is Kind.LINE)
    if not fits or (len(own) > 1 and not (is_ring and radix == RING_OF_FOUR)):
        raise InputError(
            f"dimension {AXES[axis]} is a {'ring' if is_ring else 'line'} of {radix} switches, and the cables form "
            "another one",
            path=conf.path, line=conf.line, remedy=f"the fabric is {grid.text}",
        )  # fmt: skip
