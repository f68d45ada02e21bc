#include "monitoring/live/desk.h"

#include <array>

#include "foundation/base/config.h"
#include "foundation/base/log.h"
#include "hocket/error.h"
#include "membership/control/onlooker.h"

namespace hocket::live {
namespace {

// Null where the rank shows nothing.
DeskLayout* own_desk_of(control::HostControl& host) noexcept {
  auto* const desk =
      reinterpret_cast<DeskLayout*>(host.at(control::first_block_of(host, host.self())));
  return desk->manner.load(std::memory_order_acquire) == DeskLayout::kShown ? desk : nullptr;
}

}  // namespace

void lay_out_desk(control::HostControl& host) {
  const bool shows = base::environment("HOCKET_TOP") != "0";
  try {
    const std::array holders{host.self()};
    // Zero, as fresh seats and rows are. Memory is taken where it is written.
    const std::uint64_t offset = host.allocate(sizeof(DeskLayout), holders);
    auto* const desk = reinterpret_cast<DeskLayout*>(host.at(offset));
    desk->meters.store(base::environment("HOCKET_METRICS") ? 1 : 0, std::memory_order_relaxed);
    desk->manner.store(shows ? DeskLayout::kShown : DeskLayout::kPrivate,
                       std::memory_order_release);
  } catch (const SystemError& error) {  // out of memory: the job itself needs what is left
    base::log(base::LogLevel::kInfo, error.what());
  }
}

void sit_down(control::HostControl& host, std::uint64_t block, int rank, std::string_view group) {
  DeskLayout* const desk = own_desk_of(host);
  if (desk == nullptr) return;
  Seated seated{.block = block, .rank = rank, .name = {}};
  seated.name = group;
  for (GroupSeat& seat : desk->seats) {
    if (seat.take(seated)) return;
  }
}

void stand_up(control::HostControl& host, std::uint64_t block) noexcept {
  DeskLayout* const desk = own_desk_of(host);
  if (desk == nullptr) return;
  for (GroupSeat& seat : desk->seats) {
    if (seat.leave(block)) return;
  }
}

DeskLayout* counting_desk(control::HostControl& host) noexcept {
  DeskLayout* const desk = own_desk_of(host);
  if (desk == nullptr || desk->meters.load(std::memory_order_relaxed) == 0) return nullptr;
  return desk;
}

}  // namespace hocket::live
