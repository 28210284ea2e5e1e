import re
from pathlib import Path

import numpy as np
import pytest
from in_one_test import cases_in_one_test
from routing_cases import ANY_FABRIC
from strategies import Sketch, random_fabric

from routing.engines import ENGINES
from routing.engines.base import MAX_DATA_VLS, OPTIONS, EngineOptions, Objective, offers_of
from routing.errors import OptionError
from routing.fabric import NodeKind
from routing.fabric_builder import FabricBuilder
from routing.tables import DATA_VLS

FABRIC = random_fabric(1)


@pytest.mark.parametrize("vls", [0, 16, 99, -1, "many", 2.0, True, None])
def test_a_wrong_number_of_vls_makes_no_options(vls):
    with pytest.raises(OptionError, match=r"not a valid number of data VLs \(use 1 to 15, min or auto\)"):
        EngineOptions(vls=vls)


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("passes", [-1, 1001]),
        ("seed", [-1, 1 << 31, 1 << 64]),
        ("threads", [0, -3, 257]),
        ("effort", [-0.1, float("nan"), float("inf")]),
        ("partition", ["foo", ""]),
        ("port_vls", [0, 16]),
    ],
)
def test_a_value_out_of_range_makes_no_options(option, values):
    for value in values:
        with pytest.raises(OptionError, match=r"^\S+ is not a valid .*\(use [^()]*\)$"):
            EngineOptions(**{option: value})


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("effort", "3", "'3' is not a valid effort (use a number)"),
        ("effort", True, "True is not a valid effort (use a number)"),
        ("seed", 1.5, "1.5 is not a valid seed (use an integer)"),
        ("seed", None, "None is not a valid seed (use an integer)"),
        ("passes", "2", "'2' is not a valid number of refinement passes (use an integer)"),
        ("first_vl", True, "True is not a valid first VL (use an integer)"),
        ("reversible", "no", "'no' is not a valid value of reversible (use true or false)"),
        ("minimal", 0, "0 is not a valid value of minimal (use true or false)"),
        ("objective", 2, "2 is not a valid objective (use a string)"),
        ("partition", 1, "1 is not a valid partition (use a string)"),
        ("roots", 5, "5 is not a valid value of roots (use an array)"),
        *(
            (name, 5, f"5 is not a valid value of {name} (use a string)")
            for name in ("root_guid_file", "cn_guid_file", "io_guid_file", "torus_config", "parts")
        ),
        ("link_weights", 3, "3 are not weights of links (use triples of switch GUID, port and a positive factor)"),
        ("link_weights", ((1, 2),), "((1, 2),) are not weights of links (use triples of switch GUID"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_makes_no_options(option, value, problem):
    with pytest.raises(OptionError, match=f"^{re.escape(problem)}"):
        EngineOptions(**{option: value})


def test_numbers_of_numpy_and_paths_are_values_of_options():
    options = EngineOptions(seed=np.int64(3), effort=np.float32(0.5), port_vls=np.int64(2), cn_guid_file=Path("nodes"))
    assert (options.seed, options.effort, options.port_vls, options.cn_guid_file) == (3, 0.5, 2, Path("nodes"))
    assert EngineOptions(effort=1, roots=["a", "b"], root_guid_file="f").roots == ("a", "b")


@pytest.mark.parametrize(
    "options",
    [{"roots": ("sw1",)}, {"root_guid_file": "roots"}, {"partition": "metis"}],
    ids=lambda option: next(iter(option)),
)
def test_minhop_does_not_pass_over_what_it_cannot_serve(options):
    with pytest.raises(OptionError, match=r"minhop has no (roots|regions) \(.*use updn\)"):
        ENGINES["minhop"].route(FABRIC, EngineOptions(**options))


UNSUPPORTED = {
    "roots": ("sw1",), "root_guid_file": "roots", "partition": "metis", "reversible": True, "minimal": False,
    "cn_guid_file": "nodes", "io_guid_file": "nodes", "torus_config": "conf", "parts": "parts",
    "objective": Objective.BISECTION,
}  # fmt: skip


@cases_in_one_test("name", ENGINES)
def test_an_engine_refuses_what_it_does_not_declare(name):
    offers = offers_of(ENGINES[name])
    assert set(UNSUPPORTED) == {option for option, declared in OPTIONS.items() if declared.refusal is not None}
    assert {*offers.options, *offers.refusals} <= set(UNSUPPORTED)
    for option in sorted(UNSUPPORTED.keys() - set(offers.options)):
        problem, remedy = offers.refusals.get(option, OPTIONS[option].refusal)
        with pytest.raises(OptionError) as raised:
            ENGINES[name].route(FABRIC, EngineOptions(**{option: UNSUPPORTED[option]}))
        assert str(raised.value) == f"{name} {problem} ({remedy})"


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda option: option.name)
def test_a_declaration_fits_its_field(option):
    assert option.name in EngineOptions().as_dict() and option.help
    assert option.what or (option.range is None and not option.words)
    values = {*(option.range or ()), *option.words} if "sweep" in option.sources else ()
    for value in values:
        assert option.parse(str(value)) == value and option.fits(option.convert(value))


def test_values_as_in_toml_get_the_types_of_the_options():
    with pytest.raises(OptionError, match=r"'sw1' is one name \(write a list of names: \['sw1'\]\)"):
        EngineOptions(roots="sw1")
    given = EngineOptions(objective="bisection", roots=["sw1"], root_guid_file="roots")
    assert given.objective is Objective.BISECTION
    assert given == EngineOptions.of({"objective": "bisection", "roots": ["sw1"], "root_guid_file": "roots"})
    with pytest.raises(OptionError, match="'bisections' is not a valid objective"):
        EngineOptions(objective="bisections")


def test_the_name_of_an_objective_gives_the_tables_of_the_objective():
    tables = [
        ENGINES["minhop"].route(FABRIC, EngineOptions(objective=objective)).lft.tolist()
        for objective in ("bisection", Objective.BISECTION, "alltoall")
    ]
    assert tables[0] == tables[1] != tables[2]


def test_the_most_vls_are_those_of_the_tables():
    assert MAX_DATA_VLS == DATA_VLS


@pytest.mark.parametrize(("vls", "port_vls", "used"), [("min", 8, 1), ("auto", 8, 8), ("auto", 2, 2), (5, 8, 5)])
def test_updn_uses_as_many_vls_as_it_is_given(vls, port_vls, used):
    routing = ENGINES["updn"].route(
        random_fabric(2, switches=16), EngineOptions(vls=vls, port_vls=port_vls, effort=0.1)
    )
    assert routing.vls == used == routing.sl.max() + 1
    assert routing.sl2vl.tolist() == [sl % used for sl in range(16)]


def test_minhop_uses_one_vl_unless_a_number_is_asked_for():
    used = [ENGINES["minhop"].route(FABRIC, EngineOptions(vls=vls)).vls for vls in ("auto", "min", 1, 4)]
    assert used == [1, 1, 1, 4]


def test_one_order_needs_one_vl_however_many_it_is_spread_over():
    one = ENGINES["updn"].route(FABRIC, EngineOptions(vls=4, roots=("sw0",)))
    assert (one.vls, one.vls_needed) == (4, 1)
    fabric = random_fabric(4, switches=30, degree=4, cas=2)
    assert ENGINES["updn"].route(fabric, EngineOptions(vls=4, effort=0.3)).vls_needed in (1, 4)
    assert ENGINES["updn"].route(fabric, EngineOptions()).vls_needed == 1


NOTHING = FabricBuilder("nothing").build()
BACK_TO_BACK = random_fabric(1, switches=0, cas=0, back_to_back=2)
LONELY = random_fabric(1, switches=1, cas=0)
LONELY_WITH_CAS = random_fabric(1, switches=1, cas=3, lmc=2, loop_cables=1)
NO_CAS = random_fabric(1, switches=6, cas=0)
ALL_APART = random_fabric(1, switches=5, parts=5, cas=2)


@cases_in_one_test(
    ("engine", "options"),
    [(engine, options) for engine in ANY_FABRIC for options in [{}, {"vls": 1}, {"vls": 3}]]
    + [
        (engine, {"objective": Objective.BISECTION})
        for engine in ANY_FABRIC
        if "objective" in offers_of(ENGINES[engine]).options
    ],
    ids=str,
)
@cases_in_one_test(
    "fabric", [NOTHING, BACK_TO_BACK, LONELY, LONELY_WITH_CAS, NO_CAS, ALL_APART], ids=lambda fabric: fabric.name
)
def test_fabrics_with_next_to_nothing_in_them(engine, options, fabric, route):
    routing, proof = route(engine, fabric, **options)
    assert routing.lft.shape == (fabric.switches, len(fabric.lids))
    if engine == "updn":
        assert proof.certified


@pytest.mark.parametrize("engine", [name for name in ENGINES if name not in ("dragonfly", "hyperx", "chain")])
def test_a_switch_whose_every_port_is_cabled(engine, route):
    sketch = Sketch("wide")
    rows = [sketch.add(NodeKind.SWITCH) for _ in range(3)]
    for _ in range(126):
        sketch.cable(rows[0], rows[1])
        sketch.cable(rows[0], rows[2])
    for row in (0, 0, 1, 1, 2, 2):
        sketch.cable(sketch.add(NodeKind.CA), rows[row])
    fabric = sketch.build()
    assert fabric.switch_ports[0] == 254
    routing, _ = route(engine, fabric, vls=1)
    # each LID is reached by a separate port
    assert len(np.unique(routing.lft[0, fabric.endport_lid])) == fabric.endports
