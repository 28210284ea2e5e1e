import dataclasses
import io
import json
import signal
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from routing_cases import tables
from strategies import fabrics, pull_links, random_fabric

from routing.errors import EnvironmentProblem, IbnueError, InputError, TableError
from routing.fabric import Fabric
from routing.formats.bundle import bundle_routing, read_bundle, write_bundle
from routing.formats.npz import write_npz


def same_routing(a, b):
    return (
        np.array_equal(a.lft, b.lft)
        and np.array_equal(a.sl, b.sl)
        and np.array_equal(a.sl2vl, b.sl2vl)
        and (a.vls, a.vls_needed) == (b.vls, b.vls_needed)
    )


def relabelled(fabric: Fabric, shift: int) -> Fabric:
    """Return the fabric with other LIDs: first the end ports get LIDs, then the switches."""
    step = 1 << int(fabric.endport_lmc.max(initial=0))
    ends = shift * step + step * np.arange(fabric.endports)[::-1]
    top = int(ends.max(initial=0)) + step
    return dataclasses.replace(
        fabric,
        endport_lid=ends.astype(np.uint16),
        switch_lid=(top + 1 + np.arange(fabric.switches)).astype(np.uint16),
    )


@examples(30)
@given(fabrics(max_switches=8), st.sampled_from(["lid", "switch", "pair"]), st.booleans(), st.booleans(),
       st.sampled_from(["all", "endports"]))  # fmt: skip
def test_written_bundles_are_read_back(tmp_path_factory, fabric, sl_form, per_port, certified, scope):
    path = tmp_path_factory.mktemp("b") / "x.npz"
    routing, proof = tables(fabric, sl_form=sl_form, per_port=per_port, certified=certified, scope=scope)
    write_bundle(path, fabric, routing, proof)
    bundle = read_bundle(path)
    assert same_routing(bundle_routing(bundle, fabric), routing)
    assert bundle.routing.provenance == routing.provenance
    assert bundle.switch_name == fabric.switch_name and bundle.endport_name == fabric.endport_name
    assert bundle.strength == ("forward" if certified else None)
    if certified:
        assert bundle.scope == scope
        assert np.array_equal(bundle.order, proof.certificate.order)
    else:
        assert bundle.order.shape == (0, len(fabric.channels))


def test_keys_and_dtypes_are_those_of_the_format(tmp_path):
    fabric = random_fabric(1)
    routing, proof = tables(fabric, sl_form="switch", per_port=True)
    write_bundle(tmp_path / "b.npz", fabric, routing, proof)
    with np.load(tmp_path / "b.npz", allow_pickle=False) as bundle:
        found = {
            name: (bundle[name].dtype.kind + str(bundle[name].dtype.itemsize), bundle[name].ndim) for name in bundle
        }
        assert str(bundle["format"]) == "ibnue-bundle/1"
        assert json.loads(str(bundle["meta"]))["engine"] == "shortest"
        assert np.array_equal(bundle["lft"], routing.lft)
    texts = {"format": 0, "meta": 0, "switch_name": 1, "endport_name": 1}
    for name, ndim in texts.items():
        kind = found.pop(name)
        assert kind[0].startswith("U") and kind[1] == ndim
    assert found == {
        "switch_guid": ("u8", 1), "switch_lid": ("u2", 1), "endport_guid": ("u8", 1), "endport_port": ("u1", 1),
        "endport_lid": ("u2", 1), "endport_lmc": ("u1", 1), "lft": ("u1", 2), "sl": ("u1", 2), "sl2vl": ("u1", 4),
        "vls": ("i8", 0), "vls_needed": ("i8", 0), "channel_switch": ("i4", 1), "channel_port": ("u1", 1),
        "order": ("i4", 2),
    }  # fmt: skip


def test_same_input_gives_same_bytes(tmp_path):
    fabric = random_fabric(2)
    routing, proof = tables(fabric)
    write_bundle(tmp_path / "a.npz", fabric, routing, proof)
    write_bundle(tmp_path / "b.npz", fabric, routing, proof)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("sl_form", ["lid", "switch", "pair"])
@pytest.mark.parametrize("lmc", [0, 2])
def test_columns_follow_the_guids_when_lids_move(tmp_path, sl_form, lmc):
    fabric = random_fabric(3, switches=6, lmc=lmc)
    routing, proof = tables(fabric, sl_form=sl_form)
    write_bundle(tmp_path / "b.npz", fabric, routing, proof)
    moved = relabelled(fabric, 5)
    found = bundle_routing(read_bundle(tmp_path / "b.npz"), moved)
    new_of = {}
    new_of.update(zip(fabric.switch_lid.tolist(), moved.switch_lid.tolist(), strict=True))
    for a, b in zip(fabric.endport_lid.tolist(), moved.endport_lid.tolist(), strict=True):
        new_of.update({a + k: b + k for k in range(1 << lmc)})
    for old, new in new_of.items():
        assert np.array_equal(found.lft[:, new], routing.lft[:, old])
        if sl_form != "pair":
            assert np.array_equal(found.sl[..., new], routing.sl[..., old])
        else:
            for old_source, new_source in new_of.items():
                assert found.sl[new_source, new] == routing.sl[old_source, old]


def test_a_host_that_is_off_is_no_other_fabric(tmp_path):
    fabric = random_fabric(4, switches=5)
    routing, proof = tables(fabric)
    write_bundle(tmp_path / "b.npz", fabric, routing, proof)
    fewer = fabric.without_links([int(fabric.endport_link[0])])
    found = bundle_routing(read_bundle(tmp_path / "b.npz"), fewer)
    gone = int(fabric.endport_lid[0])
    kept = np.arange(len(fewer.lids)) != gone
    assert np.array_equal(found.lft[:, kept], routing.lft[:, : len(fewer.lids)][:, kept])


def swap_two_hosts(fabric: Fabric) -> Fabric:
    links = fabric.endport_link[:2]
    device, port = fabric.link_device.copy(), fabric.link_port.copy()
    column = [int(np.flatnonzero(device[k] >= fabric.switches)[0]) for k in links]
    for array in (device, port):
        array[links[0], column[0]], array[links[1], column[1]] = array[links[1], column[1]], array[links[0], column[0]]
    return dataclasses.replace(fabric, link_device=device, link_port=port)


@pytest.mark.parametrize(
    ("other", "names"),
    [
        (lambda f: pull_links(f, 1, 0.3), "leads to no switch in this fabric"),
        (lambda f: dataclasses.replace(f, switch_guid=f.switch_guid + np.uint64(7)), "is not in this fabric"),
        (lambda f: dataclasses.replace(f, endport_guid=f.endport_guid + np.uint64(70000)), "it lacks end port"),
        (lambda f: dataclasses.replace(f, endport_lmc=f.endport_lmc * 0), "LMC"),
        (swap_two_hosts, "is cabled to another port"),
    ],
)
def test_another_fabric_is_refused_by_what_differs(tmp_path, other, names):
    fabric = random_fabric(5, lmc=1)
    routing, proof = tables(fabric)
    write_bundle(tmp_path / "b.npz", fabric, routing, proof)
    with pytest.raises(TableError, match=names) as caught:
        bundle_routing(read_bundle(tmp_path / "b.npz"), other(fabric))
    assert "\n" not in str(caught.value) and "b.npz" in str(caught.value)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "b.npz"
    fabric = random_fabric(6, switches=5, lmc=1)
    routing, proof = tables(fabric, sl_form="switch")
    write_bundle(path, fabric, routing, proof)
    return path


def changed(good: Path, **changes):
    with np.load(good, allow_pickle=False) as bundle:
        arrays = {name: bundle[name] for name in bundle}
    for name, change in changes.items():
        if change is None:
            del arrays[name]
        else:
            arrays[name] = change(arrays.get(name)) if callable(change) else np.asarray(change)
    buffer = io.BytesIO()
    write_npz(buffer, arrays)
    return buffer.getvalue()


def put(index, value):
    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return change


BAD = {
    "extra array": {"surprise": np.arange(3)},
    "missing array": {"sl": None},
    "no format": {"format": None},
    "other version": {"format": np.array("ibnue-bundle/2")},
    "bad JSON": {"meta": np.array("{")},
    "JSON of another kind": {"meta": np.array("[1]")},
    "deep JSON": {"meta": np.array("[" * 100000)},
    "wrong dtype": {"lft": lambda a: a.astype(np.int64)},
    "wrong rows": {"lft": lambda a: a[:-1]},
    "wrong columns": {"lft": lambda a: a[:, :-1]},
    "SL of no shape": {"sl": lambda a: a[:, :-1]},
    "SL over 15": {"sl": put((0, 1), 16)},
    "SL2VL over 15": {"sl2vl": put(3, 16)},
    "SL2VL too short": {"sl2vl": lambda a: a[:8]},
    "no VLs": {"vls": np.array(0)},
    "too many VLs": {"vls": np.array(16)},
    "negative need": {"vls_needed": np.array(-1)},
    "GUIDs unsorted": {"switch_guid": lambda a: a[::-1]},
    "GUID twice": {"switch_guid": lambda a: np.repeat(a[:1], len(a))},
    "LID twice": {"switch_lid": lambda a: np.repeat(a[:1], len(a))},
    "LID too high": {"switch_lid": put(0, 0xFFFF)},
    "LMC over 7": {"endport_lmc": put(0, 8)},
    "names short": {"switch_name": lambda a: a[:-1]},
    "channel of no switch": {"channel_switch": put(-1, 99)},
    "channels unsorted": {"channel_switch": lambda a: a[::-1]},
    "channel by port 0": {"channel_port": put(0, 0)},
    "order too narrow": {"order": lambda a: a[:, :-1]},
    "order negative": {"order": put((0, 0), -2)},
}


@pytest.mark.parametrize("why", BAD)
def test_bad_bundles_are_refused_in_one_line(tmp_path, good, why):
    path = tmp_path / "bad.npz"
    path.write_bytes(changed(good, **BAD[why]))
    with pytest.raises(TableError) as caught:
        read_bundle(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)


def test_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "p.npz", format=np.array([{}], object))
    with pytest.raises(TableError):
        read_bundle(tmp_path / "p.npz")


def test_a_small_file_that_unpacks_to_a_giant_is_refused_unread(tmp_path, good):
    with zipfile.ZipFile(io.BytesIO(good.read_bytes())) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    for name, claim in (("lft.npy", (1 << 20, 1 << 20)), ("switch_guid.npy", (1 << 40,)), ("meta.npy", ())):
        dtype = "<U999999999" if name == "meta.npy" else {"lft.npy": "|u1", "switch_guid.npy": "<u8"}[name]
        shape = "(" + ", ".join(map(str, claim)) + ("," if len(claim) == 1 else "") + ")"
        header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        bomb = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(1 << 20)
        with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            for key, data in entries.items():
                archive.writestr(key, bomb if key == name else data)
        with pytest.raises(TableError):
            read_bundle(tmp_path / "bomb.npz")


def test_every_truncation_is_refused(tmp_path, good):
    data, path = good.read_bytes(), tmp_path / "cut.npz"
    for length in [*range(0, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(TableError):
            read_bundle(path)


@examples(300)
@given(st.integers(0, 1 << 20), st.binary(min_size=1, max_size=12))
def test_damage_never_gives_a_traceback(tmp_path_factory, good, where, what):
    data = bytearray(good.read_bytes())
    where %= len(data)
    data[where : where + len(what)] = what
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(data)
    try:
        read_bundle(path)
    except IbnueError as error:
        assert "\n" not in str(error)


def test_paths_that_cannot_be(tmp_path, good):
    with pytest.raises(InputError):
        read_bundle(tmp_path / "none.npz")
    with pytest.raises(InputError):
        read_bundle(tmp_path)
    fabric = random_fabric(6, switches=5, lmc=1)
    routing, proof = tables(fabric)
    with pytest.raises(EnvironmentProblem):
        write_bundle(tmp_path / "no" / "such" / "b.npz", fabric, routing, proof)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_inside_zipfile_is_not_an_error_of_zipfile(monkeypatch, recwarn):
    """zipfile cannot close an archive while an array is open for writing, so an interrupt became a ValueError."""
    compressor = zlib.compressobj

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return compressor(*arguments)

    monkeypatch.setattr(zlib, "compressobj", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores the signal
    try:
        with pytest.raises(KeyboardInterrupt):
            write_npz(io.BytesIO(), {"lft": np.zeros((4, 4), np.uint8)})
    finally:
        signal.signal(signal.SIGINT, before)
    assert not recwarn.list
