#include "engines/mpi/groups.h"

#include "hocket/error.h"
#include "membership/control/group.h"
#include "membership/control/succession.h"

namespace hocket::engines::mpi {

bool ClosedGroup::look() noexcept {
  const auto quiet = is_quiet();
  if (!quiet) return false;
  end(*quiet);
  return true;
}

void ClosedGroup::end(bool is_quiet) noexcept {
  if (!is_quiet) MpiLibrary::keep(std::move(group_.comm));
  group_.comm.reset();
  hold_.reset();
}

// Returns true if all ranks have closed the group after the same calls, and no call failed or was
// refused. Returns false once this can no longer become true: a rank is lost or rebuilds, or a call
// failed or was refused, or the ranks made different calls. Otherwise some ranks have not closed
// the group yet, and this returns nothing.
std::optional<bool> ClosedGroup::is_quiet() const noexcept {
  control::GroupControl control(*group_.host, group_.block, group_.rank, group_.places);
  const control::Succession words(control);
  bool all_closed = true;
  for (int i = 0; i < control.size(); ++i) {
    if (words.has_closed(i)) continue;
    if (words.has_come(i) || words.is_lost(i)) return false;
    all_closed = false;
  }
  if (control.failed() || control.any_refusal()) return false;
  if (!all_closed) return std::nullopt;
  for (int i = 0; i < control.size(); ++i) {
    if (control.last_sequence(i) != control.last_sequence(group_.rank)) return false;
  }
  return true;
}

void Groups::add(const engine::GroupSite& site, std::shared_ptr<Comm> made) {
  CommunicatorOfGroup group{.comm = std::move(made),
                            .host = &site.control->host(),
                            .block = site.block,
                            .rank = site.facts.rank,
                            .places = {}};
  for (int i = 0; i < site.facts.size; ++i) group.places.push_back(site.control->host_rank(i));
  const std::lock_guard lock(mutex_);
  open_[site.id] = std::move(group);
}

std::shared_ptr<Comm> Groups::find(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(id);
  if (found == open_.end()) throw DeviceError("MPI has no communicator for this group");
  return found->second.comm;
}

void Groups::close(std::uint64_t id, const std::shared_ptr<void>& hold) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(id);
    if (found == open_.end()) return;
    closed_.emplace_back(std::move(found->second), hold);
    open_.erase(found);
  }
  look_at_closed();
}

void Groups::end() noexcept {
  look_at_closed();
  const std::lock_guard lock(mutex_);
  for (ClosedGroup& group : closed_) group.end(false);
  closed_.clear();
  for (auto& [id, group] : open_) MpiLibrary::keep(std::move(group.comm));
  open_.clear();
}

void Groups::look_at_closed() noexcept {
  const std::lock_guard lock(mutex_);
  closed_.remove_if([](ClosedGroup& group) { return group.look(); });
}

}  // namespace hocket::engines::mpi
