// Helpers of the collectives: they begin a call of hocket, and finish the MPI call when it has
// ended.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "interfaces/mpi/buffers.h"
#include "interfaces/mpi/failure.h"

namespace hocket::mpi {

using Finish = std::function<void(Outcome&)>;

// Makes a call of hocket by `direct`, which blocks, or starts it by `begin`, which returns its
// Work. is_direct decides.
template <typename Direct, typename Begin>
Pending run(How how, Comm& comm, Direct direct, Begin begin, Finish finish) {
  Pending pending;
  if (is_direct(how)) {
    direct();
  } else {
    const std::lock_guard lock(comm.starting);
    pending = Pending(begin());
  }
  pending.finish = std::move(finish);
  return pending;
}

inline Finish keeping(const Sent& sent) {
  if (sent.copy == nullptr) return {};
  return [kept = sent.copy](Outcome&) {};
}
inline Finish taking(const Sent& sent, const Space& space) {
  if (space.copy == nullptr) return keeping(sent);
  return
      [kept = sent.copy, space](Outcome&) { space.take(static_cast<std::uint64_t>(space.bytes)); };
}

inline void check_root(const Comm& comm, int root) {
  if (root < 0 || root >= comm.size()) {
    fail(MPI_ERR_ROOT,
         "root is " + std::to_string(root) + ", and there are " + std::to_string(comm.size()) +
             " ranks");
  }
}

inline std::size_t places(const Comm& comm) { return static_cast<std::size_t>(comm.size()); }

inline Finish both(Finish first, Finish second) {
  return [first = std::move(first), second = std::move(second)](Outcome& outcome) {
    if (first) first(outcome);
    if (second) second(outcome);
  };
}

}  // namespace hocket::mpi
