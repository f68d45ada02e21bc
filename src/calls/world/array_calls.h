// The interface for src/arrays: with calls/call/request.h and the public headers, it is all that
// work on spread arrays uses of calls.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "calls/call/request.h"
#include "calls/world/communicator_impl.h"
#include "hocket/communicator.h"

namespace hocket::world {

// Runs `part`, the work of this rank before its next call of `comm`, as call::Core::before_call
// does. `kind` is the call that a refusal names.
template <typename Part>
auto before_call(const Communicator& comm, engine::Kind kind, Part&& part) {
  return comm.impl()->before_call(kind, std::forward<Part>(part));
}

// During the result's life, records and messages name this rank's calls of `comm` as `kind`.
inline call::Core::Whole whole_call(const Communicator& comm, engine::Kind kind) {
  return {*comm.impl(), kind};
}

// A barrier for ranks that make the same step, which `digest` identifies. Throws Mismatch if their
// steps differ. For arrays on GPUs the barrier is put on `stream`.
inline void barrier(const Communicator& comm,
                    std::uint64_t digest,
                    std::optional<Duration> deadline,
                    std::optional<StreamRef> stream) {
  comm.impl()->run(
      {.kind = engine::Kind::kBarrier, .digest = digest, .deadline = deadline, .stream = stream});
}

}  // namespace hocket::world
