import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from routing.errors import EnvironmentProblem, InputError
from routing.formats.atomic import atomic_directory, atomic_write, write_text_atomically


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_there_when_it_is_complete(tmp_path):
    target = tmp_path / "x"
    with atomic_write(target) as file:
        file.write(b"half")
        assert not target.exists()
    assert target.read_bytes() == b"half"
    write_text_atomically(target, "new")
    assert target.read_text() == "new"
    assert names_in(tmp_path) == ["x"]


@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_stopped_write_leaves_what_was(tmp_path, stop):
    target = tmp_path / "x"
    target.write_text("old")
    with pytest.raises(stop), atomic_write(target) as file:
        file.write(b"new")
        raise stop
    assert target.read_text() == "old" and names_in(tmp_path) == ["x"]


@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt])
def test_a_stopped_folder_leaves_what_was(tmp_path, stop):
    for expected in ([], ["x"]):
        with pytest.raises(stop), atomic_directory(tmp_path / "x", marker="m", known={"m", "a"}) as folder:
            (folder / "m").write_text("new")
            raise stop
        assert names_in(tmp_path) == expected
        if not expected:
            with atomic_directory(tmp_path / "x", marker="m", known={"m", "a"}) as folder:
                (folder / "m").write_text("old")
                (folder / "a").write_text("old")
    assert (tmp_path / "x" / "m").read_text() == "old"


def test_a_folder_of_ours_is_replaced_as_a_whole(tmp_path):
    for names in (["m", "a"], ["m", "b"]):
        with atomic_directory(tmp_path / "x", marker="m", known={"m", "a", "b"}) as folder:
            for name in names:
                (folder / name).write_text(name)
        assert (names_in(tmp_path / "x")) == sorted(names)
    assert names_in(tmp_path) == ["x"]


@pytest.mark.parametrize("inside", [["notes.txt", "m"], ["a"]])
def test_a_folder_of_others_is_left_alone(tmp_path, inside):
    (tmp_path / "x").mkdir()
    for name in inside:
        (tmp_path / "x" / name).write_text("theirs")
    with (
        pytest.raises(InputError, match="this command does not write"),
        atomic_directory(tmp_path / "x", marker="m", known={"m", "a"}),
    ):
        pytest.fail("must not be entered")
    assert (names_in(tmp_path / "x")) == sorted(inside)


def test_the_working_folder_is_not_pulled_from_under_the_shell(tmp_path, monkeypatch):
    (tmp_path / "x" / "y").mkdir(parents=True)
    for here in (tmp_path / "x" / "y", tmp_path / "x"):
        monkeypatch.chdir(here)
        with (
            pytest.raises(InputError, match="this is the working folder"),
            atomic_directory(tmp_path / "x", marker="m", known={"m"}),
        ):
            pytest.fail("must not be entered")
    with atomic_directory("new", marker="m", known={"m"}) as folder:
        (folder / "m").write_text("")
    assert names_in(tmp_path / "x") == ["new", "y"]


def test_an_empty_folder_and_a_file_in_the_path(tmp_path):
    (tmp_path / "x").mkdir()
    with atomic_directory(tmp_path / "x", marker="m", known={"m"}) as folder:
        (folder / "m").write_text("1")
    assert (tmp_path / "x" / "m").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"), atomic_directory(tmp_path / "file", marker="m", known={"m"}):
        pytest.fail("must not be entered")


def test_only_files_are_replaced_by_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # this pipe replaces a device: root could even rename a file over /dev/null
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(InputError, match=rf"{name}: is (a folder|not a regular file).*name a file"):
            write_text_atomically(tmp_path / name, "new")
    assert (tmp_path / "pipe").is_fifo()
    assert names_in(tmp_path) == ["folder", "pipe"]


def test_a_link_to_a_file_stays_one(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    write_text_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    (tmp_path / "knot").symlink_to("knot")
    write_text_atomically(tmp_path / "knot", "new")
    assert (tmp_path / "knot").read_text() == "new"


@pytest.mark.parametrize("where", ["missing/x", "file/x"])
def test_paths_that_cannot_be_written_say_so_in_one_line(tmp_path, where):
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentProblem) as caught, atomic_write(tmp_path / where):
        pytest.fail("must not be entered")
    assert "\n" not in str(caught.value) and where in str(caught.value)
    with pytest.raises(EnvironmentProblem), atomic_directory(tmp_path / where, marker="m", known={"m"}):
        pytest.fail("must not be entered")


def test_a_full_disk_says_so():
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with pytest.raises(EnvironmentProblem, match="no space"), atomic_write("/tmp/ibnue-full-test") as file:
        with Path("/dev/full").open("wb", buffering=0) as full:
            full.write(b"x")
        file.write(b"x")
    assert not Path("/tmp/ibnue-full-test").exists()


def test_a_file_that_cannot_be_written_into_the_folder_is_named_as_it_would_be_called(tmp_path):
    with (
        pytest.raises(EnvironmentProblem) as reported,
        atomic_directory(tmp_path / "x", marker="m", known={"m"}) as folder,
    ):
        write_text_atomically(folder / "none" / "m", "")
    assert str(reported.value).startswith(f"{tmp_path}/x/none/m: cannot be written")
    assert names_in(tmp_path) == []


def test_an_unwritable_folder(tmp_path):
    (tmp_path / "d").mkdir(mode=0o500)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)  # root may write everywhere
    try:
        with pytest.raises(EnvironmentProblem, match="permission denied"), atomic_write(tmp_path / "d" / "x"):
            pytest.fail("must not be entered")
        with (
            pytest.raises(EnvironmentProblem, match="permission denied"),
            atomic_directory(tmp_path / "d" / "x", marker="m", known={"m"}),
        ):
            pytest.fail("must not be entered")
    finally:
        if root:
            os.seteuid(0)
    assert names_in(tmp_path / "d") == []


def test_ctrl_c_leaves_nothing(tmp_path):
    program = (
        "import sys\nfrom routing.formats.atomic import atomic_directory\n"
        "with atomic_directory(sys.argv[1], marker='m', known={'m'}) as folder:\n"
        "    (folder / 'm').write_text('x')\n    print('ready', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        # Background jobs of a shell ignore Ctrl-C, and so do their children.
        ["env", "--default-signal=INT", sys.executable, "-c", program, str(tmp_path / "x")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        assert len(names_in(tmp_path)) == 1
        process.send_signal(signal.SIGINT)
        assert process.wait() != 0
    assert names_in(tmp_path) == []


def test_modes_follow_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write_text_atomically(tmp_path / "x", "")
        with atomic_directory(tmp_path / "d", marker="m", known={"m"}) as folder:
            (folder / "m").write_text("")
    finally:
        os.umask(old)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o750
