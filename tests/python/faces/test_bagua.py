"""The face of bagua.torch_api.communication, on CPU tensors. Needs PyTorch."""

import threading
import time

import pytest
from helpers import threads
from torch_ranks import run

import hocket

pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", ["reductions", "movement"])
def test_collectives(name, n, tmp_path):
    run("bagua_programs.py", name, n, tmp_path)


@pytest.mark.parametrize("name", ["parts", "groups", "objects", "refusals", "aborts", "registered"])
def test_what_else_there_is(name, tmp_path):
    run("bagua_programs.py", name, 3, tmp_path)


def test_the_documented_examples(tmp_path):
    run("bagua_programs.py", "the_documented", 2, tmp_path)


class World:
    """Eight ranks on three hosts of unequal sizes, as rank `rank` sees them."""

    hosts = (0, 0, 1, 1, 1, 2, 1, 0)
    size = 8

    def __init__(self, rank):
        self.rank = rank
        self.is_member = True
        self.made = []

    def new_group(self, ranks):
        self.made.append(("group", list(ranks)))
        return self

    def split(self, color):
        self.made.append(("split", color))
        return self


@pytest.mark.parametrize("rank", range(8))
def test_groups_over_several_nodes(rank):
    from hocket.compat.bagua import communication

    world = World(rank)
    group = communication.BaguaProcessGroup([1, 2, 3, 5, 7], None, "1", world)
    local = {0: 0, 1: 1, 7: 2, 2: 0, 3: 1, 4: 2, 6: 3, 5: 0}  # each one's number on its host
    assert group.inter_ranks == [r for r in group.ranks if local[r] == local[1]] == [1, 3]
    assert group.intra_ranks == [r for r in group.ranks if World.hosts[r] == World.hosts[rank]]
    color = World.hosts[rank] if rank in group.ranks else -1
    assert world.made == [("group", group.ranks), ("group", [1, 3]), ("split", color)]


class OnGpu:
    """Says so of itself; the call's own tensors are what is moved."""

    is_cuda = True


def pending(comm, by_whom):
    import torch
    from hocket.compat.bagua._communicator import BaguaCommunicator

    ours = BaguaCommunicator(comm)
    if comm.rank == 1:
        # A call that rank 0 takes no part in, as one on a stream: begun, and waited for by `finish`.
        if by_whom == 1:
            threading.Timer(0.2, ours.abort).start()
        try:
            ours._call("all_reduce", OnGpu(), torch.zeros(3), None, "sum")
            ours.finish()
            ended = "quietly"
        except hocket.Aborted as error:
            ended = type(error).__name__
    else:
        if by_whom == 0:
            time.sleep(0.2)
            ours.abort()
        give_up = time.monotonic() + 30
        while not ours.check_abort() and time.monotonic() < give_up:
            time.sleep(0.01)
        ended = "not pending"
    with pytest.raises(hocket.Aborted):
        ours._call("all_reduce", OnGpu(), torch.zeros(3), None, "sum")
    return ended


@pytest.mark.parametrize(("by_whom", "ended"), [(1, "quietly"), (0, "Aborted")])
def test_calls_on_streams_end_quietly_where_their_own_process_aborts(by_whom, ended):
    assert threads(2, pending, by_whom) == ["not pending", ended]
