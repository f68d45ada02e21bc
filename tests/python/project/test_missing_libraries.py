"""A build's messages about missing libraries."""

import shutil
import subprocess

import pytest
from helpers import ROOT


def test_all_that_is_missing_is_named_with_the_packages_that_have_it(tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    done = subprocess.run(
        ["cmake", "-S", ROOT, "-B", tmp_path, "-DHOCKET_TESTS=OFF", "-DHOCKET_BENCH=OFF",
         "-DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON"],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=55)
    assert done.returncode != 0
    for package in ("libcli11-dev", "cli11-devel", "libhwy-dev", "highway-devel", "libhwy"):
        assert package in done.stdout, done.stdout
    assert "libfmt-dev" not in done.stdout  # is there
