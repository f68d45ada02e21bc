"""Connections between pretended hosts that break while both ranks go on living."""

import subprocess
import sys
from pathlib import Path

import hocket_command
from processes import needs_ucx

HOCKET = hocket_command.find()
TOOLS = Path(__file__).parents[3] / "tools" / "faults"

PROGRAM = r"""
import os, sys, time
rank = int(os.environ["HOCKET_RANK"])
os.environ["HOCKET_HOST"] = f"{rank}/"
sys.path.insert(0, sys.argv[1])
import chaos_hosts
import numpy as np
import hocket

comm = hocket.init(timeout=50)
comm.deadline = 40
x = np.ones(100)
comm.all_reduce(x)
if rank == 0:
    cut = [chaos_hosts.cut(os.getpid(), fd) for fd in chaos_hosts.sockets_of(os.getpid())]
    assert any(cut)
    comm.broadcast(x, root=0)  # has ended here once the message is handed over
    while not os.path.exists(sys.argv[2]):  # no other call, whose failure would tell the other
        time.sleep(0.01)
else:
    try:
        comm.broadcast(x, root=0)
        print("no error", flush=True)
    except hocket.Error as error:
        print(type(error).__name__, flush=True)
    finally:
        open(sys.argv[2], "w").close()
"""


@needs_ucx
def test_what_a_broken_connection_has_swallowed_is_not_waited_for(tmp_path):
    done = subprocess.run(
        [HOCKET, "run", "-n", "2", "--keep-going", "--", sys.executable, "-c", PROGRAM, str(TOOLS),
         str(tmp_path / "done")],
        text=True, capture_output=True, timeout=58,
    )
    assert done.stdout == "[1] PeerDied\n", done.stdout + done.stderr
