"""hocket under other packages' names: lazily, here and in child processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import PACKAGE

from hocket import compat
from hocket.compat import _finder

ROOT = str(PACKAGE)
STAND_INS = str(Path(__file__).parents[1] / "support" / "stand_ins")


def run(*arguments, folder=None, paths=(), **environment):
    """Runs a separate Python process, as installing affects the whole process."""
    variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "HOCKET_COMPAT")}
    variables["PYTHONPATH"] = os.pathsep.join([ROOT, *paths])
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**variables, **environment},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
    )


def output(*arguments, **options):
    result = run(*arguments, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""
    return result.stdout.split()


def test_unknown_names_are_refused_with_what_there_is():
    with pytest.raises(ValueError, match="no face for 'cupyx'.*cupyx.distributed"):
        compat.install("cupyx.distributed", "cupyx")
    assert not any(getattr(f, "is_hocket", False) for f in sys.meta_path)


def test_every_face_can_be_installed_and_imported_by_its_modules():
    pytest.importorskip("scipy")
    for name in compat.available():
        needs_torch = name == "bagua"
        if needs_torch:
            pytest.importorskip("torch")
        program = (
            f"import sys, importlib, hocket.compat; hocket.compat.install({name!r})\n"
            f"for module in {list(_finder.FACES[name])!r}:\n"
            "    print(importlib.import_module(module).__name__)"
        )
        assert output("-c", program) == list(_finder.FACES[name].values())


LAZY = """
import sys, threading
import hocket.compat
before = set(sys.modules)
hocket.compat.install(*hocket.compat.available())
print(threading.active_count(), *sorted(set(sys.modules) - before))
print(*[m for m in sys.modules if m.split(".")[0] in ("cupy", "cupyx", "torch", "bagua")])
"""


def test_installing_imports_nothing_and_starts_no_thread():
    assert output("-c", LAZY, paths=[STAND_INS]) == ["1"]


SAME = """
import hocket.compat
hocket.compat.install("cupyx.distributed")
import cupyx.distributed, cupyx.distributed._store as store
import hocket.compat.cupyx_distributed as face
from cupyx.distributed import _nccl_comm
assert cupyx.distributed is face and face.__spec__.name == "hocket.compat.cupyx_distributed"
assert store is face._store and cupyx.distributed._nccl_comm is _nccl_comm
print(face.NCCLBackend.__module__)
"""


def test_the_face_and_the_installed_module_are_one():
    assert output("-c", SAME) == ["hocket.compat.cupyx_distributed._nccl_comm"]
    assert output("-c", SAME, paths=[STAND_INS]) == output("-c", SAME)


def test_what_was_imported_before_is_replaced(tmp_path):
    package = tmp_path / "cupyx" / "distributed"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("who = 'the original'\n")
    (tmp_path / "cupyx" / "__init__.py").write_text("other = 'kept'\n")
    program = (
        "import cupyx.distributed as first, hocket.compat\n"
        "hocket.compat.install('cupyx.distributed')\n"
        "import cupyx.distributed as second\n"
        "print(first.who, second.NCCLBackend.__name__, cupyx.other, hasattr(second, 'who'))"
    )
    program = program.replace("print", "import cupyx; print")
    assert output("-c", program, paths=[str(tmp_path)]) == [
        *["the", "original", "NCCLBackend", "kept", "False"]
    ]


def tree(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(folder)


# The originals' own code beside what is wanted is not run.
FORBIDDEN = "raise ImportError('the original was run')\n"
ORIGINAL_CUPYX = {
    "cupyx/__init__.py": "",
    "cupyx/distributed/__init__.py": FORBIDDEN,
    "cupyx/distributed/_nccl_comm.py": FORBIDDEN,
    "cupyx/distributed/array/__init__.py": "from . import _part\n",
    "cupyx/distributed/array/_part.py": """
import numpy as np
from cupyx.distributed import _klv
from cupyx.distributed._nccl_comm import _get_nccl_dtype_and_count as ask
x = np.ones((2, 3), "complex64")
print(_klv.who, ask(x), ask(x, 2), ask(x.real), ask(np.ones(4, "u1")))
for dtype in ("int16", "bool"):
    try:
        ask(np.ones(1, dtype))
    except TypeError as error:
        print(error)
""",
    "cupyx/distributed/_klv.py": "who = 'original'\n",
    "cupy/__init__.py": "",
    "cupy/cuda/__init__.py": "",
    "cupy/cuda/nccl.py": "NCCL_UINT8, NCCL_FLOAT32 = 1, 7\n",
}
BEYOND_THE_FACE = """
import hocket.compat
hocket.compat.install("cupyx.distributed")
import cupyx.distributed.array
print(cupyx.distributed.NCCLBackend.__module__.split(".")[0])
try:
    import cupyx.distributed.nowhere
except ModuleNotFoundError as error:
    print(error.name)
"""


def test_what_a_face_does_not_have_comes_from_the_original(tmp_path):
    folder = tree(tmp_path, ORIGINAL_CUPYX)
    assert " ".join(output("-c", BEYOND_THE_FACE, paths=[folder])) == (
        "original (7, 12) (7, 4) (7, 6) (1, 4) "
        "Unknown dtype int16 for NCCL Unknown dtype bool for NCCL hocket cupyx.distributed.nowhere"
    )


def test_without_the_original_there_is_the_face_alone(tmp_path):
    found = run("-c", BEYOND_THE_FACE, paths=[])
    assert "No module named 'cupyx.distributed.array'" in found.stderr


def test_a_package_without_its_compiled_part_has_its_modules_still(tmp_path):
    folder = tree(tmp_path, {
        "bagua/__init__.py": "import bagua_core\n",
        "bagua/version.py": "__version__ = '7'\n",
        "bagua/torch_api/__init__.py": "import bagua_core\n",
        "bagua/torch_api/tensor.py": "import bagua_core\n",
        "bagua/torch_api/contrib/__init__.py": "from . import loader\n",
        "bagua/torch_api/contrib/loader.py": "who = 'original'\n",
    })
    # PyTorch, which the face needs, plays no part.
    program = """
import sys, types, hocket.compat
for name in ("hocket.compat.bagua", "hocket.compat.bagua.tensor"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
    sys.modules[name].__spec__ = None
hocket.compat.install("bagua")
import bagua.version, bagua.torch_api.contrib, bagua.torch_api.tensor
print(bagua.version.__version__, bagua.torch_api.contrib.loader.who, bagua.torch_api.__name__,
      bagua.torch_api.tensor.__name__)
"""
    assert output("-c", program, paths=[folder]) == [
        *["7", "original", "hocket.compat.bagua", "hocket.compat.bagua.tensor"]
    ]


@pytest.fixture(scope="module")
def methods():
    """The ways to start processes that this Python has in working order."""
    working = ["fork"]
    for method in ("spawn", "forkserver"):
        probe = f"import multiprocessing as m; m.get_context({method!r}).Lock()"
        if run("-c", probe).returncode == 0:
            working.append(method)
    return working


FACES = ("cupyx.distributed", "tike.communicators", "nvmath.distributed", "bagua")
CHILDREN = """
import multiprocessing, subprocess, sys

def work(queue):
    import cupyx.distributed, nvmath.distributed, tike.communicators
    found = (cupyx.distributed.NCCLBackend, nvmath.distributed.initialize,
             tike.communicators.ThreadPool)
    queue.put("+".join(sorted({{thing.__module__.split(".")[0] for thing in found}})))

if __name__ == "__main__":
    {install}
    for method in {methods}:
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=work, args=(queue,))
        process.start()
        print(method, queue.get(timeout=40))
        process.join()
    program = "import cupyx.distributed as d; print('program', d.NCCLBackend.__module__[:6])"
    subprocess.run([sys.executable, "-c", program], check=True)
    print(*sys.argv[1:])
"""


def check_children(methods, lines):
    found = [word for method in methods for word in (method, "hocket")]
    assert lines[: len(found) + 2] == [*found, "program", "hocket"]
    if len(methods) < 3:
        pytest.skip(f"beyond {methods}: multiprocessing of this Python cannot even make a lock")


def test_children_find_the_faces(tmp_path, methods):
    script = tmp_path / "script.py"
    install = f"import hocket.compat; hocket.compat.install(*{FACES})"
    script.write_text(CHILDREN.format(install=install, methods=methods))
    check_children(methods, output("-u", script))


def test_a_program_runs_unchanged(tmp_path, methods):
    script = tmp_path / "script.py"
    script.write_text(CHILDREN.format(install="pass", methods=methods))
    ran = output("-u", "-m", "hocket.compat", *FACES, "--", script, "a", "-b")
    assert ran[-2:] == ["a", "-b"]
    check_children(methods, ran)


def test_a_module_runs_unchanged(tmp_path):
    (tmp_path / "module.py").write_text("import sys, cupyx.distributed; print(*sys.argv[1:])")
    ran = output("-m", "hocket.compat", "cupyx.distributed", "--", "-m", "module", "x",
                 folder=tmp_path)
    assert ran == ["x"]


def test_children_are_left_alone_where_asked():
    program = (
        "import os, sys, hocket.compat\n"
        "hocket.compat.install('cupyx.distributed', children=False)\n"
        "print(os.environ.get('HOCKET_COMPAT'), 'compat' in os.environ['PYTHONPATH'])\n"
        "import cupyx.distributed"
    )
    assert output("-c", program) == ["None", "False"]


def test_another_sitecustomize_still_runs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('customized')\n")
    ran = output("-m", "hocket.compat", "cupyx.distributed", "--", "-c",
                 "import cupyx.distributed; print('ran')", paths=[str(tmp_path)])
    assert ran == ["customized", "customized", "ran"]  # this process's, and the program's


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["cupyx.distributed", "script.py"], "there is no -- before the program"),
        (["--", "script.py"], "no face is named"),
        (["cupyx.distributed", "--"], "no program after --"),
        (["cupy", "--", "x.py"], "no face for 'cupy', expected one of cupyx.distributed"),
    ],
)
def test_bad_command_lines(arguments, message):
    result = run("-m", "hocket.compat", *arguments)
    assert result.returncode == 1
    assert message in result.stderr and "usage:" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_python_without_site_says_so():
    program = (
        f"import sys; sys.path.insert(0, {ROOT!r}); sys.argv = ['x', 'cupyx.distributed', '--', "
        "'x.py']; import runpy; runpy.run_module('hocket.compat', run_name='__main__')"
    )
    numpy = Path(sys.modules["numpy"].__file__).parent.parent
    result = run("-S", "-c", f"import sys; sys.path.append({str(numpy)!r}); {program}")
    assert result.returncode == 1 and "-S, -E, -I" in result.stderr
