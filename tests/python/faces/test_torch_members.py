"""Groups of torch.distributed whose members change. Needs PyTorch; some of it PyTorch 2.15."""


import pytest
import torch_ranks

dist = pytest.importorskip("torch.distributed", reason="PyTorch is not installed")

movable = pytest.mark.skipif(
    not hasattr(dist, "_reconfigure"), reason="this PyTorch has no groups whose members change"
)


def run(name, n, folder, killed=()):
    outputs = torch_ranks.run("torch_members.py", name, n, folder, killed=killed)
    assert all(out == "done\n" for rank, out in enumerate(outputs) if rank not in killed), outputs


@movable
def test_members_come_and_go(tmp_path):
    run("grow_and_shrink", 4, tmp_path, killed=[1])


@movable
def test_a_member_that_does_not_come_is_named_and_the_others_try_again(tmp_path):
    run("one_does_not_come", 3, tmp_path, killed=[1])


@movable
def test_calls_of_the_group_before_end(tmp_path):
    run("aborted", 2, tmp_path)


@movable
def test_fixed_groups_say_how_to_make_others(tmp_path):
    run("refused", 2, tmp_path)


@pytest.mark.skipif(not hasattr(dist, "shrink_group"), reason="this PyTorch cannot shrink groups")
def test_groups_shrink(tmp_path):
    run("shrink", 4, tmp_path, killed=[1])
