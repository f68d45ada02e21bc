"""Stubs, documentation and examples hold what they say."""

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from helpers import ROOT
from processes import run_job

import hocket
from hocket import _hocket
from hocket._command import find_command

STUBS = ROOT / "python" / "hocket" / "_hocket.pyi"
EXAMPLES = sorted((ROOT / "examples" / "python").glob("*.py"))


def test_stubs_are_the_module_s(tmp_path):
    pytest.importorskip("nanobind")
    fresh = tmp_path / "_hocket.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "hocket._hocket"]
    command += ["-p", str(ROOT / "python" / "stubs.txt"), "--include-private", "-o", str(fresh)]
    subprocess.run(command, check=True, timeout=50)
    found, wanted = (ast.dump(ast.parse(path.read_text())) for path in (STUBS, fresh))
    assert found == wanted, f"make them anew: {' '.join(command[:-1])} {STUBS}"


def test_the_module_keeps_to_the_stable_interface():
    """The wheel is for Python 3.11's, and what is built here is for this Python's own."""
    include = Path(sysconfig.get_path("include"))
    if shutil.which("cc") is None or not (include / "Python.h").exists():
        pytest.skip("there is no compiler, or Python's headers are missing")
    header = "#define Py_LIMITED_API 0x030B0000\n#include <Python.h>\n"
    words = re.compile(r"\b_?Py(?!Array|DataType)[A-Z_]\w+")  # NumPy's own interface is allowed
    seen = subprocess.run(["cc", "-E", "-dD", f"-I{include}", "-x", "c", "-"], input=header, text=True,
                          capture_output=True, check=True, timeout=50).stdout
    known = set(words.findall(seen)) | {"Py_LIMITED_API"}
    for path in sorted((ROOT / "python" / "src").glob("*.[ch]*")):
        code = re.sub(r'R"\(.*?\)"|//[^\n]*|"[^"\n]*"', "", path.read_text(), flags=re.DOTALL)
        assert not set(words.findall(code)) - known, path


@pytest.mark.watchdog(300)
def test_types_are_consistent(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml"]
    command += ["--cache-dir", tmp_path, ROOT / "python" / "hocket"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert found.returncode == 0, found.stdout


@pytest.mark.watchdog(300)
def test_public_types_are_complete():
    """A program that uses hocket passes pyright's strict mode: no public type is left to be guessed."""
    pytest.importorskip("basedpyright", reason="basedpyright is not installed")
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson",
               "--ignoreexternal", "--verifytypes", "hocket"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT,
                           env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    told = json.loads(found.stdout)["typeCompleteness"]
    assert told["packageName"] == "hocket"
    # Classes of hocket.torch inherit PyTorch's, which may be missing here.
    guessed = [symbol["name"] for symbol in told["symbols"]
               if symbol["isExported"] and (symbol["isTypeAmbiguous"] or not (
                   symbol["isTypeKnown"] or symbol["name"].startswith("hocket.torch.")))]
    assert told["symbols"] and not guessed


def test_everything_public_is_documented():
    for module_or_class in (hocket, hocket.Communicator, hocket.Work, hocket.Prepared,
                            hocket.SymmetricMemory):
        assert inspect.getdoc(module_or_class)
        for name, thing in vars(module_or_class).items():
            if name.startswith("_") or inspect.ismodule(thing) or isinstance(thing, (str, int)):
                continue
            assert inspect.getdoc(thing), f"{module_or_class.__name__}.{name} has no docstring"


def test_every_collective_has_its_verbs():
    for name in ("all_reduce", "reduce", "reduce_scatter", "broadcast", "all_gather", "gather",
                 "scatter", "all_to_all", "all_gather_v", "gather_v", "scatter_v", "all_to_all_v",
                 "reduce_scatter_v", "barrier"):
        assert callable(getattr(hocket.Communicator, name))
        assert callable(getattr(hocket.Communicator, f"{name}_async"))


def test_version_is_one():
    text = (ROOT / "CMakeLists.txt").read_text()
    assert re.search(r"VERSION (\d+\.\d+\.\d+)", text)[1] == hocket.__version__
    assert f'version = "{hocket.__version__}"' in (ROOT / "pyproject.toml").read_text()


def test_names():
    assert set(hocket.__all__) <= set(vars(hocket))
    assert _hocket.Communicator is hocket.Communicator
    assert Path(find_command()).exists()


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples(example, n):
    job = run_job(n, example)
    assert job.returncode == 0, job.stdout


def test_train_digits():
    job = run_job(4, ROOT / "examples" / "train_digits.py", "--check")
    assert job.returncode == 0, job.stdout
    assert "above 95%" in job.stdout and "bit-identical" in job.stdout
    digests = re.findall(r"\d ranks? +([0-9a-f]{64})", job.stdout)
    assert len(digests) == 8
    assert len(set(digests[:4])) == 1 and len(set(digests[4:])) > 1


def test_train_digits_without_scikit_learn(tmp_path):
    """With the set of images that it makes itself."""
    (tmp_path / "sklearn").mkdir()
    (tmp_path / "sklearn" / "__init__.py").write_text("raise ImportError('not installed')")
    program = (f"import runpy, sys; sys.path.insert(0, {str(tmp_path)!r}); sys.argv = ['it', '--check']; "
               f"runpy.run_path({str(ROOT / 'examples' / 'train_digits.py')!r}, run_name='__main__')")
    job = run_job(2, "-c", program)
    assert job.returncode == 0, job.stdout
    assert "above 95%" in job.stdout and "bit-identical" in job.stdout


def test_a_subinterpreter_is_refused_and_harms_nobody():
    program = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import numpy as np
import hocket
with hocket.init() as comm:
    other = interpreters.create()
    failed = ""
    try:
        failed = interpreters.run_string(other, "import hocket._hocket")  # what went wrong, from 3.13
    except Exception as error:
        failed = error
    print(failed)
    interpreters.destroy(other)
    print(comm.all_reduce(np.ones(3))[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50
    )
    assert "hocket works in a process's main interpreter alone" in done.stdout, done
    assert done.stdout.endswith("\n1.0\n"), done
