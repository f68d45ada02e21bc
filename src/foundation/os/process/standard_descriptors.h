// Keeps the descriptors 0, 1 and 2 of this process in use.
#pragma once

namespace hocket::os {

// Opens /dev/null for each of these descriptors that is closed, for the rest of the process's life.
// Otherwise the next file or connection would get such a number, and with it the output of the
// program and its libraries.
void occupy_standard_descriptors() noexcept;

}  // namespace hocket::os
