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
// PeerDied then gives this reason. It matters only if the exit status is 1. The others learn any
// other status anyway, but a 1 does not tell them the reason. After the worlds are closed, only
// ranks of the same host hear of it.
void tell_end(std::string_view why) noexcept;

// Tells the launcher that this process is about to fail. Other ranks may hear of the failure and
// end because of it. With this announcement the launcher still gives this rank's exit status as
// that of the job. It is for processes that end by `_exit` soon. Processes that leave their worlds
// announce it by themselves.
void announce_failure() noexcept;

// Announces that a part of this process has failed although the process goes on, such as "its
// thread reader raised ValueError: ...". An error shows the text if it names this rank as missing,
// or as one that has ended in good order.
// @param what The event, as a clause.
void tell_trouble(std::string_view what) noexcept;

}  // namespace hocket
