// Where the program of a rank is, file and line, that others wait for: they ask by its desk, and a
// thread of the rank's process answers there. Nothing of it runs before somebody asks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "foundation/os/futex.h"
#include "membership/control/host.h"
#include "membership/control/onlooker.h"

namespace hocket::live {

// Asks a rank of this host that tells such a thing; the answer comes later, or never. Few times a
// second, whoever asks how often.
void ask_place(control::HostControl& host, int place) noexcept;
// The answer; empty where there is none, or the rank has made calls since.
std::string place_of(const control::Onlooker& segment, int place);

// A resource of a rank: who answers. `look` in one thread at a time.
class PlaceTelling {
 public:
  // Null where nobody tells (see set_place_teller), or the rank shows nothing. Of this thread,
  // which runs the rank's program.
  static std::unique_ptr<PlaceTelling> make(std::shared_ptr<control::HostControl> host);

  // Grows with each question, and is woken.
  os::FutexWord& asked() noexcept { return asked_; }
  // Has a thread answer, where somebody has asked since the last time and none is at it.
  void look() noexcept;

 private:
  struct Answering;
  PlaceTelling(std::shared_ptr<Answering> answering, os::FutexWord& asked);

  const std::shared_ptr<Answering> answering_;  // also the thread's, which may outlive this
  os::FutexWord& asked_;
  std::uint32_t seen_;
};

}  // namespace hocket::live
