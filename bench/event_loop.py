"""Measures what pending works cost an event loop: ``hocket run -n 2 -- python bench/event_loop.py``.

Rank 0 has 100 receives pending in one asyncio loop. Every half a millisecond rank 1 answers one of
them, and rank 0 posts this receive again. Meanwhile one task sleeps for a millisecond and measures
how late it wakes up. Another task measures how long an iteration of the loop takes. The same
measurement without pending receives comes first, for comparison.
"""

import asyncio
import time

import numpy as np

import hocket

PENDING = 100
SECONDS = 3.0


async def lateness(found):
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(0.001)
        found.append(time.perf_counter() - begun - 0.001)


async def turns(found):
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(0)
        found.append(time.perf_counter() - begun)
        await asyncio.sleep(0.0005)


async def measure(title, calls):
    late, turn, count = [], [], [0]
    tasks = [asyncio.ensure_future(task) for task in (lateness(late), turns(turn))]
    tasks += [asyncio.ensure_future(call(count)) for call in calls]
    await asyncio.sleep(SECONDS)
    for task in tasks[:2]:
        task.cancel()
    shown = [f"{1e6 * np.percentile(times, q):6.0f}" for times in (late, turn) for q in (50, 99)]
    print(f"{title:28} {count[0] / SECONDS:8.0f} {'  '.join(shown)}", flush=True)
    return tasks[2:]


async def ask(comm, tag, stop, count):
    x = np.empty(16)
    while not stop:
        await comm.send_async(np.ones(1), 1, tag=tag)
        await comm.recv_async(x, 1, tag=tag)
        count[0] += 1


async def main(comm):
    print(f"{'':28} calls/s   late p50     p99  turn p50    p99  (us)")
    await measure("nothing pending", [])
    stop = []
    calls = [lambda count, tag=tag: ask(comm, tag, stop, count) for tag in range(PENDING)]
    tasks = await measure(f"{PENDING} pending, answered in turn", calls)
    stop.append(True)
    await asyncio.gather(*tasks)
    silent = [comm.recv_async(np.empty(1), 1, tag=1000 + i) for i in range(PENDING)]

    async def wait(work, count):
        await work

    tasks = await measure(f"{PENDING} pending, not answered", [
        lambda count, work=work: wait(work, count) for work in silent
    ])
    comm.send(np.ones(1), 1, tag=PENDING)
    await asyncio.gather(*tasks)


def answer(comm):
    """Answers questions of rank 0 until the last one, which has the tag PENDING."""
    asked = [comm.recv_async(np.empty(1), 0, tag=tag) for tag in range(PENDING + 1)]
    while True:
        for i in hocket.wait_some(asked):
            if i == PENDING:
                for tag in range(PENDING):
                    comm.send(np.ones(1), 0, tag=1000 + tag)
                for work in asked[:PENDING]:
                    work._give_up()
                return
            asked[i].wait()
            time.sleep(0.0005)
            comm.send(np.ones(16), 0, tag=i)
            asked[i] = comm.recv_async(np.empty(1), 0, tag=i)


if __name__ == "__main__":
    communicator = hocket.init()
    if communicator.rank == 0:
        asyncio.run(main(communicator))
    else:
        answer(communicator)
