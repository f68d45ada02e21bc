"""Settings, results, anything that is no array.   hocket run -n 4 -- python examples/python/objects.py"""

import numpy as np

import hocket

with hocket.init() as comm:
    # Plain data and arrays travel by a safe codec; pickle only by allow_pickle=True.
    settings = {"rate": 0.1, "layers": [64, 32, 10]} if comm.rank == 0 else None
    settings = comm.broadcast_object(settings)
    assert settings["layers"] == [64, 32, 10]

    report = {"rank": comm.rank, "best": np.arange(comm.rank + 1)}
    reports = comm.gather_object(report)
    if comm.rank == 0:
        assert [len(r["best"]) for r in reports] == list(range(1, comm.size + 1))
        for r in reports:
            print(f"rank {r['rank']} found {r['best'].tolist()}")

    # Without waiting: compute something else meanwhile.
    works = [comm.all_gather_object_async({"rank": comm.rank, "step": step}) for step in range(3)]
    for step, work in enumerate(works):
        assert [one["rank"] + one["step"] for one in work.wait()] == [rank + step for rank in range(comm.size)]
