// The position (file and line) of a rank's program, for ranks that wait for it. They ask through
// the rank's board, and a thread of its process answers there. Nothing runs before the first
// question.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "foundation/os/futex.h"
#include "membership/control/host.h"
#include "membership/control/onlooker.h"

namespace hocket::live {

// Asks a rank of this host for its position; the answer comes later, or never. Each waiting rank
// asks at most a few times a second.
void ask_position(control::HostControl& host, int place) noexcept;
// The answer; empty if there is none, or if the rank has made calls since.
std::string place_of(const control::Onlooker& segment, int place);

// A resource of a rank that answers. Call `look` in one thread at a time.
class PositionReporter {
 public:
  // Null if no function is registered (see set_place_teller), or if the rank shows nothing. Call it
  // in the thread that runs the rank's program.
  static std::unique_ptr<PositionReporter> make(std::shared_ptr<control::HostControl> host);

  // Increases with each question, and is woken.
  os::FutexWord& asked() noexcept { return asked_; }
  // Starts a thread to answer if there is a new question and no thread answers yet.
  void look() noexcept;

 private:
  struct Answering;
  PositionReporter(std::shared_ptr<Answering> answering, os::FutexWord& asked);

  const std::shared_ptr<Answering> answering_;  // also the thread's, which may outlive this
  os::FutexWord& asked_;
  std::uint32_t seen_;
};

}  // namespace hocket::live
