"""A program's own tests on several ranks: ``pytest examples/testing``.

Each test runs on the ranks that its mark says. They are threads; ``--hocket-processes`` makes them
processes.
"""

import numpy as np
import pytest

import hocket
from hocket import testing


def moving_average(comm, x):
    """Of three neighbours in a list that is spread over the ranks; zeros beyond its ends."""
    before, after = np.zeros(1), np.zeros(1)
    outgoing, incoming = [], []
    if comm.rank > 0:
        outgoing.append((x[:1], comm.rank - 1))
        incoming.append((before, comm.rank - 1))
    if comm.rank + 1 < comm.size:
        outgoing.append((x[-1:], comm.rank + 1))
        incoming.append((after, comm.rank + 1))
    comm.exchange(outgoing, incoming)
    return np.convolve(np.concatenate([before, x, after]), np.ones(3) / 3, "valid")


@pytest.mark.ranks(1, 2, 4)
def test_it_is_the_same_on_any_number_of_ranks(comm):
    whole = np.arange(8.0) ** 2
    own = np.split(whole, comm.size)[comm.rank]
    wanted = np.convolve(whole, np.ones(3) / 3, "same")
    found = comm.all_gather(moving_average(comm, own), np.empty(8))
    assert np.allclose(found, wanted)


@pytest.mark.ranks(3, processes=True)
def test_the_loss_of_a_neighbour_is_told(comm):
    if comm.rank == 0:
        testing.kill(1, after=0.02)
    with pytest.raises(hocket.PeerDied, match="rank 1") as caught:
        while True:
            moving_average(comm, np.ones(4))
            comm.barrier()
    assert caught.value.rank == 1
    left = comm.rebuild(deadline=10)
    assert left.size == 2
