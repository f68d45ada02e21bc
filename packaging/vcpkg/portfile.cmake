# A port for vcpkg's overlay: --overlay-ports=packaging/vcpkg. Tried with: vcpkg of August 2026, its program
# built from source, and empty ports for what this one depends on, as Debian 12 had that installed. Static
# and shared libraries were built; a program, by vcpkg's tool chain file, found each and ran on two ranks.

# The archive of the release (python -m build --sdist). One that is fetched takes vcpkg_download_distfile.
vcpkg_extract_source_archive(SOURCE_PATH
  ARCHIVE "${CMAKE_CURRENT_LIST_DIR}/../../dist/hocket-${VERSION}.tar.gz")
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DHOCKET_TESTS=OFF
    -DHOCKET_BENCH=OFF
    # Not the machine's own.
    -DHOCKET_NVCC=OFF
    -DHOCKET_MPICXX_openmpi=OFF
    -DHOCKET_MPICXX_mpich=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/hocket)
vcpkg_fixup_pkgconfig()
vcpkg_copy_tools(TOOL_NAMES hocket AUTO_CLEAN)
file(REMOVE_RECURSE
  "${CURRENT_PACKAGES_DIR}/debug/include"
  "${CURRENT_PACKAGES_DIR}/debug/share"
  "${CURRENT_PACKAGES_DIR}/share/doc")  # the licence, which vcpkg has at a place of its own
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
