"""A server in an event loop: rank 0 answers whoever asks, and does other work meanwhile.

    hocket run -n 4 -- python examples/python/event_loop.py
"""

import asyncio

import numpy as np

import hocket

QUESTIONS = 3


async def serve(comm):
    """Each question is a row; its sum goes back, whoever it came from."""
    answers = []
    count = QUESTIONS * (comm.size - 1)
    async for row, received in comm.receives(100, "float64", tag=1, count=count):
        answers.append(comm.send_async(np.array([row.sum()]), received.source, tag=2))
    for answer in answers:
        await answer


async def tick(ticks):
    while True:
        ticks.append(len(ticks))
        await asyncio.sleep(0.001)


async def main(comm):
    ticks = []
    ticker = asyncio.ensure_future(tick(ticks))
    if comm.rank == 0:
        await serve(comm)
    else:
        for i in range(QUESTIONS):
            answer = np.empty(1)
            question = np.full(100, comm.rank + i, "float64")
            await comm.send_async(question, 0, tag=1)
            await asyncio.wait_for(comm.recv_async(answer, 0, tag=2), timeout=30)
            assert answer[0] == 100 * (comm.rank + i)
    await comm.barrier_async()
    ticker.cancel()
    if comm.rank == 0:
        print(f"answered {QUESTIONS * (comm.size - 1)} questions")


if __name__ == "__main__":
    with hocket.init() as communicator:
        asyncio.run(main(communicator))
