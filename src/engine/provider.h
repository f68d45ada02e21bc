// The interface of a provider: an engine as the job knows it before any group has one. It tells
// what the engine is for, reads its settings, exchanges the ranks' facts, and makes the engine for
// a group. See docs/adding-an-engine.md.
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

// Declared here; only engines that lie above these layers use them.
namespace hocket::control {
class GroupControl;
}
namespace hocket::cuda {
class DeviceContext;
}

namespace hocket::engine {

// The form of a job's ranks. kProcesses are processes of one host.
enum class Ranks : std::uint8_t { kThreads, kProcesses, kHosts };
// The condition under which a job with such ranks uses an engine.
enum class Use : std::uint8_t { kNever, kWhenAsked, kByDefault };
// The reach of messages, nearest first: between threads, between processes of one host, between
// hosts.
enum class Distance : std::uint8_t { kNowhere, kProcess, kHost, kHosts };

// The facts of the job that a provider gets before the ranks meet. A value.
struct JobSite {
  int rank = 0;
  int size = 1;
  std::string launcher;              // as in LaunchInfo
  std::string interface;             // network interface to other hosts; empty: the library chooses
  base::PortRange ports = {};        // on which it may listen
  bool is_interface_chosen = false;  // by the user; else it is the way to the store
};

// A group that needs engines. A value. The objects that it refers to outlive the engines.
struct GroupSite {
  std::uint64_t id = 0;  // equal on all members, and unique in the job
  GroupFacts facts;
  std::span<const int> world_ranks;  // of each member
  // True if the group, or the one that it was made from, has lost a rank.
  bool has_lost_ranks = false;
  // The position of the group in the memory that the ranks of this host share. No two groups of a
  // process have the same. `memory` is this engine's part of it: see Provider::group_bytes.
  std::byte* block = nullptr;
  std::byte* memory = nullptr;
  control::GroupControl* control = nullptr;
  Consistency* consistency = nullptr;
  // Wakes a member that waits for an action of this rank.
  std::function<void(int member)> ring;
  // All engines of the group, after they were made.
  std::shared_ptr<const std::vector<CollectiveEngine*>> rivals;
};

// A rank's facts about an engine for GPUs, in that engine's own format. A value of fixed size,
// because ranks exchange it.
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

// The same group, when it first uses an array on a GPU. A value. The objects that it refers to,
// except `cards`, outlive the engines.
struct DeviceSite {
  std::uint64_t id = 0;
  GroupFacts facts;
  std::span<const int> world_ranks;
  int world_size = 1;
  bool has_lost_ranks = false;
  std::shared_ptr<const cuda::DeviceContext> device;
  std::span<const DeviceCard> cards;  // of all members; see Provider::device_card
  int ranks_a_gpu = 1;                // largest number of ranks that share a GPU, including ranks
                                      // of other groups
  bool shares_gpu = false;            // two members share a GPU
  bool is_only = false;               // no other engine only for GPUs was chosen
  // Returns whether the user wants the waiting thread to stop.
  std::function<bool()> interrupted;
};

// A resource, one for each process and job. Ranks that are threads share one. It outlives
// everything that it makes. `configure`, `join` and `meet` are called once, first and in this
// order. After that any thread may use it. Tools use the first section without these calls.
class Provider {
 public:
  virtual ~Provider() = default;

  // --- Description ------------------------------------------------------------------------------
  // Returns the name in HOCKET_ENGINES, which its engines also return.
  virtual std::string_view name() const noexcept = 0;
  virtual Use use(Ranks ranks) const noexcept = 0;
  // Returns whether it carries arrays in this memory.
  virtual bool serves(MemoryKind memory) const noexcept { return memory == MemoryKind::kHost; }
  // Returns the environment variables that belong to it.
  virtual std::span<const base::SettingRow> settings() const noexcept { return {}; }
  // Returns a hash of the settings that affect its scores. It must be equal on all ranks. 0: no
  // such setting.
  virtual std::uint64_t tuning() const noexcept { return 0; }
  // Returns the times of its calls on GPUs, measured before the release: lines of a CostTable, each
  // with its line end. Empty: none.
  virtual std::string_view shipped_costs() const noexcept { return {}; }
  // Returns whether it can run on this machine, and what it carries. Absent: there is nothing to
  // report. Libraries of others must be started in a child process, by os::run_in_child.
  virtual std::optional<hocket::Engine> probe(const Machine& machine) const = 0;

  // --- The job ----------------------------------------------------------------------------------
  // Reads its settings by name, with foundation/base/config.h. Throws InvalidArgument for a bad
  // value. It starts and loads nothing.
  virtual void configure() {}
  // Returns whether its ranks exchange facts. If not, `join` and `meet` are not called.
  virtual bool introduces() const noexcept { return false; }
  // Returns the facts of this rank that the others need. Throws Error if something is missing here.
  // Then all ranks get the error, and the job does not begin.
  virtual std::vector<std::byte> join(const JobSite& site) {
    static_cast<void>(site);
    return {};
  }
  // `cards` are the results of each rank's `join`. Throws RendezvousError if they do not fit.
  virtual void meet(const std::vector<std::vector<std::byte>>& cards) { static_cast<void>(cards); }
  // Reports that a rank of the job has died. It may be called repeatedly.
  virtual void forsake() noexcept {}
  // Returns the carrier of an engine whose messages go between hosts, after `join`.
  virtual std::shared_ptr<Carrier> carrier() { return nullptr; }

  // --- Groups -----------------------------------------------------------------------------------
  // Returns the reach of its messages. kNowhere: it has none.
  virtual Distance reach() const noexcept { return Distance::kNowhere; }
  // Returns the bytes of a group's block that it needs for `members` members on this host. They are
  // zero when the group is new.
  virtual std::size_t group_bytes(int members) const noexcept {
    static_cast<void>(members);
    return 0;
  }
  // Makes messages for a group within `reach`.
  virtual std::unique_ptr<PointToPoint> make_messages(const GroupSite& site) {
    static_cast<void>(site);
    return nullptr;
  }
  // Returns whether it has its own collectives. If not, algorithm::AlgorithmEngine makes
  // collectives from its messages.
  virtual bool has_collectives() const noexcept { return false; }
  // Makes collectives for a group. Null: it has none for such a group. This depends only on facts
  // that are equal on all members.
  virtual std::unique_ptr<CollectiveEngine> make_collectives(const GroupSite& site) {
    static_cast<void>(site);
    return nullptr;
  }

  // Reports that a group with its engines is closed on this rank, and destroys them. A provider
  // keeps `hold` if it needs the group's block until the other ranks have closed the group.
  virtual void close(std::uint64_t group, const std::shared_ptr<void>& hold) noexcept {
    static_cast<void>(group), static_cast<void>(hold);
  }
  // The job ends on this rank. The provider releases everything that it keeps of closed groups.
  virtual void end() noexcept {}

  // --- Groups' arrays in GPUs -------------------------------------------------------------------
  // Returns this rank's facts about the engine for the other ranks. It does not throw if something
  // is missing; the card says so.
  virtual DeviceCard device_card(const cuda::DeviceContext& device) {
    static_cast<void>(device);
    return {};
  }
  // Returns why such a group has no engine for GPUs. Empty: it has one. The answer is equal on all
  // members.
  virtual std::string why_no_device_engine(const DeviceSite& site) const {
    static_cast<void>(site);
    return "it is for host memory";
  }
  virtual std::unique_ptr<DeviceEngine> make_device_engine(const DeviceSite& site) {
    static_cast<void>(site);
    return nullptr;
  }
};

// Returns whether it is only for arrays in GPUs' memory.
inline bool is_of_gpus(const Provider& provider) noexcept {
  return !provider.serves(MemoryKind::kHost);
}

// Providers, best first; the order also decides between equal scores.
using ProviderList = std::vector<std::shared_ptr<Provider>>;

}  // namespace hocket::engine
