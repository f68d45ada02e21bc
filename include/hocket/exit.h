// The end of a process.
#pragma once

namespace hocket {

// Lets the calls on GPUs of all communicators of this process end, well or not, until their
// deadlines. What ended one, where nobody has been told, is said on standard error. False: that has
// happened, now or earlier. `exit` does this by itself, and then exits with 1 instead of 0; it is
// for processes that end by `_exit`.
bool finish_calls() noexcept;

}  // namespace hocket
