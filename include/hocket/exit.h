// The end of a process.
#pragma once

#include <string_view>

namespace hocket {

// Waits until the calls on GPUs of all communicators of this process have ended or reached their
// deadlines. Failures that the program does not know yet are written to standard error. `exit` does
// this by itself, and then exits with 1 instead of 0. Processes that end by `_exit` should call it.
// @return False if such a failure was written, now or earlier.
bool finish_calls() noexcept;

// Announces why this process is about to end, such as "raised RuntimeError: ...". The other ranks'
// PeerDied then gives this reason. It is for failures that they would not see otherwise. Call it
// before the worlds are closed. It has no effect if the exit status is 0, or neither 0 nor 1: the
// others learn that status anyway.
// @param why The reason, as part of a sentence.
void tell_end(std::string_view why) noexcept;

}  // namespace hocket
