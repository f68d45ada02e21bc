// Decides whether the ranks of a communicator can use NVSHMEM's heap together. All ranks decide the
// same.
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
  std::int32_t pe = -1;     // if it is initialized
  std::int32_t pes = 0;     // if it is initialized
  std::uint64_t world = 0;  // hocket's number of the world; 0: none
  std::int32_t pieces = 0;  // number of hocket's allocations in its heap
  base::ShortSentence<160> why_not;
};

// The decision. A value, equal on all ranks.
struct HeapAgreement {
  std::string why_not;   // empty: they can use it
  bool start = false;    // a world with these ranks as PEs must be started
  bool name = false;     // the program has started a world that needs a number
  std::vector<int> pes;  // by rank
};

// `facts` are those of all ranks. `whole_job`: they are all ranks of the job. Only then a world
// that hocket did not start counts as theirs.
HeapAgreement agree(std::span<const Facts> facts, bool whole_job);

// The same for a team, whose members are PEs of a running world. A value.
struct TeamAgreement {
  std::string why_not;       // empty: they can make one
  bool whole_world = false;  // the team is the world itself, in its order
};
TeamAgreement agree_team(std::span<const Facts> facts, bool whole_job);

}  // namespace hocket::nvshmem
