# A port for vcpkg's overlay: --overlay-ports=packaging/vcpkg, from the unpacked source archive. Tried
# with: CMake, which parses it, and what it names looked up in vcpkg's ports and scripts. The program
# vcpkg was not in reach.
set(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../..")
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DHOCKET_TESTS=OFF -DHOCKET_BENCH=OFF -DHOCKET_NVCC=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/hocket)
vcpkg_fixup_pkgconfig()
vcpkg_copy_tools(TOOL_NAMES hocket AUTO_CLEAN)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
