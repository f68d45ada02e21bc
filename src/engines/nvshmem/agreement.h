// Decides whether the ranks of a communicator can use NVSHMEM's heap together. All ranks come to
// the same decision, because they decide from the same facts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engines/nvshmem/abi.h"
#include "foundation/base/short_text.h"
#include "foundation/cuda/abi.h"

namespace hocket::nvshmem {

// A rank's facts about NVSHMEM in its process. A value of fixed size, which ranks exchange.
struct Facts {
  cuda::Uuid gpu{};
  std::int32_t version = 0;
  NvshmemStatus status = NvshmemStatus::kNotInitialized;
  std::int32_t pe = -1;     // set if NVSHMEM is initialized
  std::int32_t pes = 0;     // set if NVSHMEM is initialized
  std::uint64_t world = 0;  // hocket's number of the NVSHMEM world; 0: it has none
  std::int32_t pieces = 0;  // number of hocket's allocations in the heap
  base::ShortSentence<160> why_not;
};

// The decision. A value, equal on all ranks.
struct HeapAgreement {
  std::string why_not;   // why the ranks cannot use the heap; empty: they can
  bool start = false;    // a world with these ranks as PEs must be started
  bool name = false;     // the program has started a world, to which hocket must give a number
  std::vector<int> pes;  // the PE of each rank
};

// `facts` has the facts of all ranks of the communicator. `whole_job` says that these are all ranks
// of the job. Only in this case they may use a world that hocket did not start.
HeapAgreement agree(std::span<const Facts> facts, bool whole_job);

// The decision about a team, whose members are PEs of a running world. A value, equal on all ranks.
struct TeamAgreement {
  std::string why_not;       // why the ranks cannot make a team; empty: they can
  bool whole_world = false;  // the team has all PEs of the world, in the same order
};
TeamAgreement agree_team(std::span<const Facts> facts, bool whole_job);

}  // namespace hocket::nvshmem
