# For Spack's repository. Tried with: Spack 0.23 on Debian 12, which builds and installs it, given CMakePackage
# under the name that Spack 1.0 imports it by, and Debian's libraries as external packages; then two ranks, and a
# program by its pkg-config file. What it names was looked up in spack-packages.
from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Hocket(CMakePackage):
    """Collective communication for arrays: a C++20 library and a command."""

    license("Apache-2.0")

    # The archive of the release: python -m build --sdist
    version("0.1.0", url="file:///tmp/hocket-0.1.0.tar.gz", expand=True)

    variant("openmpi", default=False, description="Engine for Open MPI")
    variant("mpich", default=False, description="Engine for MPICH")
    variant("cuda", default=False, description="Kernels for GPUs")
    conflicts("+openmpi +mpich", msg="Spack has one MPI in a build")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("fmt")
    depends_on("spdlog")  # with Spack's fmt
    depends_on("highway")
    depends_on("eigen", type="build")
    depends_on("openssl")
    depends_on("cli11", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("openmpi", when="+openmpi")
    depends_on("mpich", when="+mpich")
    depends_on("cuda", when="+cuda", type="build")

    def cmake_args(self):
        def tool(package, name):  # not one of the machine's own
            return self.spec[package].prefix.bin.join(name) if f"+{package}" in self.spec else "OFF"

        return [
            self.define("HOCKET_TESTS", False),
            self.define("HOCKET_BENCH", False),
            self.define("HOCKET_NVCC", tool("cuda", "nvcc")),
            self.define("HOCKET_MPICXX_openmpi", tool("openmpi", "mpicxx")),
            self.define("HOCKET_MPICXX_mpich", tool("mpich", "mpicxx")),
        ]
