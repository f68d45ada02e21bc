// The barrier. On each rank's stream, later work begins only after the earlier work of all ranks
// has ended.
#pragma once

#include "engines/peer/kernels/block.h"

namespace hocket::engines::peer {

// Runs in one block. Each thread handles its own peers, so the threads of the block need not
// synchronize.
template <typename Machine>
HOCKET_ANYWHERE void barrier(Machine& machine) {
  Block<Machine> block(machine);
  Machine& m = machine;
  struct Way {
    Link* here;
    Link* there;
    OpenLink counters;
  };
  constexpr int kMost = Machine::kWide ? 1 : kMaxPeers;  // peers of one thread
  Way ways[kMost];
  const auto for_ways = [&](const auto& act) {
    for (int k = 0; k < kMost; ++k) {
      const int j = m.thread() + k * m.threads();
      if (j < static_cast<int>(block.p.peers) && !block.failed) act(j, ways[k]);
    }
  };
  const std::uint32_t* dead = block.p.dead();
  for_ways([&](int j, Way& way) {
    way = {block.in_here(j), block.in_there(j), {}};
    m.work_out(way.here, way.there, dead);
  });
  m.await_previous();
  for_ways([&](int, Way& way) {
    way.counters = m.load_link(way.here);
    block.failed = m.load_flag(dead) != 0;
    m.store_release(&way.there->peer.arrived, way.counters.sent + 1);
    m.store_credit(&way.there->peer.credit, way.counters.received);
  });
  for_ways([&](int j, const Way& way) {
    while (m.load_acquire(&way.here->peer.arrived) <= way.counters.received) {
      if (block.gives_up(1u << j)) return;
    }
  });
  m.all_lanes(true);  // all peers have arrived
  m.let_next_begin();
  for_ways([&](int j, const Way& way) {
    block.sweep_now_and_then(j, way.counters.received, 1);
    way.here->own.sent = way.counters.sent + 1;
    way.here->own.received = way.counters.received + 1;
  });
}

}  // namespace hocket::engines::peer
