// MPI's communicators for hocket's groups, from their creation until no rank uses them any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/provider.h"
#include "engines/mpi/library.h"
#include "membership/control/host.h"

namespace hocket::engines::mpi {

// The facts of a group that a communicator belongs to. A value.
struct CommunicatorOfGroup {
  std::shared_ptr<Comm> comm;
  control::HostControl* host = nullptr;
  std::byte* block = nullptr;
  int rank = 0;
  std::vector<int> places;  // place of each member on its host; see control::HostControl
};

// A group that was closed on this rank. Another rank may still have a call in it, or make one.
// Until then MPI must not reuse the communicator's number: a new communicator with it would receive
// data of that call. A resource: it holds the communicator and the group's block.
class ClosedGroup {
 public:
  ClosedGroup(CommunicatorOfGroup group, std::shared_ptr<void> hold)
      : group_(std::move(group)), hold_(std::move(hold)) {}

  // Returns true if no rank needs the communicator any more.
  bool look() noexcept;
  void end(bool is_quiet) noexcept;

 private:
  std::optional<bool> is_quiet() const noexcept;

  CommunicatorOfGroup group_;
  std::shared_ptr<void> hold_;
};

// A resource; any thread may use it.
class Groups {
 public:
  void add(const engine::GroupSite& site, std::shared_ptr<Comm> made);
  // Throws DeviceError if there is none.
  std::shared_ptr<Comm> find(std::uint64_t id);
  // See engine::Provider.
  void close(std::uint64_t id, const std::shared_ptr<void>& hold) noexcept;
  void end() noexcept;
  // Releases communicators that no rank uses any more.
  void look_at_closed() noexcept;

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, CommunicatorOfGroup> open_;
  std::list<ClosedGroup> closed_;
};

}  // namespace hocket::engines::mpi
