// The barrier: nobody's later work begins before everybody's earlier work has ended.
#pragma once

#include "engines/peer/block.h"

namespace hocket::engines::peer {

// One block, of at least as many threads as there are ranks.
template <typename Machine>
HOCKET_ANYWHERE void barrier(Machine& machine) {
  Block<Machine> block(machine);
  const auto everybody = [](int) { return true; };
  block.open();
  block.reserve(0, everybody);
  if (!block.meet()) return;
  block.announce(everybody);
  block.await(everybody);
  if (!block.meet()) return;
  block.give_back(everybody);
  block.save();
}

}  // namespace hocket::engines::peer
