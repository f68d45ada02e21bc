// Every public header includes this file first. It reports a missing C++20 in one line, where the
// compiler would report hundreds of errors.
#pragma once

#if __cplusplus < 202002L
#error "hocket needs C++20: compile with -std=c++20 (CMake: target_compile_features, cxx_std_20)"
// Some compilers go on after #error. Including a file that does not exist ends the compilation.
#include "hocket/needs C++20: compile with -std=c++20"
#endif
