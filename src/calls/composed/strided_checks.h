// Checks of views whose elements are not contiguous.
#pragma once

#include "hocket/strided.h"

namespace hocket::composed {

// Throws InvalidArgument, with the argument's name, unless results can be written to the view: each
// element needs a place of its own.
void require_writable(const StridedView& view, const char* name);

}  // namespace hocket::composed
