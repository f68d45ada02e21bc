"""Objects that belong to a process cannot be copied. The error names an alternative."""

import copy
import pickle

import numpy as np
import pytest
from helpers import threads

import hocket


@pytest.mark.parametrize("make", [pickle.dumps, copy.copy, copy.deepcopy])
def test_what_belongs_to_a_process_is_not_copied(make):
    def rank(comm):
        kept = {
            "duplicate": comm,
            "its result": comm.barrier_async(),
            "prepare": comm.prepare_all_reduce(np.zeros(3)),
            "its communicator's": comm.symmetric,
        }
        for advice, what in kept.items():
            with pytest.raises(TypeError, match=f"a hocket.{type(what).__name__} .*: .*{advice}"):
                make(what)
        kept["its result"].wait()
        comm.barrier()

    threads(2, rank)
    server = hocket.StoreServer(trust_network=True)
    store = hocket.connect_store(server.address, trust_network=True)
    with hocket.DevicePool(workers=1) as pool, hocket.Cluster(1) as cluster:
        for what in (server, store, pool, cluster):
            with pytest.raises(TypeError, match=f"a hocket.{type(what).__name__} cannot be copied"):
                make(what)
