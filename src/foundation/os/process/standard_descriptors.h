// The descriptors 0, 1 and 2 of this process.
#pragma once

namespace hocket::os {

// Opens the closed ones of them on /dev/null, permanently. Otherwise the next opened file or
// connection would get one of these numbers, and with it the output of the program and its
// libraries.
void occupy_standard_descriptors() noexcept;

}  // namespace hocket::os
