// Copies facts between hosts' segments: writes the facts of other hosts into this host's segment,
// and reads this host's facts from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "membership/control/facts.h"
#include "membership/control/group.h"
#include "membership/control/host/host.h"
#include "membership/control/succession.h"

namespace hocket::control {

// The block of a listed group, as the network uses it. A view. One thread uses it.
class GroupMirror {
 public:
  // Absent if the entry lists no group. Throws SystemError if the entry names memory outside of the
  // segment.
  static std::optional<GroupMirror> of(HostControl& host, const GroupEntry& entry);

  // Returns whether the entry still lists this group. If not, data that was read before may belong
  // to another group: another process may have removed the group, and its memory may be in use
  // again.
  bool is_listed(const GroupEntry& entry) const noexcept;
  std::uint64_t id() const noexcept { return id_; }
  int size() const noexcept { return size_; }
  int place(int member) const noexcept;
  MemberFact member(int index) const;
  std::vector<RefusalFact> refusals(int index) const;
  std::optional<RebuildRefusalFact> rebuild_refusal(int index) const;
  std::optional<FailureFact> failure() const;
  // Returns the words of the group about the members that go on.
  Succession succession(GroupEntry* entry) const {
    return Succession(*host_, memory_, entry, size_);
  }
  // Writes a fact of another host into the group's block. It accepts only facts of the types below
  // that are about this group and about the sending host's own members. It ignores all others. A
  // failure may come from any host, if its reporter is not on this host.
  struct Source {
    GroupEntry& entry;
    int host;
  };
  void write(const Fact& fact, const Source& source);
  // Write facts about members on other hosts. Facts about other members are ignored.
  void write(const MemberFact& fact) noexcept;
  void write(const RefusalFact& fact) noexcept;
  void write(const ComeFact& fact) noexcept;
  void write(const RebuildRefusalFact& fact) noexcept;
  // Ends the group on this host with this failure, unless it has failed already.
  void write(const FailureFact& fact, GroupEntry& entry);

 private:
  GroupMirror(HostControl& host, std::uint64_t id, std::byte* memory, int size)
      : host_(&host), id_(id), memory_(memory), size_(size) {}
  GroupMember& at(int index) const noexcept;
  bool is_remote(int index) const noexcept;
  bool is_of(int index, int host) const noexcept;
  void wake() const noexcept { host_->doorbells.ring_all(); }

  HostControl* host_;
  std::uint64_t id_;
  std::byte* memory_;
  int size_;
};

}  // namespace hocket::control
