// The shared state of a job's ranks on one host, below every engine: which ranks live, how to wake
// them, and memory for groups.
//
// Layout of the segment, version 14 (all offsets are multiples of the page size):
//
//   HostHeader | RankLine[places] | SharedEndReason[places] | RobustWord[ranks][ranks] |
//   GroupEntry[kGroups] | KeptFacts[2] | GoneGroups | stripe 0 | ...
//
// The ranks of this host have the first places; ranks of other hosts have the places behind them.
// The second row, up to GoneGroups, exists only in jobs with several hosts. There the network
// (network.h) writes the lines of other hosts' ranks, and the state of groups with members on
// several hosts.
//
// Each rank allocates from its own stripe, with bookkeeping in its private memory. So a rank that
// dies during an allocation leaves nothing inconsistent behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "foundation/base/deadline.h"
#include "foundation/os/segment.h"
#include "membership/control/host/doorbells.h"
#include "membership/control/host/end_reasons.h"
#include "membership/control/host/listed_groups.h"
#include "membership/control/host/liveness.h"
#include "membership/control/host/memory.h"
#include "membership/control/host/peer_memory.h"
#include "membership/control/host/processor_sharing.h"
#include "membership/control/host/rank_tasks.h"
#include "membership/control/host/remote_hosts.h"
#include "membership/control/host/view.h"
#include "membership/control/host/wait_graph.h"

namespace hocket::control {

struct HostHeader;

// One rank's access to the segment. A resource: it consists of parts, one for each subject. All
// code of the rank shares it. Any thread may call its functions, unless noted otherwise.
class HostControl : public HostView {
 public:
  // Returns the size of a segment of this shape. Throws InvalidArgument if there are too many
  // ranks.
  static std::size_t segment_bytes(const HostShape& shape);
  // Throws InvalidArgument if one host cannot have so many ranks.
  static void require_places(int ranks);
  // Writes the header and the lines. The rank that makes the segment calls it once.
  static void format(os::Segment& segment, const HostShape& shape);

  // Opens the segment as rank `self` of the host. `arrive` then takes the place. Throws
  // RendezvousError if the segment has another version.
  HostControl(std::shared_ptr<os::Segment> segment, int self);
  HostControl(const HostControl&) = delete;
  HostControl& operator=(const HostControl&) = delete;

  // Takes this rank's place and announces it. Throws RendezvousError if the place is taken.
  void arrive(int world_rank);
  // Waits until every rank of the job has arrived. Throws RendezvousError, which names the world
  // ranks that have not. `world_ranks` has the world rank of each place.
  void wait_for_all(std::span<const int> world_ranks, base::Deadline deadline);

  // Announces the offset of the world's group in the segment. Only host rank 0 calls it, once.
  void publish_world(std::uint64_t offset) noexcept;
  // Returns the offset of the world's group. May only be called after wait_for_all.
  std::uint64_t published_world() const noexcept;

  Doorbells doorbells;
  Liveness liveness;
  EndReasons end_reasons;
  RemoteHosts remote_hosts;
  ListedGroups groups;
  ProcessorSharing processors;
  PeerMemory peer_memory;
  HostMemory memory;
  WaitGraph waits;
  RankTasks tasks;

 private:
  struct Map;
  explicit HostControl(const Map& map);

  HostHeader& header_;
};

}  // namespace hocket::control
