// Whether the ranks of a communicator can use NVSHMEM's heap together, decided alike by all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engines/nvshmem/abi.h"
#include "foundation/base/short_text.h"
#include "foundation/cuda/abi.h"

namespace hocket::nvshmem {

// What a rank tells the others of NVSHMEM in its process. A value of fixed size, as it travels.
struct Facts {
  cuda::Uuid gpu{};
  std::int32_t version = 0;
  NvshmemStatus status = NvshmemStatus::kNotInitialized;
  std::int32_t pe = -1;     // where it is initialized
  std::int32_t pes = 0;     // likewise
  std::uint64_t world = 0;  // of the world, as hocket has named it; 0: it has not
  std::int32_t pieces = 0;  // that hocket has in its heap
  base::ShortSentence<160> why_not;
};

// A value: equal on all ranks.
struct HeapAgreement {
  std::string why_not;   // empty: they can
  bool start = false;    // a world has to be started, with these ranks as PEs
  bool name = false;     // one runs that the program has started, and needs a name
  std::vector<int> pes;  // of each rank
};

// `facts`: of all ranks. `whole_job`: they are all of the job; a world that hocket did not start is
// only taken for theirs then.
HeapAgreement agree(std::span<const Facts> facts, bool whole_job);

// The same of a team, whose members are PEs of a world that runs. A value.
struct TeamAgreement {
  std::string why_not;       // empty: they can make one
  bool whole_world = false;  // it is the world itself, in its order
};
TeamAgreement agree_team(std::span<const Facts> facts, bool whole_job);

}  // namespace hocket::nvshmem
