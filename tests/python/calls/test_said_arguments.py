"""Arguments that say something are not passed over in silence."""

import math

import numpy as np
import pytest
from helpers import threads

import hocket
from hocket import fft, linalg
from hocket.distribution import Box, Slab


def test_beta_without_c():
    def body(comm):
        x = np.eye(4) if comm.size == 1 else np.eye(4)[2 * comm.rank : 2 * comm.rank + 2]
        plan = linalg.Matmul(comm, (4, 4, 4), Slab(0), Slab(0), Slab(0))
        for call in (lambda: plan(x, x, beta=2.0), lambda: linalg.matmul(comm, x, x, beta=1)):
            with pytest.raises(hocket.InvalidArgument, match=r"beta is .* no c to scale; give c"):
                call()
        assert np.array_equal(plan(x, x, beta=0), x)
        assert np.array_equal(plan(x, x, x), 2 * x)
        assert np.array_equal(plan(x, x, x, beta=3), 4 * x)

    threads(2, body)


@pytest.mark.parametrize("axes", [0, -1, 3, 4, 2**62])
def test_axes_of_a_transform(axes):
    def body(comm):
        box = Box((0, 0), (4, 4))
        with pytest.raises(hocket.InvalidArgument, match=f"axes is {axes}, expected how many|{axes} axes of 2 are"):
            fft.FFT(comm, (4, 4), box, axes=axes)
        with pytest.raises(hocket.InvalidArgument, match="axes"):
            fft.fft(comm, np.ones((4, 4), complex), box, axes=axes)
        assert fft.FFT(comm, (4, 4), box, axes=1).shape == (4, 4)

    threads(1, body)


def test_none_is_the_default_deadline_everywhere():
    def body(comm):
        usual = comm.deadline
        assert usual == 300
        comm.deadline = math.inf
        assert comm.deadline == math.inf
        comm.barrier(deadline=None)
        own = comm.duplicate()
        assert own.deadline == math.inf
        comm.deadline = None
        assert comm.deadline == usual
        comm.deadline = 20
        group = comm.duplicate()
        group.deadline = 5
        group.deadline = None
        assert group.deadline == 20  # what it was made with

    threads(2, body)
