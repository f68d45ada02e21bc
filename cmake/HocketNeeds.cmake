# What a build needs, looked for at once, so that whoever lacks several things hears of all of them, by
# the names of the packages that have them.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # found here, known to all layers
set(hocket_missing "")

# hocket_needs(NAME DEBIAN FEDORA ARCH CONDA): a package that CMake finds by NAME.
function(hocket_needs NAME DEBIAN FEDORA ARCH CONDA)
  find_package(${NAME} QUIET)
  if(${NAME}_FOUND)
    set(${NAME}_VERSION "${${NAME}_VERSION}" PARENT_SCOPE)
    return()
  endif()
  string(APPEND hocket_missing
    "  ${NAME}: Debian and Ubuntu ${DEBIAN}; Fedora ${FEDORA}; Arch ${ARCH}; conda ${CONDA}\n")
  set(hocket_missing "${hocket_missing}" PARENT_SCOPE)
endfunction()

hocket_needs(Threads libc6-dev glibc-devel glibc sysroot_linux-64)
hocket_needs(fmt libfmt-dev fmt-devel fmt fmt)
hocket_needs(spdlog libspdlog-dev spdlog-devel spdlog spdlog)
hocket_needs(hwy libhwy-dev highway-devel highway libhwy)
hocket_needs(OpenSSL libssl-dev openssl-devel openssl openssl)
hocket_needs(CLI11 libcli11-dev cli11-devel cli11 cli11)
hocket_needs(nlohmann_json nlohmann-json3-dev json-devel nlohmann-json nlohmann_json)
if(HOCKET_ARRAYS)
  hocket_needs(Eigen3 libeigen3-dev eigen3-devel eigen eigen)
endif()
if(HOCKET_TESTS)
  hocket_needs(GTest libgtest-dev gtest-devel gtest gtest)
  hocket_needs(rapidcheck librapidcheck-dev rapidcheck-devel rapidcheck rapidcheck)
endif()
if(hocket_missing)
  message(FATAL_ERROR "hocket cannot be built, as these are not found:\n${hocket_missing}"
    "Install them, or name the folder of one by -DNAME_ROOT=FOLDER. What is found is used, and what "
    "else there is makes more of it: an MPI, nvcc (see docs/installing.md).")
endif()
