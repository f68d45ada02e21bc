// The barrier: nobody's later work begins before everybody's earlier work has ended.
#pragma once

#include "engines/peer/block.h"

namespace hocket::engines::peer {

// One block. Each thread does all for the peers that it keeps, so that the block need not meet.
template <typename Machine>
HOCKET_ANYWHERE void barrier(Machine& machine) {
  Block<Machine> block(machine);
  const auto everybody = [](int) { return true; };
  block.open();
  block.reserve(kPacketSlots, 0, everybody);
  block.announce(everybody);
  block.await(everybody);
  machine.all_lanes(true);  // all have waited
  machine.let_next_begin();
  block.give_back(true, everybody);
  if (!block.failed) block.save();
}

}  // namespace hocket::engines::peer
