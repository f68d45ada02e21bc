// What the blocks of all kernels do: open and save the counters of their links, wait for peers,
// announce data, give back slots.
//
// Machine, the policy that the protocols are written over, is one block at work on a GPU or a few
// threads of the host at the same; see cuda_machine.cuh and tests/conformance. It offers
//
//   thread(), threads(), channel(), channels()    who and how many
//   role()                                        of a channel's blocks, which one
//   kWide                                         there is a thread for each place of a small call
//   params()                                      what the launch was given: its Parameters
//   shared()                                      a Counters, shared by the block
//   sync_or(bool)                                 barrier of the block; true if any said true
//   load_packet, store_packet                     as a whole, in any order
//   first_lane(), next_lane(i)                    whose lanes this thread plays: all of a line
//   all_lanes(bool), of_all_lanes(bits)           of a warp: whether all say true; what any of them
//                                                 has; they meet there
//   load_line_packet(at, lane, flag)              a LinePacket; store_packet stores one: all lanes
//                                                 of a line do either at once, or in their order
//   load_staged(at), store_staged(at, vector)     a chunk's vectors; from this GPU, to a peer's
//   work_out(values...)                           in registers from here on, not only where needed
//   await_previous()                              what was before on the stream has ended: until
//                                                 then nothing but parameters is read or written
//   load_link(link)                               at the start: OpenLink, all loads together
//   load_flag(flag)                               what is_dead() looks at
//   load_acquire(word), store_release(word, v)    counters
//   load_credit(word), store_credit(word, v)      before stores to a slot; after loads from it, all
//                                                 of which have been used
//   fence()                                       before what this thread stores from now on
//   let_next_begin()                              nothing of peers is waited for any more: the
//                                                 stream's next kernel may be put on the machine,
//                                                 where it waits for this one's end
//   is_dead()                                     whether a kernel of this group has given up
//   look(missing)                                 now and then while waiting; true: give up
#pragma once

#include <cstdint>

#include "engines/peer/kernels/params.h"
#include "engines/peer/kernels/vectors.h"

namespace hocket::engines::peer {

// One lane's packet of a line, and the line's flag as that lane knows it.
struct LinePacket {
  Packet packet;
  std::uint32_t flag;
};

// A chunk on its way. Empty: nothing.
struct Move {
  const std::byte* from;
  std::byte* to;
  std::uint32_t bytes;
};

// What a block keeps while a kernel runs. The thread that keeps peer j writes what is of peer j:
// the others read what it has worked out.
struct Counters {
  std::uint64_t sent[kMaxPeers];
  std::uint64_t received[kMaxPeers];
  std::uint64_t credit[kMaxPeers];  // as last seen
  // Of chunks, in this turn.
  Move puts[kMaxPeers];
  Move takes[kMaxPeers];
  const std::byte* sources[kMaxPeers];  // slots of what is reduced here; null: not of this peer
  std::byte* targets[kMaxPeers];        // where the result goes; null: not to this peer
};

// What a kernel needs of a link at its start.
struct OpenLink {
  std::uint64_t sent, received, credit;
};

// Looks around once in so many fruitless polls.
inline constexpr std::uint32_t kPollsBetweenLooks = 128;

// One thread's view of its block; `failed` says that this thread has given up.
template <typename Machine>
struct Block {
  Machine& m;
  const typename Machine::Parameters& p;
  int in, out;  // the lanes of what comes and goes
  bool failed = false;
  std::uint32_t polls = 0;
  std::uint32_t polls_together = 0;  // the same in all lanes of a warp

  HOCKET_ANYWHERE explicit Block(Machine& machine)
      : Block(machine, machine.params().lane, machine.params().lane) {}
  HOCKET_ANYWHERE Block(Machine& machine, int in_lane, int out_lane)
      : m(machine), p(machine.params()), in(in_lane), out(out_lane) {}

  // Calls act(j) for each peer j whose counters this thread keeps. On a GPU there is one at most.
  template <typename Act>
  HOCKET_ANYWHERE void for_kept(const Act& act) {
    if constexpr (Machine::kWide) {
      if (m.thread() < static_cast<int>(p.peers)) act(m.thread());
    } else {
      for (int j = m.thread(); j < static_cast<int>(p.peers); j += m.threads()) act(j);
    }
  }

  // Whether this is that thread.
  HOCKET_ANYWHERE bool is_kept(int j) const {
    if (j >= static_cast<int>(p.peers)) return false;
    return Machine::kWide ? j == m.thread() : j % m.threads() == m.thread();
  }

  // Links of what comes, and of what goes.
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

  // To be called after each fruitless poll; true: give up.
  HOCKET_ANYWHERE bool gives_up(std::uint32_t missing) {
    if (++polls % kPollsBetweenLooks != 0) return false;
    failed = m.look(missing);
    return failed;
  }

  // The same for a warp, whose lanes wait together.
  HOCKET_ANYWHERE bool gives_up_together(std::uint32_t missing) {
    if (++polls_together % kPollsBetweenLooks != 0) return false;
    failed = !m.all_lanes(!m.look(m.of_all_lanes(missing)));
    return failed;
  }

  // --- What the threads that keep counters do; the others do nothing. Whoever needs that it has
  // been done by all calls meet().

  // A barrier of the block. False: somebody has given up, so that all do.
  HOCKET_ANYWHERE bool meet() { return !m.sync_or(failed); }

  // Both directions of one lane.
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
  // One direction, where other blocks may be at work on the other one.
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

  // Waits until step `ahead` from now may be written to each peer j that has `which(j)`, of as many
  // slots.
  template <typename Which>
  HOCKET_ANYWHERE void reserve(std::uint64_t slots, std::uint64_t ahead, const Which& which) {
    for_kept([&](int j) {
      if (failed || !which(j)) return;
      const std::uint64_t step = m.shared().sent[j] + ahead;
      std::uint64_t credit = m.shared().credit[j];
      // A peer may have taken an empty step before it was sent.
      if (credit + slots > step) return;
      while ((credit = m.load_credit(&out_here(j)->peer.credit)) + slots <= step) {
        if (gives_up(1u << j)) return;
      }
      m.shared().credit[j] = credit;
    });
  }
  // Ends a step to each peer j that has `which(j)`, and announces its chunks, which have met.
  template <typename Which>
  HOCKET_ANYWHERE void announce(const Which& which) {
    for_kept([&](int j) {
      if (which(j)) m.store_release(&out_there(j)->peer.arrived, ++m.shared().sent[j]);
    });
  }
  // Ends steps to each peer j that has `which(j)`, whose packets announce themselves.
  template <typename Which>
  HOCKET_ANYWHERE void count_sent(std::uint64_t steps, const Which& which) {
    for_kept([&](int j) {
      if (which(j)) m.shared().sent[j] += steps;
    });
  }
  // Waits for the chunks of each peer j that has `which(j)`.
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
  // Ends a step from each peer j that has `which(j)`; all have read it. Its slot is given back now,
  // or, where this was the last of the call, by the next kernel.
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
  // The same for packets, of `steps` steps. Their slots are swept where it is time for that.
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

  // Opens this rank's arrays to each peer j that has `which(j)`: they will be written to.
  template <typename Which>
  HOCKET_ANYWHERE void open_arrays(const Which& which) {
    for_kept([&](int j) {
      if (!which(j)) return;
      const std::uint64_t opened = ++p.here(p.lane, m.channel(), j)->own.opened;
      m.store_release(&p.there(p.lane, m.channel(), j)->peer.opened, opened);
    });
  }
  // Waits until each peer j that has `which(j)` has opened its arrays.
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

  // Steps from peer j, from `step` on, have been taken. Whatever they carried, their slots of
  // packets may have been left for long.
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
