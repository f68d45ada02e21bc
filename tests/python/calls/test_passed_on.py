"""Texts that one rank passes on to others: whole, or cut where a clause or a word ends, which they say."""

import re

import numpy as np
import pytest
from helpers import threads

import hocket

LONG = np.ones(2, np.longdouble)
REASONS = {
    "short": "no more",
    "as long as can be": "x" * 200,
    "one word": "y" * 900,
    "no ascii": "ä" * 150 + "€" * 300,
    "words": " ".join(["word"] * 200),
    "clauses": "; ".join(f"clause {k} of many" for k in range(60)),
    "sentences": ". ".join(f"Sentence {k} is here" for k in range(60)),
    "an early clause": "so; " + " ".join(["word"] * 200),
}


def check(found, whole):
    """Returns the part of a reason that arrived."""
    match = re.search(r"rank 1 refused .*? on world: (.*); the communicator can be used further$", found, re.DOTALL)
    assert match, found
    came = match[1]
    if came == whole:
        return
    assert came.endswith(" ..."), came
    part = came.removesuffix(" ...")
    assert whole.startswith(part) and len(part) > 40
    if " " in whole:
        assert not (whole[len(part)].isalnum() and part[-1].isalnum()), came


@pytest.mark.parametrize("name", REASONS)
def test_refusals_are_cut_between_words(name):
    def body(comm):
        with pytest.raises(hocket.InvalidArgument) as caught:
            comm.refuse(REASONS[name]) if comm.rank == 1 else comm.barrier()
        if comm.rank == 0:
            check(str(caught.value), REASONS[name])
            assert (REASONS[name] in str(caught.value)) == (len(REASONS[name].encode()) <= 200)
        assert comm.all_reduce(1) == 2

    threads(2, body)


@pytest.mark.parametrize("x", [LONG, np.zeros(2, "M8[s]"), np.zeros(2, object), np.zeros(2, ">f4")], ids=str)
def test_the_mends_of_refusals_are_not_cut(x):
    def body(comm):
        with pytest.raises(hocket.InvalidArgument) as caught:
            comm.all_reduce(x if comm.rank == 1 else np.ones(2))
        texts[comm.rank] = str(caught.value)

    texts = {}
    threads(2, body)
    check(texts[0], texts[1])


@pytest.mark.parametrize("length", [10, 999, 1000, 1001, 5000])
def test_an_operator_s_failure(length):
    text = ("words " * 1000)[:length].strip()

    def fails(a, b):
        raise ValueError(text)

    def body(comm):
        with pytest.raises((hocket.InvalidArgument, ValueError)) as caught:
            comm.all_reduce(np.ones(1), op=hocket.Operator(fails))
        if isinstance(caught.value, hocket.InvalidArgument):
            assert re.search(r"words?( \.\.\.)?; the communicator can be used further$", str(caught.value))

    threads(2, body)
