// The MPI communicators of hocket's groups. Each is kept from its creation until no rank uses it
// any more.
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
#include "membership/control/host/host.h"

namespace hocket::engines::mpi {

// A communicator, and the facts of its group. A value.
struct CommunicatorOfGroup {
  std::shared_ptr<Comm> comm;
  control::HostControl* host = nullptr;
  std::byte* block = nullptr;  // the group's block in the segment
  int rank = 0;                // this rank in the group
  std::vector<int> places;     // place of each member on its host; see control::HostView
};

// A group that this rank has closed, while other ranks may still make calls in it. MPI must not
// reuse its identifier of the communicator until all ranks have closed the group. Otherwise a new
// communicator with the same identifier would receive data of these calls. So this object keeps the
// communicator and the group's block. A resource.
class ClosedGroup {
 public:
  ClosedGroup(CommunicatorOfGroup group, std::shared_ptr<void> hold)
      : group_(std::move(group)), hold_(std::move(hold)) {}

  // If no rank needs the communicator any more, ends it and returns true.
  bool look() noexcept;
  // Releases the block. Releases the communicator if `is_quiet`, otherwise keeps it for the rest of
  // the process.
  void end(bool is_quiet) noexcept;

 private:
  std::optional<bool> is_quiet() const noexcept;

  CommunicatorOfGroup group_;
  std::shared_ptr<void> hold_;
};

// The open groups, and the closed groups whose communicators some rank may still need. Any thread
// may use it. A resource.
class Groups {
 public:
  void add(const engine::GroupSite& site, std::shared_ptr<Comm> made);
  // Returns the communicator of an open group. Throws DeviceError if there is none.
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
