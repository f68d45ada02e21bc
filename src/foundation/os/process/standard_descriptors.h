// Descriptors 0, 1 and 2 of this process.
#pragma once

namespace hocket::os {

// Opens those that are closed, on /dev/null, for the process's life. Otherwise the next file or
// connection that is opened would be one of them, and get what the program and its libraries print.
void occupy_standard_descriptors() noexcept;

}  // namespace hocket::os
