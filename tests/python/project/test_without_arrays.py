"""HOCKET_ARRAYS=OFF: a library without spread arrays and without Eigen, which runs the README's program."""

import os
import re
import shutil
import subprocess

import pytest
from helpers import ROOT

# As deep as build/release, so that ccache has the objects of that build.
BUILD = ROOT / "build" / "no-arrays"
HEADERS = {"device_pool.h", "distribution.h", "fft.h", "matmul.h", "redistribute.h"}
pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("cmake", "ninja", "pkg-config"))), reason="cmake, ninja or pkg-config is missing"
)


def run(*command, timeout=900, **environment):
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        env={**inherited, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    return done.returncode, done.stdout


def good(*command, **options):
    code, output = run(*command, **options)
    assert code == 0, output[-4000:]
    return output


def configure(*options):
    if shutil.which("ccache"):
        options += ("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",)
    return run("cmake", "-G", "Ninja", "-S", ROOT, "-B", BUILD, "-DHOCKET_ARRAYS=OFF", "-DHOCKET_NVCC=OFF",
               "-DHOCKET_BENCH=OFF", "-DHOCKET_MPI_FACE=OFF", "-DHOCKET_PYTHON=OFF", "-DHOCKET_TESTS=OFF",
               "-DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON", *options)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    code, output = configure()
    assert code == 0, output
    good("cmake", "--build", BUILD, CCACHE_BASEDIR=os.environ.get("CCACHE_BASEDIR", str(ROOT)))
    prefix = tmp_path_factory.mktemp("prefix")
    good("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


def test_the_parts_are_not_there(installed):
    headers = {path.name for path in (installed / "include" / "hocket").iterdir()}
    assert not headers & HEADERS and "communicator.h" in headers
    (library,) = {path.resolve() for path in installed.rglob("libhocket.so*")}
    symbols = good("nm", "-DC", library)
    assert "hocket::Communicator::all_reduce" in symbols
    assert not re.search(r"hocket::(Fft|Matmul|Redistribution|DevicePool)::", symbols)


def test_the_program_of_the_readme_runs(installed, tmp_path):
    readme = (ROOT / "README.md").read_text()
    (program,) = re.findall(r"```cpp\n(#include <hocket/hocket.h>.*?)```", readme, re.DOTALL)
    (tmp_path / "hello.cc").write_text(program)
    (found,) = installed.rglob("hocket.pc")
    flags = good("pkg-config", "--cflags", "--libs", "hocket", PKG_CONFIG_PATH=str(found.parent)).split()
    good(os.environ.get("CXX", "c++"), "-std=c++20", tmp_path / "hello.cc", *flags, "-o", tmp_path / "hello")
    output = good(installed / "bin" / "hocket", "run", "-n", "2", "--", tmp_path / "hello", timeout=50)
    assert "2 ranks: 1 3 5 7" in output


def test_benchmarks_of_the_parts_are_refused(installed):
    code, output = run(installed / "bin" / "hocket", "bench", "fft", "-n", "2", "--sizes", "8", timeout=50)
    assert code != 0 and "HOCKET_ARRAYS=OFF" in output, output


def test_what_needs_the_parts_is_refused(tmp_path):
    code, output = run("cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path, "-DHOCKET_ARRAYS=OFF",
                       "-DHOCKET_TESTS=ON")
    assert code != 0 and "HOCKET_ARRAYS is OFF" in output, output
