"""A model trains by torchft over hocket while its replicas are killed, and loses nothing.

    python examples/torchft_training.py --replicas 3 --kills 10

Each replica is a process. One after another is killed without warning and started anew. The others
go on without it, and it takes the model's state from them. All replicas have the same batch at a
step, so the losses are those of a training without torchft, whoever is there. Needs PyTorch and
torchft.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import random
import time
from datetime import timedelta
from multiprocessing.connection import wait

import torch
import torch.nn.functional as F
from torch import nn


class Training:
    """A small network, its optimizer, and batches that follow from the step's number."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(1)
        torch.set_default_dtype(torch.float64)  # three thirds of a gradient are almost the gradient
        self.model = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
                                   nn.Linear(256, 4))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)

    def loss(self, step: int, model: nn.Module) -> torch.Tensor:
        x = torch.randn(64, 16, generator=torch.Generator().manual_seed(step))
        return F.cross_entropy(model(x), x[:, :4].argmax(1))

    def state(self) -> dict:
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load(self, state: dict) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


    def step(self, number: int, model: nn.Module, optimizer) -> float:
        optimizer.zero_grad()  # with torchft: finds out who is there, and gets the state of others
        loss = self.loss(number, model)
        loss.backward()
        optimizer.step()
        return loss.item()


def replica(number: int, lighthouse: str, parent) -> None:
    """Train, and report each step's loss, until the parent says which step is the last."""
    from torch.distributed import TCPStore
    from torchft import DistributedDataParallel, Manager, Optimizer

    from hocket.torch.torchft import ProcessGroupHocket

    logging.disable(logging.WARNING)
    training = Training()
    store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    limit = timedelta(seconds=10)
    manager = Manager(
        pg=ProcessGroupHocket(limit),
        min_replica_size=1,
        load_state_dict=training.load,
        state_dict=training.state,
        timeout=limit,
        rank=0,
        world_size=1,
        store_addr="localhost",
        store_port=store.port,
        lighthouse_addr=lighthouse,
        replica_id=f"replica{number}",
        port=0,
    )
    model = DistributedDataParallel(manager, training.model)
    optimizer = Optimizer(manager, training.optimizer)
    last = None
    while last is None or manager.current_step() < last:
        before = manager.current_step()
        loss = training.step(before, model, optimizer)
        if manager.current_step() == before + 1:  # all that were there have made it
            parent.send((before, loss, manager.num_participants()))
        if parent.poll():
            last = parent.recv()
    manager.shutdown(wait=False)


class Replicas:
    """The processes, of which some are killed and started anew."""

    def __init__(self, count: int, lighthouse: str) -> None:
        self.lighthouse = lighthouse
        self.context = multiprocessing.get_context("forkserver")
        # A process that is started anew need not import these first, which takes seconds.
        self.context.set_forkserver_preload(["torch", "torchft", "hocket.torch.torchft"])
        self.running: dict = {}
        for number in range(count):
            self.start(number)

    def start(self, number: int) -> None:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(
            target=replica, args=(number, self.lighthouse, theirs), daemon=True
        )
        process.start()
        theirs.close()
        self.running[number] = (process, ours)

    def reports(self, timeout: float):
        """What has come within this time; replicas that have ended are forgotten."""
        pipes = {pipe: number for number, (_, pipe) in self.running.items()}
        for pipe in wait(list(pipes), timeout):
            try:
                yield pipe.recv()
            except (EOFError, OSError):
                process, _ = self.running.pop(pipes[pipe])
                process.join()
                if process.exitcode != 0:
                    told = f"replica {pipes[pipe]} ended with {process.exitcode}"
                    raise SystemExit(told) from None

    def kill(self, number: int) -> None:
        process, pipe = self.running.pop(number)
        process.kill()
        process.join()
        pipe.close()
        self.start(number)

    def end_at(self, step: int) -> None:
        for _, pipe in self.running.values():
            pipe.send(step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    how = parser.parse_args()
    from torchft.coordination import LighthouseServer

    alone, wanted = Training(), []  # the same training, and its losses
    lighthouse = LighthouseServer(bind="127.0.0.1:0", min_replicas=1, join_timeout_ms=100,
                                  quorum_tick_ms=10, heartbeat_timeout_ms=1000)
    replicas = Replicas(how.replicas, lighthouse.address())
    chance = random.Random(how.seed)
    kills, since, made, differ, began = 0, 0, set(), 0.0, time.monotonic()
    while replicas.running:
        for step, loss, together in replicas.reports(60.0):
            while len(wanted) <= step:
                wanted.append(alone.step(len(wanted), alone.model, alone.optimizer))
            made.add(step)
            differ = max(differ, abs(loss - wanted[step]))
            since = since + 1 if together == how.replicas else 0
        if since < 10 * how.replicas or kills > how.kills:
            continue  # all should have been there for some steps
        since, kills = 0, kills + 1
        if kills <= how.kills:
            replicas.kill(chance.randrange(how.replicas))
        else:
            replicas.end_at(max(made) + 20)
    took = time.monotonic() - began
    lighthouse.shutdown()
    print(f"{len(made)} steps, {how.kills} replicas killed, {took:.1f} s; losses {wanted[0]:.4f} "
          f"to {wanted[-1]:.4f}, at most {differ:.2g} from those without torchft")
    if sorted(made) != list(range(len(made))) or differ > 1e-6:
        raise SystemExit("the training differs from one without faults")


if __name__ == "__main__":
    main()
