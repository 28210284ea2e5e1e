import pytest
from plugin_lab import unhurried

from ibsim_fixtures.lab import Lab
from ibsim_fixtures.opensm import Plugin
from ibsim_fixtures.processes import missing_packages
from osm_plugin.install import install
from routing.formats.fabric_files import write_net
from routing.topologies import generate


@pytest.fixture(autouse=True)
def _programs(request):
    if request.node.get_closest_marker("lab") and (missing := missing_packages()):
        pytest.skip(f"apt install {' '.join(missing)}")


@pytest.fixture(scope="session")
def plugin_folder(tmp_path_factory):
    """libibnue.so, built for the OpenSM that is installed."""
    folder = tmp_path_factory.mktemp("plugin")
    install(libdir=folder)
    return folder


@pytest.fixture(scope="session")
def nets(tmp_path_factory):
    """Net files of generated fabrics, by name."""
    folder = tmp_path_factory.mktemp("nets")

    def net(name, *args, **options):
        path = folder / f"{name}-{'-'.join(args)}-{len(options)}.net"
        write_net(generate(name, list(args), **options), path)
        return path

    return net


@pytest.fixture
def live(plugin_folder, tmp_path):
    """Starts a lab with the plugin; ``toml`` is its configuration, which may be given another text later."""
    config = tmp_path / "ibnue.toml"

    def configure(toml):
        config.write_text(unhurried(toml))

    def start(net, engine, *, toml="", **options):
        configure(toml)
        plugin = Plugin("ibnue", options=f"--config {config}", folder=plugin_folder)
        return Lab(net, routing_engine=engine, plugin=plugin, **options)

    start.config, start.configure = config, configure
    return start
