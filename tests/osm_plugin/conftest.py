from dataclasses import replace
from pathlib import Path

import pytest
from plugin_lab import ample_timeouts
from shared_builds import built_once, plugin_build

import osm_plugin
from ibsim_fixtures.lab import Lab
from ibsim_fixtures.opensm import Plugin
from ibsim_fixtures.processes import missing_packages, tail
from osm_plugin.build_shim import compile_shim
from osm_plugin.install import LIBRARY, python_build
from routing.formats.fabric_files import write_net
from routing.topologies import generate

BAD = Path(__file__).with_name("bad_worker")


class ReportedLab(Lab):
    """Lab that prints the end of its logs if the test fails, because the logs are removed with the lab."""

    def __exit__(self, kind, error, trace):
        if kind is not None:
            for log in (self.opensm.log_path, self.opensm.folder / "ibnue-worker.log"):
                print(f"end of {log.name}:", tail(log, 40), sep="\n")  # noqa: T201
        super().__exit__(kind, error, trace)


@pytest.fixture(autouse=True)
def _programs(request):
    if request.node.get_closest_marker("lab") and (missing := missing_packages()):
        pytest.skip(f"apt install {' '.join(missing)}")


@pytest.fixture(scope="session")
def plugin_folder(tmp_path_factory):
    """Return the folder of libibnue.so, built for the installed OpenSM."""
    return plugin_build(tmp_path_factory)


@pytest.fixture(scope="session")
def bad_plugin(tmp_path_factory):
    """Return a folder with a libibnue.so whose worker has the fault that IBNUE_TEST_FAULT names.

    IBNUE_TEST_REAL is the folder of the real package.
    """

    def build(folder):
        python = replace(python_build(), paths=(str(BAD), str(Path(osm_plugin.__file__).parents[1])))
        include = (Path("/usr/include/infiniband"), Path("/usr/include"))
        compile_shim(
            python, folder / LIBRARY, engines=["ibnue-updn", "ibnue-nue"], include=include, flags=("-O0", "-g0")
        )

    return built_once(tmp_path_factory, "bad", build)


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
def live(request, plugin_folder, tmp_path):
    """Return a function that starts a lab with the plugin.

    ``toml`` is the plugin's configuration.  The function ``configure`` replaces this configuration later.  OpenSM
    sweeps on traps only if ``config`` says so, because such a sweep could run while a test reads the dumps of the sweep
    that it has requested.
    """
    assert request.node.get_closest_marker("lab"), "without the mark, every Python would run this test"
    path = tmp_path / "ibnue.toml"

    def configure(toml):
        path.write_text(ample_timeouts(toml))

    def start(net, engine, *, toml="", config=None, **options):
        configure(toml)
        plugin = Plugin("ibnue", options=f"--config {path}", folder=plugin_folder)
        settings = {"sweep_on_trap": False, **(config or {})}
        return ReportedLab(net, routing_engine=engine, plugin=plugin, config=settings, **options)

    start.config, start.configure = path, configure
    return start
