// See pretended_pages.cc.
#pragma once

#include <cstddef>

namespace hocket::multiprocess {

// What the program takes a page to be, bytes.
std::size_t pretended_page();
// libc's function that this program's own of that name stands before.
void* next_function(const char* name);

}  // namespace hocket::multiprocess
