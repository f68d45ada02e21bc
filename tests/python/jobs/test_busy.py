"""A crowd of busy processes beside two hosts, for a moment; tools/speed/busy_neighbours.py takes longer."""

import subprocess
import sys
from pathlib import Path

from processes import needs_ucx

TOOL = Path(__file__).parents[3] / "tools" / "speed" / "busy_neighbours.py"


@needs_ucx
def test_nobody_is_taken_for_dead_who_is_only_slow():
    # However slow they are: the calls have the time that they need, and so has their end.
    done = subprocess.run(
        [sys.executable, TOOL, "--seconds", "6", "--busy", "16", "--silence", "0.5"],
        capture_output=True, text=True, timeout=55)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " calls in " in done.stdout, done.stdout
