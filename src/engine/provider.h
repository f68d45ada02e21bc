// An engine as the job knows it before any group has one: what it is for, what it is told, what its
// ranks tell each other, and how it is made for a group. docs/adding-an-engine.md goes through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/call.h"
#include "engine/carrier.h"
#include "engine/device_engine.h"
#include "engine/engine.h"
#include "engine/point_to_point.h"
#include "foundation/base/config.h"
#include "hocket/machine.h"
#include "hocket/types.h"

// Named here, and known to those engines alone that lie above them.
namespace hocket::control {
class GroupControl;
}
namespace hocket::cuda {
class DeviceContext;
}

namespace hocket::engine {

// What the ranks of a job are. Processes: of one host.
enum class Ranks : std::uint8_t { kThreads, kProcesses, kHosts };
// Whether a job of such ranks has an engine.
enum class Use : std::uint8_t { kNever, kWhenAsked, kByDefault };
// How far messages go, the nearest first: between threads, processes of one host, hosts.
enum class Distance : std::uint8_t { kNowhere, kProcess, kHost, kHosts };

// What a provider is told of the job when the ranks are about to meet. A value.
struct JobSite {
  int rank = 0;
  int size = 1;
  std::string launcher;   // as LaunchInfo has it
  std::string interface;  // by which other hosts are reached; empty: the library chooses
};

// A group that is to have engines. A value; what it refers to outlives them.
struct GroupSite {
  std::uint64_t id = 0;  // the same on all members; of no other group of the job
  GroupFacts facts;
  std::span<const int> world_ranks;  // of each member
  // Whether a rank of it, or of what it was made of, has been lost.
  bool has_lost_ranks = false;
  // Where the group lies in what ranks of this host share: no two groups of a process lie at one
  // place. Of it this engine has `memory`: see Provider::group_bytes.
  std::byte* block = nullptr;
  std::byte* memory = nullptr;
  control::GroupControl* control = nullptr;
  Consistency* consistency = nullptr;
  // Wakes a member, which waits for what this rank has just done.
  std::function<void(int member)> ring;
  // All engines of the group, once they are made.
  std::shared_ptr<const std::vector<CollectiveEngine*>> rivals;
};

// What a rank tells the others of an engine for GPUs, in that engine's own form. A value of fixed
// size, as it travels.
struct DeviceCard {
  static constexpr std::size_t kBytes = 192;
  std::byte bytes[kBytes] = {};

  template <typename T>
  static DeviceCard of(const T& value) noexcept {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kBytes);
    DeviceCard card;
    std::memcpy(card.bytes, &value, sizeof(T));
    return card;
  }
  template <typename T>
  T as() const noexcept {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kBytes);
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return value;
  }
};

// The same group, when it first meets an array of a GPU. A value; what it refers to outlives the
// engines, but for `cards`.
struct DeviceSite {
  std::uint64_t id = 0;
  GroupFacts facts;
  std::span<const int> world_ranks;
  int world_size = 1;
  bool has_lost_ranks = false;
  std::shared_ptr<const cuda::DeviceContext> device;
  std::span<const DeviceCard> cards;  // of all members; see Provider::device_card
  int ranks_a_gpu = 1;                // the most that share one, with those of other groups
  bool shares_gpu = false;            // two members have one
  bool is_only = false;               // no other engine for GPUs alone was chosen
  // Whether the user wants the waiting thread to stop.
  std::function<bool()> interrupted;
};

// A resource, one a process and job (of ranks that are threads: one for all of them). It outlives
// all that it makes. `configure`, `join` and `meet` come first, once, in this order; then any
// thread. Tools ask what it is without any of these.
class Provider {
 public:
  virtual ~Provider() = default;

  // --- What it is -------------------------------------------------------------------------------
  // As HOCKET_ENGINES has it, and as its engines call themselves.
  virtual std::string_view name() const noexcept = 0;
  virtual Use use(Ranks ranks) const noexcept = 0;
  // Whether it carries arrays in this memory.
  virtual bool serves(MemoryKind memory) const noexcept { return memory == MemoryKind::kHost; }
  // The variables that are its own.
  virtual std::span<const base::SettingRow> settings() const noexcept { return {}; }
  // A hash of what its scores go by, which must be alike on all ranks; 0: nothing that can differ.
  virtual std::uint64_t tuning() const noexcept { return 0; }
  // What calls of GPUs take with it, as measured before the release: lines of a CostTable, with the
  // last one's end. Empty: nothing was measured.
  virtual std::string_view shipped_costs() const noexcept { return {}; }
  // Whether this machine lets it run, and what it carries then. Absent: there is nothing to say.
  // Other people's libraries are started in a child, by os::run_in_child.
  virtual std::optional<hocket::Engine> probe(const Machine& machine) const = 0;

  // --- The job ----------------------------------------------------------------------------------
  // Reads its settings, by name, with foundation/base/config.h. Throws InvalidArgument for bad ones; starts and
  // loads nothing.
  virtual void configure() {}
  // Whether ranks tell each other of it; else it hears neither of these two.
  virtual bool introduces() const noexcept { return false; }
  // What the others need to know of this rank. Throws Error where something is missing here: then
  // all ranks hear of it, and the job does not begin.
  virtual std::vector<std::byte> join(const JobSite& site) {
    static_cast<void>(site);
    return {};
  }
  // `cards`: what each rank's `join` returned. Throws RendezvousError where they do not fit.
  virtual void meet(const std::vector<std::vector<std::byte>>& cards) { static_cast<void>(cards); }
  // A rank of the job has died. More than once.
  virtual void forsake() noexcept {}
  // Of those whose messages go between hosts, once joined.
  virtual std::shared_ptr<Carrier> carrier() { return nullptr; }

  // --- Groups -----------------------------------------------------------------------------------
  // How far its messages go; kNowhere: it has none.
  virtual Distance reach() const noexcept { return Distance::kNowhere; }
  // Bytes of a group's block that it needs, for so many members on this host. They are zeros when
  // the group is new.
  virtual std::size_t group_bytes(int members) const noexcept {
    static_cast<void>(members);
    return 0;
  }
  // Where `reach` goes far enough for the group.
  virtual std::unique_ptr<PointToPoint> make_messages(const GroupSite& site) {
    static_cast<void>(site);
    return nullptr;
  }
  // Whether it has collectives of its own; else it has those that algorithm::AlgorithmEngine makes
  // of messages.
  virtual bool has_collectives() const noexcept { return false; }
  // Null: it has none for groups like this, by what is equal on all members.
  virtual std::unique_ptr<CollectiveEngine> make_collectives(const GroupSite& site) {
    static_cast<void>(site);
    return nullptr;
  }

  // A group that has engines of it is closed on this rank, and its engines end. Who has to look at
  // the group's block as long as other ranks are not through with the group keeps `hold`.
  virtual void close(std::uint64_t group, const std::shared_ptr<void>& hold) noexcept {
    static_cast<void>(group), static_cast<void>(hold);
  }
  // The job ends on this rank: whatever is kept of closed groups goes.
  virtual void end() noexcept {}

  // --- Groups' arrays in GPUs -------------------------------------------------------------------
  // What the others need to know of it here. Does not throw for what is missing: the card says so.
  virtual DeviceCard device_card(const cuda::DeviceContext& device) {
    static_cast<void>(device);
    return {};
  }
  // Why groups like this have no engine of it, the same on all members; empty: they have.
  virtual std::string why_no_device_engine(const DeviceSite& site) const {
    static_cast<void>(site);
    return "it is for host memory";
  }
  virtual std::unique_ptr<DeviceEngine> make_device_engine(const DeviceSite& site) {
    static_cast<void>(site);
    return nullptr;
  }
};

// Whether it is for arrays in GPUs' memory alone.
inline bool is_of_gpus(const Provider& provider) noexcept {
  return !provider.serves(MemoryKind::kHost);
}

// The best first, of ties too.
using ProviderList = std::vector<std::shared_ptr<Provider>>;

}  // namespace hocket::engine
