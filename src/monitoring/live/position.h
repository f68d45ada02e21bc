// The position (file and line) of a rank's program, for ranks that wait for it. They ask through
// the rank's board, and a thread of the rank's process answers there. Nothing runs before the first
// question.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "foundation/os/futex.h"
#include "membership/control/host/host.h"
#include "membership/control/onlooker.h"

namespace hocket::live {

// Asks a rank of this host for its position; the answer comes later, or never. All ranks together
// ask a rank at most once in 50 ms.
void ask_position(control::HostControl& host, int place) noexcept;
// Returns the last answer. Empty if there is none, or if the rank has made calls since then.
std::string place_of(const control::Onlooker& segment, int place);

// A resource of a rank that answers. Call `look` in one thread at a time.
class PositionReporter {
 public:
  // Null if no function is registered (see set_place_teller), or if the rank shows nothing. Call it
  // in the thread that runs the rank's program.
  static std::unique_ptr<PositionReporter> make(std::shared_ptr<control::HostMemory> memory);

  // The number of questions. Each question increases it, and wakes the threads that sleep on it.
  os::FutexWord& asked() noexcept { return asked_; }
  // Starts a thread to answer if there is a new question and no thread answers yet.
  void look() noexcept;

 private:
  struct Answering;
  PositionReporter(std::shared_ptr<Answering> answering, os::FutexWord& asked);

  const std::shared_ptr<Answering> answering_;  // shared with a thread that may outlive this
  os::FutexWord& asked_;
  std::uint32_t seen_;
};

}  // namespace hocket::live
