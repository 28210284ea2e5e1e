import networkx as nx
import pytest

from routing.collect.routes import directed_routes
from routing.topologies import generate


@pytest.mark.parametrize(("name", "words"), [("torus", ["3x4"]), ("kary-ntree", ["3", "3"]), ("ring", ["5"])])
def test_every_route_leads_to_its_device_by_fewest_hops(name, words):
    fabric = generate(name, words)
    graph, peer = nx.Graph(), {}
    for (a, b), (left, right) in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True):
        graph.add_edge(a, b)
        peer[a, left], peer[b, right] = b, a
    sender = fabric.switches + 1
    routes = directed_routes(fabric, sender, 1)
    distance = nx.single_source_shortest_path_length(graph, sender)
    for device, route in enumerate(routes):
        here = sender
        for port in route:
            here = peer[here, port]
        assert (here, len(route)) == (device, distance[device])


def test_no_route_leads_through_a_ca_or_by_its_other_port():
    fabric = generate("ring", ["4"])
    routes = directed_routes(fabric, fabric.switches, 2)
    assert routes[fabric.switches] == b""
    assert set(routes) == {b"", None}
