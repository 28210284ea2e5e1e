"""InfiniBand routing that is proven free of credit loops, as a library.

>>> import ibnue
>>> fabric = ibnue.generate("torus", "4x4", cas=2)
>>> tables = ibnue.route(fabric, "nue", vls=2)
>>> tables.proof.certified
True

Every function takes the arguments of the command of the same name.  A fabric may be given as a :class:`Fabric`, a file,
or a generator such as ``"torus:4x4"``.  Tables may be given as :class:`Tables`, a file, or a folder.  Every result has
a ``summary()``, a short ``repr``, a table as ``to_dataframe()``, and ``save()``, which writes a page or a CSV file.

The names in ``__all__`` are stable.  Modules of ``routing`` may change with every version.
"""

from ibnue.functions import (
    check,
    compare,
    draw,
    generate,
    load,
    load_tables,
    measure,
    route,
    simulate,
    transition,
    whatif,
)
from ibnue.results import Cabling, Check, Drawing, Fabric, Faults, Measures, Result, Simulation, Tables, TransitionPlan
from routing import __version__
from routing.errors import (
    BrokenPromise,
    EnvironmentProblem,
    FabricError,
    FalseCertificate,
    IbnueError,
    InputError,
    NotEnoughVLs,
    OptionError,
    ParseError,
    RoutingError,
    TableError,
)

__all__ = [
    "BrokenPromise",
    "Cabling",
    "Check",
    "Drawing",
    "EnvironmentProblem",
    "Fabric",
    "FabricError",
    "FalseCertificate",
    "Faults",
    "IbnueError",
    "InputError",
    "Measures",
    "NotEnoughVLs",
    "OptionError",
    "ParseError",
    "Result",
    "RoutingError",
    "Simulation",
    "TableError",
    "Tables",
    "TransitionPlan",
    "__version__",
    "check",
    "compare",
    "draw",
    "generate",
    "load",
    "load_tables",
    "measure",
    "route",
    "simulate",
    "transition",
    "whatif",
]
