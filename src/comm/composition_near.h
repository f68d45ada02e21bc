// The composition root's part for those members of a group that share this host, where others are
// elsewhere: messages and collectives among them, by shared memory.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/communicator_impl.h"

namespace hocket::comm {

// A value.
struct Mates {
  int own = -1;              // this rank's number among them
  std::vector<int> members;  // the number in the group of each
  std::vector<int> places;   // of each; see control::HostControl
  std::vector<int> numbers;  // of each member of the group: its number among them, or -1
  int size() const noexcept { return static_cast<int>(members.size()); }
};
Mates mates_of(const call::Membership& membership);

struct Near {
  std::unique_ptr<engine::PointToPoint> messages;  // by numbers among the mates
  // Parts of the calls of the whole group: what each rank has called is compared where these meet.
  std::unique_ptr<engine::CollectiveEngine> collectives;
};
// `memory`: theirs in the group's block. `whole`: of the group.
Near make_near(control::HostControl& host,
               const Mates& mates,
               std::byte* memory,
               engine::Consistency& whole);

// Parts of a group's block begin at multiples of this, whatever the kernel's pages are.
constexpr std::size_t kPartBytes = 4096;
constexpr std::size_t round_to_part(std::size_t bytes) {
  return (bytes + kPartBytes - 1) / kPartBytes * kPartBytes;
}

// Of `memory`, and how it begins.
std::size_t near_bytes(int mates);
void format_near(std::byte* memory, int mates);

}  // namespace hocket::comm
