// Writes facts of other hosts into shared memory, and reads this host's facts from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "membership/control/facts.h"
#include "membership/control/group.h"
#include "membership/control/host.h"
#include "membership/control/succession.h"

namespace hocket::control {

// A listed group's block as the network sees it. A view; one thread.
class GroupMirror {
 public:
  // Absent if the entry lists nothing, or names memory outside of the segment.
  static std::optional<GroupMirror> of(HostControl& host, const GroupEntry& entry);

  // True if the data read so far belongs to the group: another process may remove it, and its
  // memory may be reused.
  bool is_listed(const GroupEntry& entry) const noexcept;
  std::uint64_t id() const noexcept { return id_; }
  int size() const noexcept { return size_; }
  int place(int member) const noexcept;
  MemberFact member(int index) const;
  std::vector<RefusalFact> refusals(int index) const;
  std::optional<RebuildRefusalFact> rebuild_refusal(int index) const;
  std::optional<FailureFact> failure() const;
  // The group's words about the members that go on.
  Succession succession(GroupEntry* entry) const {
    return Succession(*host_, memory_, entry, size_);
  }
  // Writes any of the facts below if its source may state it. Each host states facts about its own
  // members alone, and no host about this one's. Other facts, and those of other groups, are
  // ignored.
  struct Source {
    GroupEntry& entry;
    int host;
  };
  void write(const Fact& fact, const Source& source);
  // For members on other hosts; facts about other members are ignored.
  void write(const MemberFact& fact) noexcept;
  void write(const RefusalFact& fact) noexcept;
  void write(const ComeFact& fact) noexcept;
  void write(const RebuildRefusalFact& fact) noexcept;
  // Makes the failure this host's, unless the group already has one.
  void write(const FailureFact& fact, GroupEntry& entry);

 private:
  GroupMirror(HostControl& host, std::uint64_t id, std::byte* memory, int size)
      : host_(&host), id_(id), memory_(memory), size_(size) {}
  GroupMember& at(int index) const noexcept;
  bool is_remote(int index) const noexcept;
  bool is_of(int index, int host) const noexcept;
  void wake() const noexcept { host_->ring_all(); }

  HostControl* host_;
  std::uint64_t id_;
  std::byte* memory_;
  int size_;
};

}  // namespace hocket::control
