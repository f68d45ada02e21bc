// The operations that the blocks of all kernels share: open and save the counters of their links,
// wait for peers, announce data, give back slots.
//
// The protocols are templates over a policy, Machine. A Machine is one thread block on a GPU, or a
// few host threads that emulate a block; see cuda_machine.cuh and tests/conformance. It provides
//
//   thread(), threads(), channel(), channels()    this thread's number, and the counts
//   role()                                        this block's number among those of its channel
//   kWide                                         true: a small call has one thread for each vector
//   params()                                      the Parameters of the launch
//   shared()                                      the Counters that the threads of a block share
//   sync_or(bool)                                 block barrier; true if any thread passed true
//   load_packet, store_packet                     access a packet as a whole, without other order
//   first_lane(), next_lane(i)                    iterate over the lanes that this thread emulates;
//                                                 a host thread emulates all lanes of a line
//   all_lanes(bool)                               synchronize a warp; true if all passed true
//   of_all_lanes(bits)                            synchronize a warp; the OR of all lanes' bits
//   load_line_packet(at, lane, flag)              load a LinePacket. All lanes of a line load and
//                                                 store their packets together, or in lane order
//   load_staged(at), store_staged(at, vector)     load a vector of a chunk from this GPU's memory,
//                                                 store a vector of a chunk to a peer
//   work_out(values...)                           compute values into registers now, not later
//   await_previous()                              wait for the earlier work of the stream. Before
//                                                 this call a kernel reads only its parameters
//   load_link(link)                               load an OpenLink at the start, as a whole
//   load_flag(flag)                               load the flag that is_dead() reads
//   load_acquire(word), store_release(word, v)    access counters that announce data
//   load_credit(word)                             load a credit, before stores to a slot
//   store_credit(word, v)                         store a credit, after loads from a slot whose
//                                                 values have been used
//   fence()                                       order earlier stores before later stores
//   let_next_begin()                              this kernel no longer waits for peers: allow the
//                                                 launch of the stream's next kernel, which waits
//                                                 for this kernel's end
//   is_dead()                                     whether a kernel of this group gave up
//   look(missing)                                 periodic check during a wait; true: give up
#pragma once

#include <cstdint>

#include "engines/peer/kernels/params.h"
#include "engines/peer/kernels/vectors.h"

namespace hocket::engines::peer {

// The packet of one lane in a line, and the flag of the line as this lane sees it.
struct LinePacket {
  Packet packet;
  std::uint32_t flag;
};

// A chunk to move, which may be empty.
struct Move {
  const std::byte* from;
  std::byte* to;
  std::uint32_t bytes;
};

// The state of a block while a kernel runs. For each peer j, one thread of the block *keeps* the
// counters: only this thread writes the entries of peer j. The other threads read them after a
// block barrier.
struct Counters {
  std::uint64_t sent[kMaxPeers];
  std::uint64_t received[kMaxPeers];
  std::uint64_t credit[kMaxPeers];  // the peer's credit when it was last read
  // Only for protocols by chunks, in the current round.
  Move puts[kMaxPeers];
  Move takes[kMaxPeers];
  const std::byte* sources[kMaxPeers];  // slots with the peers' data to reduce; null: the peer is
                                        // no source
  std::byte* targets[kMaxPeers];        // where to write the result at each peer; null: the peer
                                        // gets no result
};

// The counters of a link that a kernel needs at its start.
struct OpenLink {
  std::uint64_t sent, received, credit;
};

// Number of unsuccessful polls between two calls of `look`.
inline constexpr std::uint32_t kPollsBetweenLooks = 128;

// One thread's view of its block. `failed` says that this thread has given up.
template <typename Machine>
struct Block {
  Machine& m;
  const typename Machine::Parameters& p;
  int in, out;  // the lanes (see layout.h) of incoming and outgoing data
  bool failed = false;
  std::uint32_t polls = 0;
  std::uint32_t polls_together = 0;  // the same value in all lanes of a warp

  HOCKET_ANYWHERE explicit Block(Machine& machine)
      : Block(machine, machine.params().lane, machine.params().lane) {}
  HOCKET_ANYWHERE Block(Machine& machine, int in_lane, int out_lane)
      : m(machine), p(machine.params()), in(in_lane), out(out_lane) {}

  // Calls act(j) for each peer j whose counters this thread keeps. A thread of a GPU keeps at most
  // one peer.
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

  // Return the link of incoming or outgoing data, in this rank's area (`here`) or in the area of
  // peer j (`there`).
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
  HOCKET_ANYWHERE std::uint32_t out_slots() const { return chunk_slots(out); }
  HOCKET_ANYWHERE std::byte* chunk_to(int j) const {
    return p.chunk_to(out, m.channel(), j, m.shared().sent[j]);
  }
  HOCKET_ANYWHERE std::byte* chunk_from(int j) const {
    return p.chunk_from(in, m.channel(), j, m.shared().received[j]);
  }

  // Must be called after each unsuccessful poll. `missing` has one bit for each peer that this
  // thread waits for. Returns true if the thread must give up.
  HOCKET_ANYWHERE bool gives_up(std::uint32_t missing) {
    if (++polls % kPollsBetweenLooks != 0) return false;
    failed = m.look(missing);
    return failed;
  }

  // Must be called by all lanes of a warp after each unsuccessful poll, if the lanes wait together.
  // All lanes get the same result.
  HOCKET_ANYWHERE bool gives_up_together(std::uint32_t missing) {
    if (++polls_together % kPollsBetweenLooks != 0) return false;
    failed = !m.all_lanes(!m.look(m.of_all_lanes(missing)));
    return failed;
  }

  // --- Counters. All threads of a block call these functions, but only the threads that keep
  // counters do the work. A block that needs the result calls meet() afterwards.

  // Synchronizes the block. Returns false if any thread has given up; then all threads must end.
  HOCKET_ANYWHERE bool meet() { return !m.sync_or(failed); }

  // Opens both directions: loads the counters, and gives the credit that the previous kernel did
  // not give. Both directions must be on the same lane.
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
  // Stores the counters of both directions for the next kernel.
  HOCKET_ANYWHERE void save() {
    save_in();
    save_out();
  }
  // Open or save only one direction. A different block may use the other direction.
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

  // Waits until this rank may write step sent + `ahead` to each peer j with `which(j)`. The link
  // has `slots` slots.
  template <typename Which>
  HOCKET_ANYWHERE void reserve(std::uint64_t slots, std::uint64_t ahead, const Which& which) {
    for_kept([&](int j) {
      if (failed || !which(j)) return;
      const std::uint64_t step = m.shared().sent[j] + ahead;
      std::uint64_t credit = m.shared().credit[j];
      // The credit may exceed the steps sent, because a peer may consume an empty step before this
      // rank counts it as sent. So this is a comparison and not a subtraction.
      if (credit + slots > step) return;
      while ((credit = m.load_credit(&out_here(j)->peer.credit)) + slots <= step) {
        if (gives_up(1u << j)) return;
      }
      m.shared().credit[j] = credit;
    });
  }
  // Ends a step to each peer j with `which(j)`, and announces its chunk. The block must have called
  // meet() after it wrote the chunk.
  template <typename Which>
  HOCKET_ANYWHERE void announce(const Which& which) {
    for_kept([&](int j) {
      if (which(j)) m.store_release(&out_there(j)->peer.arrived, ++m.shared().sent[j]);
    });
  }
  // Ends `steps` steps of packets to each peer j with `which(j)`. Nothing is announced, because
  // packets contain their flags.
  template <typename Which>
  HOCKET_ANYWHERE void count_sent(std::uint64_t steps, const Which& which) {
    for_kept([&](int j) {
      if (which(j)) m.shared().sent[j] += steps;
    });
  }
  // Waits for the next chunk of each peer j with `which(j)`.
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
  // Ends a step from each peer j with `which(j)`, after all threads have read its chunk. Gives the
  // slot back to the peer, unless `last` says that this was the last step of the call. Then the
  // next kernel gives it back.
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
  // Ends `steps` steps of packets from each peer j with `which(j)`, and gives their slots back; see
  // give_back.
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

  // Allows each peer j with `which(j)` to write to this rank's arrays in this call.
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

  // Clears the packet slots of the `steps` steps from `step` on if a sweep is due; see kSweepEvery.
  // The steps must have been consumed. This is needed because a place in a slot may keep an old
  // flag for a long time if no packet is written there.
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
