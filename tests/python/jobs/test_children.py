"""Children of ranks inherit a rank's variables. The error says that they are children."""

import shutil
import subprocess
import sys

import hocket_command
import pytest
from processes import with_package

POOL = """
import multiprocessing, sys
import hocket
comm = hocket.init(timeout=30)
def square(x): return x * x
if __name__ == "__main__" or sys.argv[1] == "bare":
    context = multiprocessing.get_context(sys.argv[2])
    with context.Pool(2) as pool:
        print(pool.map(square, [1, 2]))
"""

GUARDED = """
import multiprocessing, sys
import hocket
def square(x): return x * x
if __name__ == "__main__":
    comm = hocket.init(timeout=30)
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        print(pool.map(square, [comm.rank, 3]))
    comm.barrier()
"""

STARTS = """
import os, subprocess, sys
import hocket
comm = hocket.init(timeout=30)
program = "import hocket; print(hocket.init(timeout=30).size)"
given = dict(os.environ, EXTRA="1") if sys.argv[1] == "copied" else None
done = subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True)
print(done.stdout or done.stderr.splitlines()[-1])
comm.barrier()
"""

FORKS = """
import os
import hocket
comm = hocket.init(timeout=30)
child = os.fork()
if child == 0:
    try:
        hocket.init(timeout=30)
    except hocket.InvalidArgument as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
comm.barrier()
"""

ALONE = """
import os, subprocess, sys
import hocket
comm = hocket.init(timeout=30)
program = "import hocket; print('world of', hocket.init(timeout=30).size)"
command = [sys.executable, "-c", program]
print(subprocess.run([*sys.argv[1:], *command], capture_output=True, text=True))
comm.barrier()
"""


def run(path, program, *arguments, launcher=("run", "-n", "2", "--")):
    path.write_text(program)
    return hocket_command.run(*launcher, sys.executable, str(path), *arguments, env=with_package())


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_pool_below_init_is_told_and_ends(tmp_path, method):
    done = run(tmp_path / "bare.py", POOL, "bare", method)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "is a child of rank" in said and '`if __name__ == "__main__":`' in said, said
    assert "pass_fds" not in said and said.count("is a child of rank") < 60, said


# Things that keep SIGINT from ending a rank, before its pool starts.
DEAF = {
    "ignores": "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
    "swallows": "import signal; signal.signal(signal.SIGINT, lambda *_: None)",
    "has started a process before":
        "import multiprocessing as m\n"
        "if __name__ == '__main__': p = m.get_context('fork').Process(target=print); p.start(); p.join()",
}


@pytest.mark.parametrize("deaf", DEAF)
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_pool_below_init_ends_without_sigint(tmp_path, method, deaf):
    """Its workers end the rank though SIGINT does not, as in the background of a script."""
    done = run(tmp_path / "deaf.py", DEAF[deaf] + POOL, "bare", method)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "is a child of rank" in said and said.count("is a child of rank") < 60, said


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_a_pool_of_a_guarded_program_works(tmp_path, method):
    done = run(tmp_path / "guarded.py", GUARDED, method)
    assert done.returncode == 0, done.stderr
    assert "[0, 9]" in done.stdout and "[1, 9]" in done.stdout


@pytest.mark.parametrize("given", ["inherited", "copied"])
def test_a_program_that_a_rank_starts_is_told(tmp_path, given):
    done = run(tmp_path / "starts.py", STARTS, given)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("is a child of rank") == 2, done.stdout


def test_a_forked_child_is_told(tmp_path):
    done = run(tmp_path / "forks.py", FORKS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("is a child of rank") == 2, done.stdout


TORCHRUN_ALONE = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": "29500"}


@pytest.mark.parametrize("program", [FORKS, STARTS], ids=["forked", "started"])
@pytest.mark.parametrize("variables", [None, TORCHRUN_ALONE], ids=["hocket run", "torchrun"])
def test_a_child_of_the_only_rank_is_told(tmp_path, program, variables):
    path = tmp_path / "only.py"
    if variables is None:
        done = run(path, program, "inherited", launcher=("run", "-n", "1", "--"))
    else:
        path.write_text(program)
        done = subprocess.run([sys.executable, str(path), "inherited"], capture_output=True,
                              text=True, timeout=50, env={**with_package(), **variables})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("is a child of rank 0") == 1, done.stdout


def test_a_child_of_no_rank_has_a_world_of_its_own(tmp_path):
    path = tmp_path / "none.py"
    path.write_text(STARTS)
    done = subprocess.run([sys.executable, str(path), "inherited"], capture_output=True, text=True,
                          timeout=50, env=with_package())
    assert done.returncode == 0 and done.stdout.split() == ["1"], done.stdout + done.stderr


def test_a_job_within_a_rank_is_a_job_of_its_own(tmp_path):
    """`hocket run` within a rank gives its ranks places of their own."""
    inner = [hocket_command.find(), "run", "-n", "2", "--"]
    done = run(tmp_path / "outer.py", ALONE, *map(str, inner))
    assert done.returncode == 0 and done.stdout.count("world of 2") == 4, done.stdout


@pytest.mark.parametrize("mpirun", ["mpirun.openmpi", "mpirun.mpich"])
def test_another_launcher_within_a_rank_is_told(mpirun):
    if shutil.which(mpirun) is None:
        pytest.skip(f"no {mpirun}")
    program = "import hocket; print('world of', hocket.init(timeout=30).size)"
    more = ["--allow-run-as-root", "--oversubscribe"] if mpirun == "mpirun.openmpi" else []
    done = hocket_command.run("run", "-n", 1, "--", mpirun, *more, "-n", "2", sys.executable, "-c",
                              program, env=with_package())
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "world of" not in said, said
    assert "is a child of rank 0 of `hocket run`, not a rank" in said, said


@pytest.mark.parametrize("mpirun", ["mpirun.openmpi", "mpirun.mpich"])
def test_a_job_within_another_launchers_rank_works(mpirun):
    if shutil.which(mpirun) is None:
        pytest.skip(f"no {mpirun}")
    program = "import hocket; print('world of', hocket.init(timeout=30).size)"
    more = ["--allow-run-as-root", "--oversubscribe"] if mpirun == "mpirun.openmpi" else []
    done = subprocess.run(
        [mpirun, *more, "-n", "1", hocket_command.find(), "run", "-n", "2", "--",
         sys.executable, "-c", program],
        env=with_package(), capture_output=True, text=True, timeout=50,
    )
    assert done.returncode == 0 and done.stdout.count("world of 2") == 2, done.stdout + done.stderr
