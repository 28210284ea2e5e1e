"""Check the lists of arrays that kernels allocate, in a small program."""

import shutil
import subprocess
from pathlib import Path

import pytest

CSRC = Path(__file__).parents[3] / "routing/_kernels/csrc"
PROGRAM = """
#include "core/internal/arrays.h"
#include <stdint.h>

int main(void)
{
    array_list list = {0};
    char *first = ibn_core_arrays_add(&list, 1, 1);
    for (int i = 0; i < 999; i++)
        if (!ibn_core_arrays_add(&list, 10, sizeof(int)))
            return 1;
    if (list.failed || *first)
        return 2;
    if (ibn_core_arrays_add(&list, SIZE_MAX, 2) || !list.failed)
        return 3;
    ibn_core_arrays_free(&list);
    return list.last != 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="apt install gcc")
def test_a_list_grows_and_fails_only_without_memory(tmp_path):
    (tmp_path / "x.c").write_text(PROGRAM)
    subprocess.run(["cc", "-I", CSRC, "-o", tmp_path / "x", tmp_path / "x.c"], check=True)
    assert subprocess.run([tmp_path / "x"], check=False).returncode == 0
