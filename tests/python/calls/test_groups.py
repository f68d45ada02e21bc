"""Groups made of others, their life, and threads that use different ones at once."""

import gc
import threading
import weakref

import numpy as np
import pytest
from helpers import threads, values

import hocket


def test_facts():
    def body(comm):
        assert comm.size == 3 and 0 <= comm.rank < 3 and comm.is_member
        assert comm.world_ranks == (0, 1, 2) and comm.hosts == (0, 0, 0)
        assert comm.name in repr(comm) and f"rank {comm.rank} of 3" in repr(comm)
        return comm.rank

    assert threads(3, body) == [0, 1, 2]


def test_new_group_split_duplicate():
    def body(comm):
        group = comm.new_group([2, 0])
        assert group.is_member == (comm.rank != 1)
        if group.is_member:
            assert group.rank == [1, None, 0][comm.rank] and group.world_ranks == (2, 0)
            assert group.all_gather(np.array(comm.rank)).tolist() == [2, 0]
        else:
            assert group.rank == -1 and "not a member" in repr(group)
        parts = comm.split(comm.rank % 2, key=-comm.rank)
        assert parts.world_ranks == ((2, 0) if comm.rank != 1 else (1,))
        assert not comm.split(-1).is_member
        twin = comm.duplicate()
        assert twin.rank == comm.rank and twin.name != comm.name
        assert twin.all_reduce(np.array(comm.rank)) == 3
        assert comm.intra_node.size == 3 and comm.inter_node.size == 1
        twin.close()
        with pytest.raises(hocket.Error):
            twin.barrier()
        comm.barrier()

    threads(3, body)


def test_groups_are_kept_by_weak_references_no_longer_than_by_others():
    def body(comm):
        group = comm.duplicate()
        seen = weakref.ref(group)
        assert seen() is group
        group.close()
        del group
        gc.collect()
        return seen() is None

    assert threads(2, body) == [True, True]


def test_context_manager():
    def body(comm):
        with comm.duplicate() as group:
            group.barrier()
        with pytest.raises(hocket.Error):
            group.barrier()

    threads(2, body)


def test_world_of_one():
    with hocket.init() as comm:
        assert (comm.rank, comm.size) == (0, 1)
        assert comm.all_reduce(np.array(3.0)) == 3
        assert comm.all_gather(np.arange(3)).tolist() == [[0, 1, 2]]


def test_threads_use_different_communicators_at_once():
    def body(comm):
        groups = [comm.duplicate() for _ in range(3)]
        wrong = []

        def work(index):
            for step in range(200):
                x = values(comm.rank + step, 100 * (index + 1), "int64")
                groups[index].all_reduce(x)
                wanted = sum(values(rank + step, 100 * (index + 1), "int64") for rank in range(2))
                if not np.array_equal(x, wanted):
                    wrong.append((index, step))

        workers = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not wrong

    threads(2, body)
