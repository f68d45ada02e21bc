// Included first by every public header: says what they need, instead of hundreds of errors.
#pragma once

#if __cplusplus < 202002L
#error "hocket needs C++20: compile with -std=c++20 (CMake: target_compile_features, cxx_std_20)"
// A file that is not there ends the compilation, where #error alone does not.
#include "hocket/needs C++20: compile with -std=c++20"
#endif
