// The operations that the blocks of all kernels share: open and save the counters of their links,
// wait for peers, announce data, give back slots.
//
// The protocols are templates over a policy, Machine. It is one thread block on a GPU, or a few
// host threads that emulate one; see cuda_machine.cuh and tests/conformance. It provides
//
//   thread(), threads(), channel(), channels()    numbers and counts
//   role()                                        number among the blocks of a channel
//   kWide                                         one thread exists for each place of a small call
//   params()                                      the Parameters of the launch
//   shared()                                      a Counters that the block shares
//   sync_or(bool)                                 block barrier; true if any thread passed true
//   load_packet, store_packet                     access as a whole, in any order
//   first_lane(), next_lane(i)                    lanes that this thread emulates: all of a line
//   all_lanes(bool), of_all_lanes(bits)           synchronize a warp; whether all passed true;
//                                                 the bits that any lane passed
//   load_line_packet(at, lane, flag)              load a LinePacket; store_packet stores one: all
//                                                 lanes of a line do so at once, or in their order
//   load_staged(at), store_staged(at, vector)     a chunk's vectors: loaded here, stored to a peer
//   work_out(values...)                           compute into registers now, not at the first use
//   await_previous()                              wait for earlier work of the stream; before it,
//                                                 only parameters are accessed
//   load_link(link)                               load an OpenLink at the start, as a whole
//   load_flag(flag)                               load the flag that is_dead() reads
//   load_acquire(word), store_release(word, v)    counters
//   load_credit(word), store_credit(word, v)      before stores to a slot; after loads from it,
//                                                 whose values have been used
//   fence()                                       order before this thread's later stores
//   let_next_begin()                              no more waits for peers: the stream's next kernel
//                                                 may be launched, and waits for this one's end
//   is_dead()                                     whether a kernel of this group gave up
//   look(missing)                                 periodic check during a wait; true: give up
#pragma once

#include <cstdint>

#include "engines/peer/kernels/params.h"
#include "engines/peer/kernels/vectors.h"

namespace hocket::engines::peer {

// One lane's packet of a line, and the line's flag as this lane sees it.
struct LinePacket {
  Packet packet;
  std::uint32_t flag;
};

// A chunk to move. It may be empty.
struct Move {
  const std::byte* from;
  std::byte* to;
  std::uint32_t bytes;
};

// The state of a block while a kernel runs. The thread that keeps peer j writes the entries of peer
// j, and the others read its results.
struct Counters {
  std::uint64_t sent[kMaxPeers];
  std::uint64_t received[kMaxPeers];
  std::uint64_t credit[kMaxPeers];  // as last seen
  // For chunks, in the current round.
  Move puts[kMaxPeers];
  Move takes[kMaxPeers];
  const std::byte* sources[kMaxPeers];  // slots of data that is reduced here; null: none from this
                                        // peer
  std::byte* targets[kMaxPeers];        // targets of the result; null: not to this peer
};

// The counters that a kernel needs from a link at its start.
struct OpenLink {
  std::uint64_t sent, received, credit;
};

// Number of unsuccessful polls between two checks of `look`.
inline constexpr std::uint32_t kPollsBetweenLooks = 128;

// One thread's view of its block. `failed` says that this thread has given up.
template <typename Machine>
struct Block {
  Machine& m;
  const typename Machine::Parameters& p;
  int in, out;  // the lanes of incoming and outgoing data
  bool failed = false;
  std::uint32_t polls = 0;
  std::uint32_t polls_together = 0;  // the same number in all lanes of a warp

  HOCKET_ANYWHERE explicit Block(Machine& machine)
      : Block(machine, machine.params().lane, machine.params().lane) {}
  HOCKET_ANYWHERE Block(Machine& machine, int in_lane, int out_lane)
      : m(machine), p(machine.params()), in(in_lane), out(out_lane) {}

  // Calls act(j) for each peer j whose counters this thread keeps. On a GPU there is at most one.
  template <typename Act>
  HOCKET_ANYWHERE void for_kept(const Act& act) {
    if constexpr (Machine::kWide) {
      if (m.thread() < static_cast<int>(p.peers)) act(m.thread());
    } else {
      for (int j = m.thread(); j < static_cast<int>(p.peers); j += m.threads()) act(j);
    }
  }

  // Returns whether this thread keeps the counters of peer j.
  HOCKET_ANYWHERE bool is_kept(int j) const {
    if (j >= static_cast<int>(p.peers)) return false;
    return Machine::kWide ? j == m.thread() : j % m.threads() == m.thread();
  }

  // Return the links of incoming and outgoing data, here and at the peer.
  HOCKET_ANYWHERE Link* in_here(int j) const { return p.here(in, m.channel(), j); }
  HOCKET_ANYWHERE Link* in_there(int j) const { return p.there(in, m.channel(), j); }
  HOCKET_ANYWHERE Link* out_here(int j) const { return p.here(out, m.channel(), j); }
  HOCKET_ANYWHERE Link* out_there(int j) const { return p.there(out, m.channel(), j); }
  HOCKET_ANYWHERE Packet* packets_to(int j, std::uint64_t step) const {
    return reinterpret_cast<Packet*>(p.packets_to(m.channel(), j, step));
  }
  HOCKET_ANYWHERE Packet* packets_from(int j, std::uint64_t step) const {
    return reinterpret_cast<Packet*>(p.packets_from(m.channel(), j, step));
  }
  HOCKET_ANYWHERE std::uint32_t out_slots() const { return chunk_slots(out); }  // of chunks
  HOCKET_ANYWHERE std::byte* chunk_to(int j) const {
    return p.chunk_to(out, m.channel(), j, m.shared().sent[j]);
  }
  HOCKET_ANYWHERE std::byte* chunk_from(int j) const {
    return p.chunk_from(in, m.channel(), j, m.shared().received[j]);
  }

  // Must be called after each unsuccessful poll. Returns true to give up.
  HOCKET_ANYWHERE bool gives_up(std::uint32_t missing) {
    if (++polls % kPollsBetweenLooks != 0) return false;
    failed = m.look(missing);
    return failed;
  }

  // Does the same for a warp, whose lanes wait together.
  HOCKET_ANYWHERE bool gives_up_together(std::uint32_t missing) {
    if (++polls_together % kPollsBetweenLooks != 0) return false;
    failed = !m.all_lanes(!m.look(m.of_all_lanes(missing)));
    return failed;
  }

  // --- Counters: the threads that keep them do the work, and the others do nothing. A thread that
  // needs the result of all calls meet().

  // Synchronizes the block. Returns false if any thread has given up; then all do.
  HOCKET_ANYWHERE bool meet() { return !m.sync_or(failed); }

  // Opens both directions of one lane.
  HOCKET_ANYWHERE void open() {
    for_kept([&](int j) {
      const OpenLink link = m.load_link(in_here(j));
      failed = m.is_dead() || failed;
      m.store_credit(&in_there(j)->peer.credit, link.received);
      m.shared().sent[j] = link.sent;
      m.shared().received[j] = link.received;
      m.shared().credit[j] = link.credit;
    });
  }
  HOCKET_ANYWHERE void save() {
    save_in();
    save_out();
  }
  // Opens one direction. Other blocks may use the other one.
  HOCKET_ANYWHERE void open_in() {
    for_kept([&](int j) {
      const std::uint64_t received = in_here(j)->own.received;
      m.store_credit(&in_there(j)->peer.credit, received);
      m.shared().received[j] = received;
      failed = failed || m.is_dead();
    });
  }
  HOCKET_ANYWHERE void open_out() {
    for_kept([&](int j) {
      m.shared().sent[j] = out_here(j)->own.sent;
      m.shared().credit[j] = m.load_credit(&out_here(j)->peer.credit);
      failed = failed || m.is_dead();
    });
  }
  HOCKET_ANYWHERE void save_in() {
    for_kept([&](int j) { in_here(j)->own.received = m.shared().received[j]; });
  }
  HOCKET_ANYWHERE void save_out() {
    for_kept([&](int j) { out_here(j)->own.sent = m.shared().sent[j]; });
  }

  // Waits until the step `ahead` from now may be written to each peer j with `which(j)`, which has
  // `slots` slots.
  template <typename Which>
  HOCKET_ANYWHERE void reserve(std::uint64_t slots, std::uint64_t ahead, const Which& which) {
    for_kept([&](int j) {
      if (failed || !which(j)) return;
      const std::uint64_t step = m.shared().sent[j] + ahead;
      std::uint64_t credit = m.shared().credit[j];
      // A peer may have consumed an empty step before it was sent.
      if (credit + slots > step) return;
      while ((credit = m.load_credit(&out_here(j)->peer.credit)) + slots <= step) {
        if (gives_up(1u << j)) return;
      }
      m.shared().credit[j] = credit;
    });
  }
  // Ends a step to each peer j with `which(j)`, and announces its chunk. The block must have met
  // after writing it.
  template <typename Which>
  HOCKET_ANYWHERE void announce(const Which& which) {
    for_kept([&](int j) {
      if (which(j)) m.store_release(&out_there(j)->peer.arrived, ++m.shared().sent[j]);
    });
  }
  // Ends steps to each peer j with `which(j)`. Packets announce themselves.
  template <typename Which>
  HOCKET_ANYWHERE void count_sent(std::uint64_t steps, const Which& which) {
    for_kept([&](int j) {
      if (which(j)) m.shared().sent[j] += steps;
    });
  }
  // Waits for the chunks of each peer j with `which(j)`.
  template <typename Which>
  HOCKET_ANYWHERE void await(const Which& which) {
    for_kept([&](int j) {
      if (failed || !which(j)) return;
      const std::uint64_t received = m.shared().received[j];
      while (m.load_acquire(&in_here(j)->peer.arrived) <= received) {
        if (gives_up(1u << j)) return;
      }
    });
  }
  // Ends a step from each peer j with `which(j)` that all threads have read. The slot is given back
  // now, or by the next kernel if this was the last step of the call.
  template <typename Which>
  HOCKET_ANYWHERE void give_back(bool last, const Which& which) {
    for_kept([&](int j) {
      if (!which(j)) return;
      const std::uint64_t step = m.shared().received[j];
      if (in != kResults) sweep_now_and_then(j, step, 1);
      const std::uint64_t received = ++m.shared().received[j];
      if (!last) m.store_credit(&in_there(j)->peer.credit, received);
    });
  }
  // Does the same for `steps` steps of packets. It clears their slots when a sweep is due.
  template <typename Which>
  HOCKET_ANYWHERE void give_back_packets(bool last, std::uint64_t steps, const Which& which) {
    for_kept([&](int j) {
      if (!which(j)) return;
      const std::uint64_t step = m.shared().received[j];
      sweep_now_and_then(j, step, steps);
      m.shared().received[j] = step + steps;
      if (!last) m.store_credit(&in_there(j)->peer.credit, step + steps);
    });
  }

  // Opens this rank's arrays to each peer j with `which(j)`, which may then write to them.
  template <typename Which>
  HOCKET_ANYWHERE void open_arrays(const Which& which) {
    for_kept([&](int j) {
      if (!which(j)) return;
      const std::uint64_t opened = ++p.here(p.lane, m.channel(), j)->own.opened;
      m.store_release(&p.there(p.lane, m.channel(), j)->peer.opened, opened);
    });
  }
  // Waits until each peer j with `which(j)` has opened its arrays.
  template <typename Which>
  HOCKET_ANYWHERE void enter_arrays(const Which& which) {
    for_kept([&](int j) {
      if (failed || !which(j)) return;
      Link* link = p.here(p.lane, m.channel(), j);
      const std::uint64_t entered = link->own.entered;
      while (m.load_acquire(&link->peer.opened) <= entered) {
        if (gives_up(1u << j)) return;
      }
      link->own.entered = entered + 1;
    });
  }

  // Clears the packet slots of steps from `step` on, which were consumed, when a sweep is due. A
  // slot may not have been written for a long time.
  HOCKET_ANYWHERE void sweep_now_and_then(int j, std::uint64_t step, std::uint64_t steps) {
    if (step % kSweepEvery >= kSweepFor) return;
    HOCKET_KEEP_LOOP
    for (std::uint64_t s = step; s < step + steps; ++s) {
      Packet* slot = packets_from(j, s);
      HOCKET_KEEP_LOOP
      for (std::uint32_t i = 0; i < kPacketsOfSlot; ++i) {
        m.store_packet(slot + i, {});
      }
    }
    m.fence();
  }
};

}  // namespace hocket::engines::peer
