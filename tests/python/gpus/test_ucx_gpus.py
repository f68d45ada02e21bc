"""Arrays in GPUs' memory between hosts, by UCX: hosts that are pretended, on GPUs that are none."""

import pathlib
import subprocess
import sys

import hocket_command
import pytest
from processes import BUILD, needs_ucx, with_package

HOCKET = hocket_command.find()
FAKE = BUILD / "fake_cuda"
PROGRAM = pathlib.Path(__file__).parents[2] / "gpu" / "moves_on_gpus.py"
pytestmark = [
    pytest.mark.skipif(not FAKE.exists(), reason="this build has no fake driver"),
    needs_ucx,
]


def run(*parts, ranks=3, hosts=None, options=(), **variables):
    environment = with_package(LD_LIBRARY_PATH=str(FAKE), HOCKET_NCCL_LIBRARY="none",
                               HOCKET_UCX_GPUS="always", HOCKET_TEST_HOSTS=str(hosts or ranks))
    done = subprocess.run(
        [HOCKET, "run", "-n", str(ranks), *options, "--", sys.executable, PROGRAM, "fake", *parts],
        env={**environment, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return done


def expect(done, line, times):
    assert done.returncode == 0 and done.stdout.count(line) == times, done.stdout


@pytest.mark.parametrize("ranks, hosts", [(2, 2), (3, 3), (4, 2)])
def test_movement(ranks, hosts):
    expect(run("movement", ranks=ranks, hosts=hosts), "movement done", ranks)


def test_calls_keep_the_order_of_the_stream_with_those_that_the_host_carries():
    expect(run("order"), "order done", 3)


def test_groups():
    expect(run("groups", ranks=4), "groups done", 4)


def test_messages():
    expect(run("messages"), "messages done", 3)


@pytest.mark.parametrize("part", ["deadline", "stopped", "mismatch", "length"])
def test_what_fails_says_so_and_the_ranks_go_on(part):
    expect(run(part), f"{part} done", 3)


def test_a_killed_rank_is_found_and_the_others_go_on():
    expect(run("death", options=["--keep-going"]), "death done", 2)


@pytest.mark.parametrize("value, note", [
    ("never", "GPU engine ucx: HOCKET_UCX_GPUS=never"),
    ("always", "carries movement and messages of GPUs"),
    ("auto", "carries messages of GPUs alone: between some ranks it has no lane for their memory"),
])
def test_it_says_what_it_carries(value, note):
    done = run("movement", ranks=2, HOCKET_UCX_GPUS=value, HOCKET_LOG="debug")
    expect(done, "movement done", 2)
    assert [line for line in done.stdout.splitlines() if line.endswith(note)], done.stdout


def test_without_a_lane_for_gpus_it_carries_messages():
    expect(run("messages", ranks=2, HOCKET_UCX_GPUS="auto"), "messages done", 2)


def test_captures_of_other_streams_go_on():
    expect(run("beside_capture", ranks=2), "beside_capture done", 2)


def test_a_rank_without_memory_for_it_says_so_at_once():
    done = run("memory", HOCKET_LOG="debug")
    expect(done, "memory done", 3)
    told = [line for line in done.stdout.splitlines() if "GPU engine ucx: " in line]
    assert len(told) == 3, done.stdout
    assert all("rank 1: " in line and "33554432 bytes" in line for line in told), told


def test_broken_connections_are_not_used_again():
    done = run("cut", HOCKET_LOG="debug")
    expect(done, "cut done", 3)
    assert done.stdout.count("carries movement and messages of GPUs") == 6, done.stdout


def test_a_value_that_is_none_is_refused():
    done = run("movement", ranks=2, HOCKET_UCX_GPUS="sometimes")
    assert done.returncode != 0
    assert "HOCKET_UCX_GPUS=sometimes is not one of never, auto, always" in done.stdout
