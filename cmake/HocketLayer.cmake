# hocket_layer(NAME SOURCES a.cc ... [USES layer ...] [LINKS target ...])
#
# Declares one layer: an object library hocket_NAME whose links are private to it. USES names the
# layers whose headers it includes; LINKS names outside libraries. Everything ends up in libhocket.

add_library(hocket_options INTERFACE)
target_compile_options(hocket_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -fno-semantic-interposition
  $<$<CXX_COMPILER_ID:GNU>:-fcoroutines -Wno-missing-field-initializers -Wno-psabi>
  # Of what a source keeps to itself, where the compiler takes it for a header.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-subobject-linkage>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-field-initializers>)
if(HOCKET_SANITIZE)
  # Whatever the build type: code that builds twice as fast, and names the lines it stands for.
  add_compile_options(-fsanitize=${HOCKET_SANITIZE} -fno-omit-frame-pointer -O1 -g1
    -D_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=${HOCKET_SANITIZE})
  if(HOCKET_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-tsan)  # of fences, which it does not follow; tests/relacy does
  endif()
  if(HOCKET_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

function(hocket_layer NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LINKS" ${ARGN})
  string(REPLACE "/" "_" target hocket_${NAME})
  add_library(${target} OBJECT ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  # A switch over kinds, operators or causes names all of them.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror=switch>)
  target_link_libraries(${target} PRIVATE hocket_options Threads::Threads ${ARG_LINKS})
  set_property(GLOBAL APPEND PROPERTY HOCKET_LAYERS ${target})
  set_property(GLOBAL APPEND PROPERTY HOCKET_LINKS ${ARG_LINKS})
endfunction()
