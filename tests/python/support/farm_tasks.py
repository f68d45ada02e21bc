"""Tasks of the tests of hocket.futures, in a module that workers can import."""

import os
import signal
import threading
import time

import numpy as np

import hocket.futures


def square(x):
    return x * x


def add(a, b=0, *, c=0):
    return a + b + c


def sleep(seconds, value=None):
    time.sleep(seconds)
    return value


def pid():
    return os.getpid()


def deep(depth):
    if depth == 0:
        raise KeyError("at the bottom")
    deep(depth - 1)


class Odd(Exception):
    """Cannot be unpickled: its arguments are not those that it was made with."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


def raise_odd():
    raise Odd(1, 2)


def leave(code):
    raise SystemExit(code)


def unpicklable():
    return threading.Lock()


def die(number=signal.SIGKILL):
    os.kill(os.getpid(), number)
    time.sleep(30)


def die_once(path):
    """Ends the worker of the first who comes here."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return "lived"
    die()


def die_at(i, fatal):
    if i == fatal:
        die()
    return i


def die_second(path):
    """Lets the first who comes here live."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        die()


def wait_at(i, path):
    if path:
        wait_for(path)
    return i


def text_of(i):
    return "x" * (i * 40) if i % 50 == 0 else i


def exit_at_once(code):
    os._exit(code)


def double(array):
    return array * 2


def stamp(array):
    array += 1  # what has come can be written to
    return array.sum(), array.flags.c_contiguous, array


def nest(pool_of_rank_0):
    return pool_of_rank_0


def executor_within():
    with hocket.futures.Executor(1) as pool:
        return pool.submit(square, 5).result()


kept = {}


def keep(value):
    kept["value"] = value


def kept_value():
    return kept.get("value")


def fail_to_begin(text):
    raise ValueError(text)


def speak(text):
    print(text)


def wait_for(path, seconds=20):
    """Returns when the file is there."""
    until = time.monotonic() + seconds
    while not os.path.exists(path):
        if time.monotonic() > until:
            raise TimeoutError(path)
        time.sleep(0.005)
    return os.getpid()


def stay(folder):
    """Leaves a file in the folder, and goes on for long."""
    touch(f"{folder}/{os.getpid()}")
    time.sleep(1000)


def touch(path):
    open(path, "w").close()


def columns(n):
    return np.asfortranarray(np.arange(n * n, dtype="float32").reshape(n, n))
