// See pretended_pages.cc.
#pragma once

#include <cstddef>

namespace hocket::multiprocess {

// The program's page size, in bytes.
std::size_t pretended_page();
// libc's function that this program's own function of that name hides.
void* next_function(const char* name);

}  // namespace hocket::multiprocess
