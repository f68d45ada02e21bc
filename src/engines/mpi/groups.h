// MPI's communicators of hocket's groups, from their making until all ranks are through with them.
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

// What is known of a group whose communicator this is. A value.
struct CommunicatorOfGroup {
  std::shared_ptr<Comm> comm;
  control::HostControl* host = nullptr;
  std::byte* block = nullptr;
  int rank = 0;
  std::vector<int> places;  // of each member; see control::HostControl
};

// A group that was closed on this rank. Another may have a call under way in it, or make one yet;
// so long its number in MPI is not free, as a later communicator that got it here would take what
// comes of that call for its own. A resource: the communicator, and the hold of the group's block.
class ClosedGroup {
 public:
  ClosedGroup(CommunicatorOfGroup group, std::shared_ptr<void> hold)
      : group_(std::move(group)), hold_(std::move(hold)) {}

  // True when it is done with.
  bool look() noexcept;
  void end(bool is_quiet) noexcept;

 private:
  std::optional<bool> is_quiet() const noexcept;

  CommunicatorOfGroup group_;
  std::shared_ptr<void> hold_;
};

// A resource; any thread.
class Groups {
 public:
  void add(const engine::GroupSite& site, std::shared_ptr<Comm> made);
  // Throws DeviceError where there is none.
  std::shared_ptr<Comm> find(std::uint64_t id);
  // See engine::Provider.
  void close(std::uint64_t id, const std::shared_ptr<void>& hold) noexcept;
  void end() noexcept;
  // Lets go of what has become quiet.
  void look_at_closed() noexcept;

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, CommunicatorOfGroup> open_;
  std::list<ClosedGroup> closed_;
};

}  // namespace hocket::engines::mpi
