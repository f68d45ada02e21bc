"""Data-parallel training on real images: handwritten digits, a small network, any number of ranks.

    hocket run -n 4 -- python examples/train_digits.py
    hocket run -n 4 -- python examples/train_digits.py --check

Every batch is cut into 12 shards, whatever the number of ranks. A rank computes the gradient of
each of its shards by itself, and `reproducible_sum` adds all shards by a fixed tree, so the weights
do not depend, to the last bit, on how many ranks share the work. `--check` shows it: 1, 2, 3 and 4
ranks train from the same start and end in weights of one SHA-256, while ranks that add their own
shards up before they meet do not.
"""

import os

# One BLAS thread: the ranks share the processors, and a product's bits must not depend on them.
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import hashlib
import sys
import time

import numpy as np

import hocket

SHARDS = 12
SHARD_IMAGES = 10
BATCH = SHARDS * SHARD_IMAGES
LAYERS = (64, 128, 10)
LEARNING_RATE, MOMENTUM, DECAY = 0.2, 0.9, 1e-3
WANTED_ACCURACY = 0.95


def load():
    """Images as float32 rows of 64 pixels in [0, 1], and their digits: for training, for testing."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
    except ImportError:
        return make()
    images, digits = load_digits(return_X_y=True)
    images = (images / 16).astype("float32")
    return train_test_split(images, digits, test_size=360, random_state=0, stratify=digits)


def make():
    """Without scikit-learn, a set of the same size made here: ten patterns with much noise, each
    shifted by a pixel or none."""
    random = np.random.default_rng(0)
    patterns = (random.random((10, 8, 8)) < 0.4).astype("float32")
    digits = np.arange(1797) % 10
    images = np.empty((len(digits), 64), "float32")
    for image, digit in zip(images, digits):
        shifted = np.roll(patterns[digit], random.integers(-1, 2), axis=random.integers(2))
        noisy = shifted + random.normal(0, 0.35, (8, 8))
        image[:] = np.clip(noisy, 0, 1).ravel()
    order = random.permutation(len(digits))
    train, test = order[360:], order[:360]
    return images[train], images[test], digits[train], digits[test]


class Network:
    """A perceptron with one hidden layer, whose parameters lie in one flat array."""

    def __init__(self, seed):
        inputs, hidden, outputs = LAYERS
        shapes = [(inputs, hidden), (hidden,), (hidden, outputs), (outputs,)]
        self.parameters = np.zeros(sum(int(np.prod(shape)) for shape in shapes), "float32")
        self.w1, self.b1, self.w2, self.b2 = self.views(self.parameters, shapes)
        self.shapes = shapes
        random = np.random.default_rng(seed)
        for weights in (self.w1, self.w2):
            weights[:] = random.standard_normal(weights.shape) * np.sqrt(2 / len(weights))

    @staticmethod
    def views(flat, shapes):
        """The parts of a flat array, in the given shapes."""
        parts = []
        for shape in shapes:
            size = int(np.prod(shape))
            parts.append(flat[:size].reshape(shape))
            flat = flat[size:]
        return parts

    def classify(self, images):
        """The likeliest digit of each image."""
        return (np.maximum(images @ self.w1 + self.b1, 0) @ self.w2 + self.b2).argmax(axis=1)

    def gradient(self, images, digits, out):
        """Writes the gradient of the mean cross-entropy into `out`; returns the loss."""
        hidden = np.maximum(images @ self.w1 + self.b1, 0)
        scores = hidden @ self.w2 + self.b2
        scores -= scores.max(axis=1, keepdims=True)
        likelihood = np.exp(scores)
        likelihood /= likelihood.sum(axis=1, keepdims=True)
        rows = np.arange(len(digits))
        loss = -np.log(likelihood[rows, digits] + 1e-30).mean()
        likelihood[rows, digits] -= 1
        likelihood /= np.float32(len(digits))
        d_w1, d_b1, d_w2, d_b2 = self.views(out, self.shapes)
        np.matmul(hidden.T, likelihood, out=d_w2)
        likelihood.sum(axis=0, out=d_b2)
        d_hidden = (likelihood @ self.w2.T) * (hidden > 0)
        np.matmul(images.T, d_hidden, out=d_w1)
        d_hidden.sum(axis=0, out=d_b1)
        return loss


def own_range(count, comm):
    """The part [first, last) of `count` things that this rank takes care of."""
    return count * comm.rank // comm.size, count * (comm.rank + 1) // comm.size


def sum_by_tree(comm, gradients, total):
    """Averages the shards of all ranks in an order that the ranks have no part in."""
    comm.reproducible_sum(gradients, out=total, op="avg")


def sum_own_first(comm, gradients, total):
    """The usual way: each rank adds its own shards up, then the ranks add theirs."""
    gradients.sum(axis=0, out=total)
    comm.all_reduce(total)
    total /= np.float32(SHARDS)


def accuracy(comm, network, images, digits):
    """The share of right answers, each rank trying a part of the images."""
    first, last = own_range(len(images), comm)
    right = np.count_nonzero(network.classify(images[first:last]) == digits[first:last])
    return comm.all_reduce(np.array(right))[()] / len(images)


def train(comm, data, epochs, combine=sum_by_tree, report=lambda *_: None):
    """Trains from a fixed start. Every rank returns the same network."""
    images, test_images, digits, test_digits = data
    network = Network(seed=0)
    if comm.rank != 0:
        network.parameters[:] = np.nan  # to be replaced by rank 0's
    comm.broadcast(network.parameters)

    first, last = own_range(SHARDS, comm)
    gradients = np.empty((last - first, network.parameters.size), "float32")
    total = np.empty_like(network.parameters)
    velocity = np.zeros_like(network.parameters)
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(len(images))
        rate = np.float32(LEARNING_RATE * (1 - epoch / epochs))
        losses = []
        for start in range(0, len(order) - BATCH + 1, BATCH):
            shards = order[start : start + BATCH].reshape(SHARDS, SHARD_IMAGES)[first:last]
            for shard, gradient in zip(shards, gradients):
                losses.append(network.gradient(images[shard], digits[shard], gradient))
            combine(comm, gradients, total)
            total += np.float32(DECAY) * network.parameters
            velocity = np.float32(MOMENTUM) * velocity - rate * total
            network.parameters += velocity
        loss = comm.all_reduce(np.array([np.sum(losses), len(losses)]))
        report(epoch, loss[0] / loss[1], accuracy(comm, network, test_images, test_digits))
    return network


def digest(network):
    """What tells whether two networks are the same to the last bit."""
    return hashlib.sha256(network.parameters.tobytes()).hexdigest()


def run_training(comm, data, epochs):
    """The main job: trains on all ranks; rank 0 shows progress. True when it learnt enough."""
    started = time.perf_counter()

    def report(epoch, loss, test_accuracy):
        if comm.rank == 0 and (epoch < 3 or (epoch + 1) % 5 == 0 or epoch + 1 == epochs):
            bar = "#" * round(40 * test_accuracy)
            print(f"epoch {epoch + 1:3}  loss {loss:.4f}  test {test_accuracy:6.2%}  {bar}", flush=True)

    if comm.rank == 0:
        print(f"{len(data[0])} training and {len(data[1])} test images, ranks: {comm.size}, "
              f"batches of {BATCH} in {SHARDS} shards", flush=True)
    network = train(comm, data, epochs, report=report)
    result = accuracy(comm, network, data[1], data[3])
    if comm.rank == 0:
        verdict = "above" if result > WANTED_ACCURACY else "NOT above"
        print(f"test accuracy {result:.2%}, {verdict} {WANTED_ACCURACY:.0%}, "
              f"in {time.perf_counter() - started:.1f} s", flush=True)
    return result > WANTED_ACCURACY


def digests_by_rank_count(comm, data, epochs, combine):
    """Trains on the first 1, 2, ... ranks in turn; the digest of each, on every rank."""
    digests = {}
    for size in range(1, comm.size + 1):
        with comm.new_group(range(size)) as group:
            mine = digest(train(group, data, epochs, combine)) if group.is_member else None
            if group.is_member and len(set(group.all_gather_object(mine))) != 1:
                raise RuntimeError(f"the {size} ranks differ among themselves")
        digests[size] = comm.broadcast_object(mine)
    return digests


def run_check(comm, data, epochs):
    """Shows that the number of ranks leaves no trace in the weights. True when it does not."""
    say = print if comm.rank == 0 else lambda *_, **__: None
    if comm.size < 2:
        say("--check compares numbers of ranks: run it on 4, hocket run -n 4 -- ...")
        return False
    say("reproducible_sum: SHA-256 of the weights")
    by_tree = digests_by_rank_count(comm, data, epochs, sum_by_tree)
    for size, sha in by_tree.items():
        say(f"  {size} rank{'s' if size > 1 else ' '}  {sha}", flush=True)
    same = len(set(by_tree.values())) == 1
    say("  bit-identical\n" if same else "  NOT the same\n", flush=True)

    say("each rank adds its own shards first, then all_reduce:")
    own_first = digests_by_rank_count(comm, data, epochs, sum_own_first)
    for size, sha in own_first.items():
        say(f"  {size} rank{'s' if size > 1 else ' '}  {sha}", flush=True)
    differ = len(set(own_first.values())) > 1
    say("  they differ, as rounding depends on who adds what" if differ else "  NO difference: "
        "this check would not notice a wrong sum", flush=True)
    return same and differ


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--check", action="store_true",
                        help="also show that 1, 2, 3 and 4 ranks end in the same bits")
    arguments = parser.parse_args()
    with hocket.init() as comm:
        data = load()
        good = run_training(comm, data, arguments.epochs)
        if arguments.check:
            good = run_check(comm, data, max(1, arguments.epochs // 4)) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
