import pytest

from benchmarks.published_fabrics import PUBLISHED

COUNTS = {
    "random": (125, 1000, 1000),
    "torus-6x5x5": (150, 1050, 1800),
    "10-ary-3-tree": (300, 1100, 2000),
    "kautz": (150, 1050, 1500),
    "dragonfly": (180, 1080, 1515),
    "cascade": (192, 1536, 3072),
    "tsubame2.5": (243, 1407, 3384),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_counts_are_those_of_the_paper(name):
    fabric = PUBLISHED[name]()
    assert (fabric.switches, fabric.endports, len(fabric.channels) // 2) == COUNTS[name]
    assert fabric.graph.is_connected(mode="weak")
