"""Makes the net files of the fixtures that come from generators: ``python -m ibsim_fixtures.recipes``."""

from __future__ import annotations

from ibsim_fixtures.catalogue import FIXTURES, Recipe
from routing.errors import OptionError
from routing.fabric import Fabric
from routing.formats.fabric_files import write_net
from routing.topologies import generate


def cook(recipe: Recipe) -> Fabric:
    """The fabric of a recipe.

    Raises
    ------
    OptionError
        The generator refuses, or a cable that is to be pulled is not there.
    """
    fabric = generate(recipe.topology, recipe.args, **recipe.options)
    return fabric.without_links([_cable(fabric, switch, port) for switch, port in recipe.without])


def _cable(fabric: Fabric, switch: str, port: int) -> int:
    channel = fabric.channels.at_port[fabric.switch_name.index(switch), port] if switch in fabric.switch_name else -1
    if channel < 0:
        raise OptionError(f"{fabric.name} has no link at {switch} port {port}", remedy="name a switch and its port")
    return int(fabric.channels.link[channel])


def main() -> None:
    """Write every one of them."""
    for fixture in FIXTURES.values():
        if fixture.recipe is not None:
            write_net(cook(fixture.recipe), fixture.path)


if __name__ == "__main__":
    main()
