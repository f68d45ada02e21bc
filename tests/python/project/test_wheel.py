"""The installed package: a wheel in a new environment; and the source archive."""

import json
import os
import re
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


def build_wheel(folder, build):
    """Builds a wheel of this tree with CMake's default compiler. Where `build` is as deep as
    build/release, every command is the same as there, and ccache has its result. Without GPU
    kernels, which take nvcc minutes.
    """
    cache = {"CC": os.environ.get("CC", "cc"), "CXX": os.environ.get("CXX", "c++")}
    if shutil.which("ccache"):
        cache["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
        cache["CCACHE_BASEDIR"] = os.environ.get("CCACHE_BASEDIR", str(ROOT))
    run(sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "--no-index",
        "--no-build-isolation", "--no-deps", f"--config-settings=build-dir={build}",
        "--config-settings=cmake.define.HOCKET_NVCC=OFF", "-w", folder, ROOT,
        timeout=BUILD_SECONDS, **cache)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"), BUILD)


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


@pytest.fixture(scope="module")  # takes longer than a test may
def again(wheel, tmp_path_factory):
    """The same wheel, built in another folder at another time."""
    return build_wheel(tmp_path_factory.mktemp("again"), ROOT / "build" / "wheel-again")


def test_two_builds_give_the_same_wheel(wheel, again):
    one, other = zipfile.ZipFile(wheel), zipfile.ZipFile(again)
    assert one.namelist() == other.namelist()
    assert not [name for name in one.namelist() if one.read(name) != other.read(name)]
    assert wheel.read_bytes() == again.read_bytes()


def components(wheel):
    """What a wheel says that it carries: names, and their licences and versions."""
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/sboms/hocket.cdx.json"))
    bom = json.loads(archive.read(name))
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
    assert bom["metadata"]["component"]["version"] == wheel.name.split("-")[1]
    return {c["name"]: (c["licenses"][0]["expression"], c["version"]) for c in bom["components"]}


def notices():
    rows = re.findall(r"^\| (.+?) \| ([\d.]+) \| (.+?) \|", (ROOT / "THIRD-PARTY-NOTICES.md").read_text(), re.M)
    names = {"GCC's runtime (libstdc++, libgcc)": "GCC's runtime"}
    return {names.get(name, name): (licence, version) for name, version, licence in rows}


def test_a_wheel_lists_what_it_carries(wheel):
    listed = components(wheel)
    assert {"Eigen", "CLI11", "nanobind"} <= set(listed) <= set(notices())
    (library,) = (name for name in zipfile.ZipFile(wheel).namelist() if re.search(r"/lib/libhocket\.so\.\d", name))
    needed = run("readelf", "-d", Path(zipfile.ZipFile(wheel).extract(library, wheel.parent)))
    for name, soname in (("fmt", "libfmt"), ("spdlog", "libspdlog"), ("OpenSSL", "libssl"), ("Highway", "libhwy")):
        assert (name in listed) == (soname not in needed), name


def shims(wheel):
    names = [Path(name).name for name in zipfile.ZipFile(wheel).namelist()]
    return {mpi for mpi in MPIS if f"libhocket_mpi_{mpi}.so" in names}


def mpis_here():
    # Debian's names; a plain mpicxx may be either.
    return {mpi for mpi in MPIS if shutil.which(f"mpicxx.{mpi}")}


def test_a_wheel_has_the_engine_for_each_mpi_that_is_here(wheel):
    assert shims(wheel) >= mpis_here()


def test_ranks_run_from_a_wheel(python, tmp_path):
    output = run(python.parent / "hocket", "run", "-n", 2, "--", python, "-c", RANKS, cwd=tmp_path)
    assert output.count("right") == 2, output


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The wheel that goes to others, for old C libraries and all later Pythons; without GPU kernels. It
    needs Debian's sources and Zig."""
    if not is_debian():
        pytest.skip("this system is no Debian")
    folder = tmp_path_factory.mktemp("released")
    try:
        run(ROOT / "tools" / "release" / "wheel.sh", folder, timeout=BUILD_SECONDS, HOCKET_NVCC="OFF")
    except AssertionError as error:
        if "wheel: building" not in str(error):  # what it says once its tools are there
            pytest.skip(f"the tools of that wheel cannot be had here: {str(error)[-300:]}")
        raise
    (made,) = folder.glob("*.whl")
    return made


def is_debian():
    release = Path("/etc/os-release").read_text().split()
    return "ID=debian" in release and any(line.startswith("VERSION_CODENAME=") for line in release)


def test_the_released_wheel_is_for_old_systems_and_later_pythons(released):
    assert re.fullmatch(r"hocket-[\d.]+-cp311-abi3-manylinux_2_28_\w+\.whl", released.name)
    assert shims(released) >= mpis_here()


def test_the_released_wheel_lists_what_the_notices_have(released):
    listed, expected = components(released), notices()
    assert set(listed) == set(expected)
    for name, (licence, version) in listed.items():
        assert expected[name][0].startswith(licence), name  # fmt's has an exception
        assert version.startswith(expected[name][1]), name


@pytest.fixture(scope="module")  # takes longer than a test may
def said_in_a_bare_debian(released):
    if os.getuid() != 0 or shutil.which("mmdebstrap") is None:
        pytest.skip("this needs root and mmdebstrap")
    alone = ["unshare", "--mount", "--net", "--pid", "--fork", "true"]
    if subprocess.run(alone, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("this process may not make namespaces")
    (codename,) = re.findall("VERSION_CODENAME=(.*)", Path("/etc/os-release").read_text())
    try:
        return run(ROOT / "tools" / "check" / "chroots.sh", "--wheel", released, codename, timeout=600)
    except AssertionError as error:
        if ": Python 3" not in str(error):  # what it says once the root is there
            pytest.skip(f"no root can be made here: {str(error)[-300:]}")
        raise


def test_two_ranks_run_from_the_released_wheel_in_a_bare_debian(said_in_a_bare_debian):
    """A machine with Python only, and no network."""
    said = said_in_a_bare_debian
    assert said.count("] right") == 2 and ": good" in said, said


def test_doctor_tells_of_the_python_that_the_wheel_is_in(python, tmp_path):
    # Its environment is not activated: the python3 in PATH is another one.
    machine = json.loads(run(python.parent / "hocket", "doctor", "--json", cwd=tmp_path))
    packages = {package["name"]: package for package in machine["python"]}
    assert packages["Python"]["where"] == str(python.parent / "python3"), packages
    assert "hocket" in packages, packages


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


def test_ranks_run_by_the_standard_abi_of_mpi_from_a_wheel(python, tmp_path):
    peer = ROOT / ".peers" / "mpich5"
    (library, launcher) = peer / "lib" / "libmpi_abi.so.1", peer / "bin" / "mpiexec"
    if not (library.exists() and launcher.exists()):
        pytest.skip("MPICH 5 is not installed (tools/setup.sh --peers)")
    # Loaded by the program, as mpi4py does it: the same MPICH has its own interface, too.
    program = f"import ctypes; ctypes.CDLL({str(library)!r})\n{RANKS}"
    output = run(launcher, "-n", 2, python, "-c", program, "mpi", cwd=tmp_path,
                 LD_LIBRARY_PATH=str(peer / "lib"))
    assert output.count("right") == 2, output


OUTSIDE = ROOT / "tests" / "compile" / "outside"


def test_a_project_finds_the_library_in_a_wheel(python, tmp_path):
    folder = run(python, "-m", "hocket", "--cmake-dir", cwd=tmp_path).strip()
    run("cmake", "-S", OUTSIDE, "-B", tmp_path / "b", f"-Dhocket_DIR={folder}", timeout=120)
    run("cmake", "--build", tmp_path / "b", timeout=300)
    run(tmp_path / "b" / "outside")


def test_pkg_config_finds_the_library_in_a_wheel(python, tmp_path):
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    folder = run(python, "-m", "hocket", "--pkg-config-dir", cwd=tmp_path).strip()
    flags = run("pkg-config", "--cflags", "--libs", "hocket", PKG_CONFIG_PATH=folder).split()
    include = run(python, "-m", "hocket", "--include-dir", cwd=tmp_path).strip()
    assert any(Path(flag[2:]).resolve() == Path(include) for flag in flags if flag[:2] == "-I")
    run("c++", "-std=c++20", OUTSIDE / "main.cc", "-o", tmp_path / "outside", *flags, timeout=300)
    run(tmp_path / "outside")


def test_programs_of_mpi_are_built_and_run_from_a_wheel(python, tmp_path):
    package = Path(run(python, "-m", "hocket", "--include-dir", cwd=tmp_path).strip()).parent
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    said = run(ROOT / "tests" / "mpi_face" / "build_test.sh", package, "Ninja", timeout=300, PATH=path)
    assert "hocket-mpicc, C: right" in said and "hocket-mpicxx, C++: right" in said, said
    assert f"-I{package}/include/hocket-mpi" in run("hocket-mpicc", "-show", PATH=path)


MPI4PY = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
assert comm.size == 2 and comm.allreduce(comm.rank + 1) == 3
assert "hocket" in MPI.Get_library_version()
print("right", flush=True)
"""


def test_mpi4py_runs_unchanged_from_a_wheel(python, tmp_path):
    pytest.importorskip("mpi4py")
    output = run(python.parent / "hocket", "run", "--mpi", "-n", 2, "--", python, "-c", MPI4PY,
                 cwd=tmp_path)
    assert output.count("right") == 2, output
    alone = run(python, "-c", "import hocket.mpi; print(hocket.mpi.library())", cwd=tmp_path)
    assert Path(alone.strip()).is_relative_to(python.parent.parent), alone


@pytest.mark.parametrize("way", ["sh", "cmake"])
def test_the_readme_s_program_is_built_as_it_says(python, tmp_path, way):
    readme = (ROOT / "README.md").read_text()
    (program,) = re.findall(r"```cpp\n(.*?)```", readme, re.S)
    (tmp_path / "hello.cc").write_text(program)
    if way == "sh":
        if shutil.which("pkg-config") is None:
            pytest.skip("pkg-config is not installed")
        (lines,) = re.findall(r"```sh\n(export PKG_CONFIG_PATH.*?)```", readme, re.S)
    else:
        (project,) = re.findall(r"```cmake\n(.*?)```", readme, re.S)
        (tmp_path / "CMakeLists.txt").write_text(project)
        (option,) = re.findall(r"# cmake (-Dhocket_DIR=\S.*) \.\.\.$", project, re.M)
        lines = f"cmake -S . -B b {option} && cmake --build b && hocket run -n 2 -- b/hello"
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    output = run("sh", "-e", "-c", lines, cwd=tmp_path, timeout=300, PATH=path)
    assert "[0] 2 ranks: 1 3 5 7" in output, output


def test_a_folder_that_a_build_lacks_is_said():
    done = subprocess.run([sys.executable, "-m", "hocket", "--cmake-dir"], text=True,
                          capture_output=True, timeout=55)
    assert done.returncode == 1 and "not installed from a wheel" in done.stderr, done


def test_the_library_shows_its_own_names_alone(python, tmp_path):
    folder = run(python, "-m", "hocket", "--pkg-config-dir", cwd=tmp_path).strip()
    (library,) = Path(folder).parent.glob("libhocket.so.*")
    listed = run("nm", "-D", "--defined-only", library).splitlines()
    names = [line.split()[-1] for line in listed if line.split()[-2] in "TWVDBRu"]
    assert any(name.startswith("_ZN6hocket") for name in names)
    # Names of hocket's, or of standard templates of its types.
    assert not [name for name in names if "6hocket" not in name and not name.startswith("hocket_")]


def test_a_program_runs_with_the_wheels_library_and_with_an_installed_one(python, tmp_path):
    folder = Path(run(python, "-m", "hocket", "--pkg-config-dir", cwd=tmp_path).strip()).parent
    installed = ROOT / "build" / "release" / "lib"
    (tmp_path / "version.c").write_text(
        "#include <hocket/c.h>\n#include <stdio.h>\nint main(void) { return puts(hocket_version()) < 0; }\n")
    for linked in (folder, installed):
        run("cc", f"-I{ROOT / 'include'}", "version.c", f"-L{linked}", "-lhocket", "-o", "version",
            cwd=tmp_path)
        needed = run("readelf", "-d", tmp_path / "version")
        assert re.findall(r"NEEDED.*\[(libhocket\S*)\]", needed) == ["libhocket.so.0"]
        for there in (folder, installed):
            said = run(tmp_path / "version", LD_LIBRARY_PATH=str(there))
            assert re.fullmatch(r"\d+\.\d+\.\d+", said.strip()), said


ORDERS = """
import importlib, sys
names = sys.argv[1].split(",")
for name in names:
    importlib.import_module(name)
import hocket, numpy as np
with hocket.init() as comm:
    x = np.arange(8.0)
    comm.all_reduce(x)
    assert (x == np.arange(8.0)).all()
for name in names[::-1]:
    importlib.import_module(name)
print("right")
"""


@pytest.mark.parametrize("package", ["torch", "scipy.linalg", "sklearn.cluster", "mpi4py.MPI", "h5py"])
@pytest.mark.parametrize("comes_first", [False, True])
def test_packages_with_copies_of_the_same_libraries_do_no_harm(python, tmp_path, package, comes_first):
    # Each package brings its own libraries: fmt and OpenMP, a BLAS, an MPI, HDF5.
    if run(python, "-c", f"import importlib.util as u; "
           f"print(u.find_spec({package.split('.')[0]!r}) is not None)").strip() != "True":
        pytest.skip(f"{package} is not installed")
    order = [package, "hocket"] if comes_first else ["hocket", package]
    assert "right" in run(python, "-c", ORDERS, ",".join(order), cwd=tmp_path)


def test_the_demo_of_a_wheel(python, tmp_path):
    output = run(python.parent / "hocket", "demo", cwd=tmp_path, timeout=300)
    assert "test accuracy" in output and (tmp_path / "hocket-bench.html").stat().st_size > 1000


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
    # Files that the compiler read, files that CMake read, and files that the rules name.
    read = run("ninja", "-C", BUILD, "-t", "deps").splitlines()
    read = [line.strip() for line in read if line.startswith(" ")]
    for target in ("build.ninja", "all"):
        read += run("ninja", "-C", BUILD, "-t", "inputs", target).splitlines()
    paths = {Path(os.path.normpath(BUILD / path)) for path in read}
    elsewhere = (ROOT / "build", ROOT / ".venv")
    ours = {path.relative_to(ROOT) for path in paths if path.is_relative_to(ROOT)
            and not any(path.is_relative_to(folder) for folder in elsewhere) and path.is_file()}
    assert Path("src/engines/mpi/mpi_engine.cc") in ours and Path("CMakeLists.txt") in ours
    assert Path("include/hocket/types.h") in ours
    assert not [path for path in sorted(ours) if not (tree / path).is_file()]
    pictures = re.findall(r"!\[[^]]*\]\(([^)]*)\)", (ROOT / "README.md").read_text())
    assert pictures and not [path for path in pictures if not (tree / path).is_file()]
    assert not (tree / "tests").exists()  # a megabyte of inputs that once broke something
    modules = {path.relative_to(ROOT) for path in (ROOT / "python/hocket").rglob("*.py")}
    assert not [path for path in sorted(modules) if not (tree / path).is_file()]
