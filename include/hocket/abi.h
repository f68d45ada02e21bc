// Every public header that passes types of the standard library includes this file. It refuses a
// program whose standard library has another layout than the one hocket is compiled with. Such a
// program would link, and then misread the objects that are passed.
//
// The library is compiled with libstdc++ and its default settings.
#pragma once

#include <cstddef>

#include "hocket/cplusplus.h"

// Some compilers go on after #error. Including a file that does not exist ends the compilation.
#if defined(_LIBCPP_VERSION)
#error "hocket is compiled with libstdc++, whose types differ: compile without -stdlib=libc++"
#include "hocket/needs libstdc++: compile without -stdlib=libc++"
#elif defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#error "hocket has the strings of C++11: no -D_GLIBCXX_USE_CXX11_ABI=0, or use hocket/c.h"
#include "hocket/needs the strings of C++11: compile without -D_GLIBCXX_USE_CXX11_ABI=0"
#elif defined(_GLIBCXX_DEBUG)
#error "hocket has no containers of -D_GLIBCXX_DEBUG: use -D_GLIBCXX_ASSERTIONS instead"
#include "hocket/needs containers without -D_GLIBCXX_DEBUG: use -D_GLIBCXX_ASSERTIONS"
#endif

namespace hocket::detail {
struct Gap {
  char first;
  double second;
};
static_assert(sizeof(Gap) == 2 * sizeof(double),
              "hocket has structs with the usual gaps: include it before #pragma pack, and compile "
              "without -fpack-struct");
}  // namespace hocket::detail
