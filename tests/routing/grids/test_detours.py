"""Compare detours of dimension-ordered paths with a search that examines every switch again after each step."""

import numpy as np
import pytest
from campaigns import some_of

from routing._kernels.symmetric_paths import LinkBundles
from routing.engines.destinations import inverse_capacity
from routing.faults.choose import between_switches
from routing.grids import paths as module
from routing.grids.coordinates import find_coordinates
from routing.grids.detours import NONE
from routing.topologies import generate


def hops_to(root, hop, bundles):
    """Return the hops of the path of each switch to ``root``, None if the path ends elsewhere."""
    found = []
    for start in range(len(hop)):
        switch, count = start, 0
        while switch != root and hop[switch] != NONE and count <= len(hop):
            switch, count = int(bundles.dst[bundles.first[switch] + hop[switch]]), count + 1
        found.append(count if switch == root else None)
    return found


def detours_slowly(fabric, bundles, hop, regular):
    """Complete all paths.  In each step, the switch whose path then has the fewest hops gets its next hop."""
    for root in range(len(hop)):
        members = np.flatnonzero(fabric.component == fabric.component[root]).tolist()
        hops = hops_to(root, hop[root], bundles)
        while any(hops[s] is None for s in members):
            choices = []
            for switch in (s for s in members if hops[s] is None):
                for index, to in enumerate(bundles.dst[bundles.first[switch] : bundles.first[switch + 1]].tolist()):
                    if hops[to] is not None:
                        choices.append((hop[root, switch] != NONE, hops[to] + 1, switch, index))
            _, _, switch, index = min(choices)
            hop[root, switch] = index
            before, hops = hops, hops_to(root, hop[root], bundles)
            regular[root][[s for s in members if before[s] is None and hops[s] is not None]] = False


@pytest.mark.parametrize(("name", "size"), [("torus", "4x3"), ("torus", "5x5"), ("mesh", "4x4"), ("hyperx", "3x4")])
@pytest.mark.parametrize("seed", some_of([1, 2, 3], [3]))
def test_detours_are_those_of_the_reference(name, size, seed, monkeypatch):
    fabric = generate(name, [size], cas=1)
    links = np.random.default_rng(seed).permutation(between_switches(fabric))
    fabric = fabric.without_links(links[: len(links) // 8 + seed].tolist())
    bundles = LinkBundles.between_switches(fabric.channels, inverse_capacity(fabric, None))
    coordinates = find_coordinates(fabric)
    found = module.grid_paths(fabric, coordinates, bundles)
    monkeypatch.setattr(module, "add_detours", detours_slowly)
    expected = module.grid_paths(fabric, coordinates, bundles)
    assert not found.regular.all()
    assert np.array_equal(found.hop, expected.hop) and np.array_equal(found.regular, expected.regular)
