"""The recipes in packaging/ name what the project has: its version, its options, what it needs."""

import json
import re
import shutil
import subprocess

import pytest
from helpers import ROOT

import hocket

PACKAGING = ROOT / "packaging"
CONDA = (PACKAGING / "conda" / "recipe.yaml").read_text()
SPACK = (PACKAGING / "spack" / "package.py").read_text()
PORT = (PACKAGING / "vcpkg" / "portfile.cmake").read_text()
VCPKG = json.loads((PACKAGING / "vcpkg" / "vcpkg.json").read_text())
RULES = (PACKAGING / "debian" / "rules").read_text()
RECIPES = {"conda": CONDA, "spack": SPACK, "vcpkg": PORT, "debian": RULES}
# Names in vcpkg and Spack that differ from CMake's, in small letters.
NAMES = {"hwy": ("highway", "highway"), "eigen3": ("eigen3", "eigen"),
         "nlohmann_json": ("nlohmann-json", "nlohmann-json")}


def test_versions_are_the_project_s():
    changelog = (PACKAGING / "debian" / "changelog").read_text()
    found = {
        "conda": re.search(r'^  version: "(.+)"$', CONDA, re.MULTILINE)[1],
        "spack": re.search(r'^    version\("([^"]+)"', SPACK, re.MULTILINE)[1],
        "vcpkg": VCPKG["version"],
        "debian": re.match(r"hocket \((.+)-\d+\)", changelog)[1],
    }
    assert found == dict.fromkeys(found, hocket.__version__)
    assert f"hocket-{hocket.__version__}.tar.gz" in SPACK


def test_what_the_build_needs_is_in_each():
    needs = (ROOT / "cmake" / "HocketNeeds.cmake").read_text().split("if(HOCKET_TESTS)")[0]
    libraries = re.findall(r"^ *hocket_needs\((\w+) (\S+) \S+ \S+ (\S+)\)", needs, re.MULTILINE)
    libraries = [names for names in libraries if names[0] != "Threads"]
    assert len(libraries) > 5, libraries
    control = (PACKAGING / "debian" / "control").read_text()
    host = re.search(r"\n  host:\n((?:    - .+\n)+)", CONDA)[1]
    for name, debian, conda in libraries:
        vcpkg, spack = NAMES.get(name.lower(), (name.lower(), name.lower()))
        assert re.search(rf"\b{debian},", control), debian
        assert f"    - {conda}\n" in host, conda
        assert vcpkg in VCPKG["dependencies"], vcpkg
        assert f'depends_on("{spack}"' in SPACK, spack


def test_conda_s_least_versions_are_the_package_s():
    project = (ROOT / "pyproject.toml").read_text()
    for name in ("scikit-build-core", "nanobind", "numpy", "cmake"):
        least = re.search(rf"- {name} (>=[\d.]+)", CONDA)[1]
        assert f'{name}{least}"' in project or f'{name}.version = "{least}"' in project, name


def test_each_says_what_it_was_tried_with():
    table = (PACKAGING / "README.md").read_text()
    for name, text in RECIPES.items():
        assert f"| `{name}` |" in table, name
        assert name == "debian" or "Tried with: " in text, name


def test_options_are_cmake_s(tmp_path):
    """CMake lists the given variables that were not used."""
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    named = {name: set(re.findall(r"(?:-D|define\.|\")(HOCKET_\w+)(?:=|\")", text))
             for name, text in RECIPES.items()}
    tests = {"HOCKET_TESTS", "HOCKET_BENCH"}  # pyproject.toml turns these off, for conda
    for name, options in named.items():
        assert "HOCKET_NVCC" in options and (name == "conda" or tests <= options), (name, options)
    off = [f"-D{option}=OFF" for option in sorted(tests.union(*named.values()))]
    done = subprocess.run(["cmake", "-S", ROOT, "-B", tmp_path, *off], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    assert done.returncode == 0, done.stdout
    assert "not used by the project" not in done.stdout, done.stdout
