"""The package as it is installed: a wheel, in an environment of its own; and the source archive."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from helpers import ROOT

pytest.importorskip("scikit_build_core", reason="scikit-build-core, which makes wheels, is missing")

MPIS = ["openmpi", "mpich"]
BUILD = ROOT / "build" / "wheel"
BUILD_SECONDS = 900  # links alone but links where the compiler's cache knows this tree

ARCHIVE = """
import sys
from scikit_build_core.build import build_sdist
build_sdist(sys.argv[1])
"""

RANKS = """
import sys
import numpy as np
import hocket
comm = hocket.init(engines=sys.argv[1:] or None)
assert hocket.__file__.startswith(sys.prefix), hocket.__file__
x = np.arange(1000.0) * (comm.rank + 1)
comm.all_reduce(x)
assert (x == np.arange(1000.0) * 3).all() and comm.size == 2
print("right", flush=True)
"""

FACES = """
import sys
import cupyx.distributed, nvmath.distributed.reshape, tike.communicators
assert tike.communicators.Comm.__module__.startswith("hocket.compat.")
assert sys.modules["hocket"].__file__.startswith(sys.prefix)
print(cupyx.distributed.__name__, nvmath.distributed.__name__)
"""


def run(*command, timeout=55, cwd=None, **environment):
    """A program's output; an error, with all that it said, where it fails. Nothing of the build
    folder's package reaches it."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command],
        env={**inherited, **environment},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of this tree, built in a folder as deep as build/release and by CMake's own choice of a
    compiler, so that every command is what it was there, and ccache has what was compiled there.
    Without GPU kernels, which take nvcc minutes."""
    folder = tmp_path_factory.mktemp("wheel")
    cache = {"CC": os.environ.get("CC", "cc"), "CXX": os.environ.get("CXX", "c++")}
    if shutil.which("ccache"):
        cache["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
        cache["CCACHE_BASEDIR"] = os.environ.get("CCACHE_BASEDIR", str(ROOT))
    run(sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "--no-index",
        "--no-build-isolation", "--no-deps", f"--config-settings=build-dir={BUILD}",
        "--config-settings=cmake.define.HOCKET_NVCC=OFF", "-w", folder, ROOT,
        timeout=BUILD_SECONDS, **cache)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of a new environment that has the wheel. Other packages come from here, by
    their folder's name, so that nothing is fetched."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps",
        "--disable-pip-version-check", wheel, timeout=120)
    return python


def shims(wheel):
    names = [Path(name).name for name in zipfile.ZipFile(wheel).namelist()]
    return {mpi for mpi in MPIS if f"libhocket_mpi_{mpi}.so" in names}


def test_a_wheel_has_the_engine_for_each_mpi_that_is_here(wheel):
    # Debian's names; a plain mpicxx may be either.
    here = {mpi for mpi in MPIS if shutil.which(f"mpicxx.{mpi}")}
    assert shims(wheel) >= here


def test_ranks_run_from_a_wheel(python, tmp_path):
    output = run(python.parent / "hocket", "run", "-n", 2, "--", python, "-c", RANKS, cwd=tmp_path)
    assert output.count("right") == 2, output


@pytest.mark.parametrize("mpi", MPIS)
def test_ranks_run_by_mpi_from_a_wheel(wheel, python, tmp_path, mpi):
    launcher = shutil.which(f"mpirun.{mpi}")
    if launcher is None or mpi not in shims(wheel):
        pytest.skip(f"{mpi} is not installed")
    options = ["-n", "2"]
    if mpi == "openmpi":
        options += ["--allow-run-as-root", "--oversubscribe", "--mca", "plm", "isolated"]
    output = run(launcher, *options, python, "-c", RANKS, "mpi", cwd=tmp_path)
    assert output.count("right") == 2, output


def test_faces_come_from_a_wheel(python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(FACES)
    faces = "cupyx.distributed,nvmath.distributed,tike.communicators"
    run(python, "-m", "hocket.compat", faces, "--", program, cwd=tmp_path)


@pytest.mark.parametrize("module", ["hocket.torch", "hocket.compat.bagua"])
def test_what_needs_torch_comes_from_a_wheel(python, tmp_path, module):
    pytest.importorskip("torch")
    run(python, "-c", f"import sys, {module} as m; assert m.__file__.startswith(sys.prefix)",
        cwd=tmp_path)


def test_the_source_archive_has_all_that_a_wheel_is_built_from(wheel, tmp_path):
    run(sys.executable, "-c", ARCHIVE, tmp_path, cwd=ROOT)
    (archive,) = tmp_path.glob("hocket-*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path)
    tree = tmp_path / archive.name.removesuffix(".tar.gz")
    # What the compiler read, what CMake read, and what the rules name.
    read = run("ninja", "-C", BUILD, "-t", "deps").splitlines()
    read = [line.strip() for line in read if line.startswith(" ")]
    for target in ("build.ninja", "hocket_wheel"):
        read += run("ninja", "-C", BUILD, "-t", "inputs", target).splitlines()
    paths = {Path(os.path.normpath(BUILD / path)) for path in read}
    elsewhere = (ROOT / "build", ROOT / ".venv")
    ours = {path.relative_to(ROOT) for path in paths if path.is_relative_to(ROOT)
            and not any(path.is_relative_to(folder) for folder in elsewhere) and path.is_file()}
    assert Path("src/engines/mpi/mpi_engine.cc") in ours and Path("CMakeLists.txt") in ours
    assert Path("include/hocket/types.h") in ours
    assert not [path for path in sorted(ours) if not (tree / path).is_file()]
    modules = {path.relative_to(ROOT) for path in (ROOT / "python/hocket").rglob("*.py")}
    assert not [path for path in sorted(modules) if not (tree / path).is_file()]
