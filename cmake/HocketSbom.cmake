# The wheel's list of the libraries whose code it carries, as CycloneDX has it (an SBOM), in the folder
# that PEP 770 names. THIRD-PARTY-NOTICES.md has the same for people; a test compares them.
set(hocket_components "")

# hocket_carries(NAME VERSION LICENCE PURL): lists a library. PURL identifies it, without its version.
function(hocket_carries NAME VERSION LICENCE PURL)
  set(versioned "")
  if(VERSION)
    set(versioned "\"version\": \"${VERSION}\", ")
    string(APPEND PURL "@${VERSION}")
  endif()
  list(APPEND hocket_components "    {\"type\": \"library\", \"name\": \"${NAME}\", ${versioned}\
\"licenses\": [{\"expression\": \"${LICENCE}\"}], \"purl\": \"${PURL}\", \"bom-ref\": \"${PURL}\"}")
  set(hocket_components "${hocket_components}" PARENT_SCOPE)
endfunction()

# The same for the library of a target, if the wheel carries it: a shared one stays on its machine.
function(hocket_carries_static TARGET NAME VERSION LICENCE PURL)
  set(file "")
  foreach(configuration "" _RELEASE _NONE _RELWITHDEBINFO _NOCONFIG)
    get_target_property(location ${TARGET} IMPORTED_LOCATION${configuration})
    if(location)
      set(file ${location})
      break()
    endif()
  endforeach()
  if(file MATCHES "\\.a$")
    hocket_carries("${NAME}" "${VERSION}" "${LICENCE}" "${PURL}")
    set(hocket_components "${hocket_components}" PARENT_SCOPE)
  endif()
endfunction()

find_package(OpenSSL QUIET)  # for OPENSSL_VERSION, which HocketNeeds has in a function
hocket_carries_static(fmt::fmt fmt "${fmt_VERSION}" MIT pkg:github/fmtlib/fmt)
hocket_carries_static(spdlog::spdlog spdlog "${spdlog_VERSION}" MIT pkg:github/gabime/spdlog)
hocket_carries_static(hwy::hwy Highway "${hwy_VERSION}" Apache-2.0 pkg:github/google/highway)
hocket_carries_static(OpenSSL::SSL OpenSSL "${OPENSSL_VERSION}" Apache-2.0 pkg:github/openssl/openssl)
hocket_carries(Eigen "${Eigen3_VERSION}" MPL-2.0 pkg:gitlab/libeigen/eigen)
hocket_carries("JSON for Modern C++" "${nlohmann_json_VERSION}" MIT pkg:github/nlohmann/json)
hocket_carries(CLI11 "${CLI11_VERSION}" BSD-3-Clause pkg:github/cliutils/cli11)
hocket_carries(nanobind "${nanobind_VERSION}" BSD-3-Clause pkg:pypi/nanobind)
if(HOCKET_STATIC_CXX_RUNTIME)  # set by the tool chain of tools/release/wheel.sh
  hocket_carries("GCC's runtime" "${CMAKE_CXX_COMPILER_VERSION}"
    "GPL-3.0-or-later WITH GCC-exception-3.1" pkg:generic/gcc)
endif()

list(JOIN hocket_components ",\n" components)
set(sbom ${PROJECT_BINARY_DIR}/hocket.cdx.json)
file(WRITE ${sbom} "{
  \"bomFormat\": \"CycloneDX\",
  \"specVersion\": \"1.6\",
  \"version\": 1,
  \"metadata\": {\"component\": {
    \"type\": \"library\", \"name\": \"hocket\", \"version\": \"${PROJECT_VERSION}\",
    \"licenses\": [{\"expression\": \"Apache-2.0\"}],
    \"purl\": \"pkg:pypi/hocket@${PROJECT_VERSION}\", \"bom-ref\": \"pkg:pypi/hocket@${PROJECT_VERSION}\"}},
  \"components\": [
${components}
  ]
}
")
install(FILES ${sbom} DESTINATION ${SKBUILD_METADATA_DIR}/sboms)
