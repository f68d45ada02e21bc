"""The face of bagua.torch_api.communication, on CPU tensors. Needs PyTorch."""

import pytest
from torch_ranks import run

pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", ["reductions", "movement"])
def test_collectives(name, n, tmp_path):
    run("bagua_programs.py", name, n, tmp_path)


@pytest.mark.parametrize("name", ["parts", "groups", "objects", "refusals", "aborts"])
def test_what_else_there_is(name, tmp_path):
    run("bagua_programs.py", name, 3, tmp_path)


def test_the_documented_examples(tmp_path):
    run("bagua_programs.py", "the_documented", 2, tmp_path)
