// The end of a process.
#pragma once

#include <string_view>

namespace hocket {

// Lets the calls on GPUs of all communicators of this process end, well or not, until their
// deadlines. What ended one, where nobody has been told, is said on standard error. False: that has
// happened, now or earlier. `exit` does this by itself, and then exits with 1 instead of 0; it is
// for processes that end by `_exit`.
bool finish_calls() noexcept;

// Says why this process is about to end, such as "raised RuntimeError: ...", where that is a
// failure and the ranks that need this one would not see it otherwise: their PeerDied says so. To
// be called before the worlds are closed; of no effect where the process then exits with status 0,
// or with another than 1, which is told by itself.
void tell_end(std::string_view why) noexcept;

}  // namespace hocket
