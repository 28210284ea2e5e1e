"""``ibnue slurm``: write the topology file of Slurm."""

from __future__ import annotations

from pathlib import Path

import click

from routing.cli import fabric_argument
from routing.cli.output import spinner
from routing.errors import OptionError


@click.command()
@fabric_argument.fabric_argument
@fabric_argument.fault_options
@click.option("--yaml", "as_yaml", is_flag=True, help="Write topology.yaml (Slurm 25.05) with all planes.")
@click.option("--plane", type=click.IntRange(1), metavar="N",
              help="Plane for topology.conf, if nodes have ports in several separate fabrics.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Output file (default: standard output).")  # fmt: skip
def slurm(*, fabric: str, as_yaml: bool, plane: int | None, output: Path | None) -> int:
    """Write FABRIC as the topology file of Slurm.

    \b
    ibnue slurm ibnetdiscover.txt -o topology.conf
    ibnue slurm ibnetdiscover.txt --yaml -o topology.yaml

    The name of a node is the first word of the name of its CA.  A pod is a set of switches of a fat tree that stay
    connected without the levels above.  The upper switches of a pod are written as one switch.
    """
    from routing.formats.atomic import write_text_atomically
    from routing.slurm import conf_text, slurm_planes, yaml_text

    if output is not None and (output.suffix in (".yaml", ".yml")) > as_yaml:
        raise OptionError(f"{output}: topology.conf is not YAML", remedy="add --yaml, or name another file")
    if as_yaml and plane is not None:
        raise OptionError("--yaml has all planes", remedy="leave --plane out")
    with spinner(f"reading {fabric}"):
        subnet = fabric_argument.broken(fabric_argument.read(fabric))
    planes = slurm_planes(subnet)
    if plane is None and not as_yaml and len(planes) > 1:
        raise OptionError(f"nodes have ports in {len(planes)} planes", remedy="choose one with --plane, or use --yaml")
    if plane is not None and plane > len(planes):
        raise OptionError(f"there is no plane {plane}", remedy=f"use 1 to {len(planes)}")
    text = yaml_text(planes) if as_yaml else conf_text(planes[(plane or 1) - 1])
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text_atomically(output, text)
    return 0
