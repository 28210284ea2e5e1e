"""The kernels execute no more instructions than the stored counts, within the tolerance."""

import json

import pytest

from benchmarks.instructions import STORED, TOLERANCE, CannotCountError, compiler, counts, differences, kernel_count


# A run takes 26 seconds of CPU time, so it is part of the campaign.
@pytest.mark.slow
@pytest.mark.timeout(900)  # valgrind executes one instruction in the time of fifty
def test_no_kernel_takes_more_instructions():
    stored = json.loads(STORED.read_text())
    try:
        if compiler() != stored["compiler"]:
            pytest.skip(f"the stored counts are of another compiler: {stored['compiler']}")
        found = counts()
    except CannotCountError as error:
        pytest.skip(str(error))
    assert found.keys() == stored["instructions"].keys()
    worse = {name: ratio for name, ratio in differences(found, stored["instructions"]) if ratio > 1 + TOLERANCE}
    assert not worse, "python -m benchmarks.instructions --update, if this is intended"


def test_only_the_kernels_own_instructions_are_counted(tmp_path):
    lines = ["desc: Trigger: Client Request: step", "ob=(1) /x/_native.abi3.so", "fn=(1) f", "0 5", "cob=(2) /libm.so",
             "cfn=(2) pow", "calls=1 0", "0 100", "ob=(2)", "fn=(2)", "0 100", "ob=(1)", "fn=(3) g", "0 7"]  # fmt: skip
    (tmp_path / "out.1").write_text("\n".join(lines))
    assert kernel_count(tmp_path / "out.1") == ("step", 12)
