// What the blocks of all kernels do: open and save the counters of their links, wait for peers,
// announce data, give back slots.
//
// Machine, the policy that the protocols are written over, is one block at work on a GPU or a few
// threads of the host at the same; see cuda_machine.cuh and tests/conformance. It offers
//
//   thread(), threads(), channel(), channels()    who and how many
//   params()                                      the Params of the launch
//   shared()                                      a Counters, shared by the block
//   sync_or(bool)                                 barrier of the block; true if any said true
//   load_packet, store_packet                     as a whole, in any order
//   load_staged(at), store_staged(at, vector)     a chunk's vectors; from this GPU, to a peer's
//   load_acquire(word), store_release(word, v)    counters
//   store_credit(word, v)                         after all loads of the slot have been used
//   fence()                                       before what this thread stores from now on
//   own_dead()                                    the header's word, at the start
//   look(missing)                                 now and then while waiting; true: give up
#pragma once

#include <cstdint>

#include "engines/peer/params.h"
#include "engines/peer/vectors.h"

namespace hocket::engines::peer {

// A block's counters, those of OwnCounters, while a kernel runs. Thread q writes those of peer q.
struct Counters {
  std::uint64_t sent[kMaxRanks];
  std::uint64_t received[kMaxRanks];
  std::uint64_t opened[kMaxRanks];
  std::uint64_t entered[kMaxRanks];
};

// Looks around once in so many fruitless polls.
inline constexpr std::uint32_t kPollsBetweenLooks = 128;

// One thread's view of its block; `failed` says that this thread has given up.
template <typename Machine>
struct Block {
  Machine& m;
  const Params& p;
  bool failed = false;
  std::uint32_t polls = 0;

  HOCKET_ANYWHERE explicit Block(Machine& machine) : m(machine), p(machine.params()) {}

  // Calls act(q) for each peer q whose counters this thread keeps. On a GPU there is one at most.
  template <typename Act>
  HOCKET_ANYWHERE void for_kept(const Act& act) {
    for (int q = m.thread(); q < p.size; q += m.threads()) {
      if (q != p.rank) act(q);
    }
  }
  HOCKET_ANYWHERE Link* link(int owner, int peer) const {
    return reinterpret_cast<Link*>(p.staging[owner] + Layout::link(p.lane, m.channel(), peer));
  }
  HOCKET_ANYWHERE Packet* packets(int owner, int source, std::uint64_t step) const {
    return reinterpret_cast<Packet*>(
        p.staging[owner] + Layout::packets(p.size, p.lane, m.channel(), owner, source, step));
  }
  HOCKET_ANYWHERE std::byte* chunk(int owner, int source, std::uint64_t step) const {
    return p.staging[owner] + Layout::chunk(p.size, p.lane, m.channel(), owner, source, step);
  }

  // To be called after each fruitless poll; true: give up.
  HOCKET_ANYWHERE bool gives_up(std::uint32_t missing) {
    if (++polls % kPollsBetweenLooks != 0) return false;
    failed = m.look(missing);
    return failed;
  }

  // --- What the threads that keep counters do; the others do nothing. Whoever needs that it has
  // been done by all calls meet().

  // A barrier of the block. False: somebody has given up, so that all do.
  HOCKET_ANYWHERE bool meet() { return !m.sync_or(failed); }

  HOCKET_ANYWHERE void open() {
    failed = m.own_dead();
    for_kept([&](int q) {
      const OwnCounters own = link(p.rank, q)->own;
      m.shared().sent[q] = own.sent;
      m.shared().received[q] = own.received;
      m.shared().opened[q] = own.opened;
      m.shared().entered[q] = own.entered;
    });
  }
  HOCKET_ANYWHERE void save() {
    const Counters& c = m.shared();
    for_kept([&](int q) {
      link(p.rank, q)->own = {c.sent[q], c.received[q], c.opened[q], c.entered[q]};
    });
  }

  // Waits until step `ahead` from now may be written to each peer q that has `which(q)`.
  template <typename Which>
  HOCKET_ANYWHERE void reserve(std::uint64_t ahead, const Which& which) {
    for_kept([&](int q) {
      if (failed || !which(q)) return;
      const std::uint64_t step = m.shared().sent[q] + ahead;
      const std::uint64_t* credit = &link(p.rank, q)->peer.credit;
      // A peer may have taken an empty step before it was sent.
      while (m.load_acquire(credit) + kSlots <= step) {
        if (gives_up(1u << q)) break;
      }
    });
  }
  // Ends a step to each peer q that has `which(q)`, and announces its chunks, which have met.
  template <typename Which>
  HOCKET_ANYWHERE void announce(const Which& which) {
    for_kept([&](int q) {
      if (!which(q)) return;
      m.store_release(&link(q, p.rank)->peer.arrived, ++m.shared().sent[q]);
    });
  }
  // Ends a step to each peer q that has `which(q)`, whose packets announce themselves.
  template <typename Which>
  HOCKET_ANYWHERE void count_sent(std::uint64_t steps, const Which& which) {
    for_kept([&](int q) {
      if (which(q)) m.shared().sent[q] += steps;
    });
  }
  // Waits for the chunks of each peer q that has `which(q)`.
  template <typename Which>
  HOCKET_ANYWHERE void await(const Which& which) {
    for_kept([&](int q) {
      if (failed || !which(q)) return;
      const std::uint64_t* arrived = &link(p.rank, q)->peer.arrived;
      while (m.load_acquire(arrived) <= m.shared().received[q]) {
        if (gives_up(1u << q)) break;
      }
    });
  }
  // Ends a step from each peer q that has `which(q)`, and gives its slot back; all have read it.
  template <typename Which>
  HOCKET_ANYWHERE void give_back(const Which& which) {
    for_kept([&](int q) {
      if (!which(q)) return;
      m.store_credit(&link(q, p.rank)->peer.credit, ++m.shared().received[q]);
    });
  }

  // Opens this rank's arrays to each peer q that has `which(q)`: they will be written to.
  template <typename Which>
  HOCKET_ANYWHERE void open_arrays(const Which& which) {
    for_kept([&](int q) {
      if (!which(q)) return;
      m.store_release(&link(q, p.rank)->peer.opened, ++m.shared().opened[q]);
    });
  }
  // Waits until each peer q that has `which(q)` has opened its arrays.
  template <typename Which>
  HOCKET_ANYWHERE void enter_arrays(const Which& which) {
    for_kept([&](int q) {
      if (failed || !which(q)) return;
      const std::uint64_t* opened = &link(p.rank, q)->peer.opened;
      while (m.load_acquire(opened) <= m.shared().entered[q]) {
        if (gives_up(1u << q)) break;
      }
      ++m.shared().entered[q];
    });
  }
};

}  // namespace hocket::engines::peer
