// Numbers of 16 bytes, which C++ has no names for.
#pragma once

#include <limits>

namespace hocket::mpi {

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 Quad;
#else
using Quad = long double;
static_assert(std::numeric_limits<Quad>::digits == 113);
#endif

__extension__ typedef __int128 Int128;

}  // namespace hocket::mpi
