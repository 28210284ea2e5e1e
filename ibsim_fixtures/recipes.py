"""Generate the net files of fixture fabrics from their recipes: ``python -m ibsim_fixtures.recipes``."""

from __future__ import annotations

from ibsim_fixtures.catalogue import FIXTURES, Recipe
from routing.fabric import Fabric
from routing.faults import apply_faults, parse_fault
from routing.formats.fabric_files import write_net
from routing.topologies import generate


def regenerate(recipe: Recipe) -> Fabric:
    """Generate the fabric that a recipe describes.

    Raises
    ------
    OptionError
        The generator refuses the arguments of the recipe, or a cable to remove does not exist.
    """
    fabric = generate(recipe.topology, recipe.args, **recipe.options)
    return apply_faults(fabric, [parse_fault(f"link {switch}/{port}", fabric) for switch, port in recipe.without])


def main() -> None:
    """Write the net files of all fixture fabrics that have a recipe."""
    for fixture in FIXTURES.values():
        if fixture.recipe is not None:
            write_net(regenerate(fixture.recipe), fixture.path)


if __name__ == "__main__":
    main()
