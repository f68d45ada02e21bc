# What `cmake --install` puts where: the library, the command, the headers, and what CMake and
# pkg-config need to find them. Everything is found from where it lies, so an installed tree can be
# moved. A wheel is such a tree, too, in the Python package's folder.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hocket)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# hocket_install_library(TARGET NAME SOVERSION FOLDER [EXPORT SET]). A wheel has no links: what the
# linker looks for is a text there, which names the library.
function(hocket_install_library TARGET NAME SOVERSION FOLDER)
  set(namelink "")
  if(SKBUILD)
    set(namelink NAMELINK_SKIP)
    set(text ${PROJECT_BINARY_DIR}/cmake/lib${NAME}.so)
    file(WRITE ${text} "INPUT(lib${NAME}.so.${SOVERSION})\n")
    install(FILES ${text} DESTINATION ${FOLDER})
  endif()
  install(TARGETS ${TARGET} ${ARGN}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    LIBRARY DESTINATION ${FOLDER} ${namelink}
    ARCHIVE DESTINATION ${FOLDER})
endfunction()
hocket_install_library(hocket hocket ${PROJECT_VERSION_MAJOR} ${CMAKE_INSTALL_LIBDIR} EXPORT hocketTargets)
set(without "")
if(NOT HOCKET_ARRAYS)  # hocket.h includes these headers where they are
  set(without REGEX "/(device_pool|distribution|fft|matmul|redistribute)\\.h$" EXCLUDE)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hocket DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh" ${without})
if(TARGET hocket_fortran)
  get_target_property(module hocket_fortran MODULE_FILE)
  install(FILES ${module} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hocket)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/hocket)
if(TARGET hocket_command)
  set_target_properties(hocket_command PROPERTIES
    INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS hocket_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# A shared library brings its dependencies along. A static one leaves them to whoever links it: then
# the package files name them, each with its name in CMake and in pkg-config. There they are plain
# requirements, not private ones: those come with their own private ones, down to what nobody has.
set(HOCKET_DEPENDENCIES "")
set(HOCKET_PC_REQUIRES "")
get_target_property(library_type hocket TYPE)
if(library_type STREQUAL "STATIC_LIBRARY")
  get_property(links GLOBAL PROPERTY HOCKET_LINKS)
  list(REMOVE_DUPLICATES links)
  set(pc_modules "")
  foreach(link ${links})
    if(link MATCHES "^([^:]+)::")
      set(package ${CMAKE_MATCH_1})
      string(APPEND HOCKET_DEPENDENCIES "find_dependency(${package})\n")
      string(TOLOWER ${package} module)
      string(REGEX REPLACE "^hwy$" "libhwy" module ${module})
      list(APPEND pc_modules ${module})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES pc_modules)
  list(JOIN pc_modules ", " HOCKET_PC_REQUIRES)
endif()

install(EXPORT hocketTargets NAMESPACE hocket:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/hocketConfig.cmake.in
  ${PROJECT_BINARY_DIR}/cmake/hocketConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/hocketConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/cmake/hocketConfig.cmake
  ${PROJECT_BINARY_DIR}/cmake/hocketConfigVersion.cmake
  DESTINATION ${package_dir})

# From lib/pkgconfig to the prefix: as many steps up as the folder has.
file(RELATIVE_PATH HOCKET_PC_TO_PREFIX /prefix/${pkgconfig_dir} /prefix)
# A program that is linked so finds the library when it starts; packages of a distribution need no help.
set(HOCKET_PC_RPATH " -Wl,-rpath,\${libdir}")
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(HOCKET_PC_RPATH "")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/hocket.pc.in ${PROJECT_BINARY_DIR}/cmake/hocket.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cmake/hocket.pc DESTINATION ${pkgconfig_dir})

# MPI over hocket: its libraries in a folder of their own, and what programs are built with.
if(TARGET hocket_mpi_standard_face)
  set(mpi_dir ${CMAKE_INSTALL_LIBDIR}/hocket-mpi)
  hocket_install_library(hocket_mpi_standard_face mpi_abi 1 ${mpi_dir} EXPORT hocketTargets)
  install(TARGETS hocket_mpi_mpich_face hocket_mpi_mpich_of_debian
    LIBRARY DESTINATION ${mpi_dir} NAMELINK_SKIP)
  install(TARGETS hocket_mpi_trampoline LIBRARY DESTINATION ${mpi_dir})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/hocket-mpi.pc.in ${PROJECT_BINARY_DIR}/cmake/hocket-mpi.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/cmake/hocket-mpi.pc DESTINATION ${pkgconfig_dir})
  file(RELATIVE_PATH HOCKET_BIN_TO_PREFIX /prefix/${CMAKE_INSTALL_BINDIR} /prefix)
  # hocket_install_wrapper(NAME VARIABLE COMPILER LANGUAGE)
  function(hocket_install_wrapper HOCKET_WRAPPER HOCKET_VARIABLE HOCKET_COMPILER HOCKET_LANGUAGE)
    set(wrapper ${PROJECT_BINARY_DIR}/cmake/${HOCKET_WRAPPER})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/hocket-mpicc.in ${wrapper} @ONLY)
    install(PROGRAMS ${wrapper} DESTINATION ${CMAKE_INSTALL_BINDIR})
  endfunction()
  hocket_install_wrapper(hocket-mpicc HOCKET_MPICC cc C)
  hocket_install_wrapper(hocket-mpicxx HOCKET_MPICXX c++ C++)
endif()
