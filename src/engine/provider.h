// The interface of a provider, which represents an engine before any group exists. The provider
// says what the engine is for, reads its settings, exchanges facts between ranks, and makes the
// engine of each group. See docs/adding-an-engine.md.
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

// These classes belong to other layers. They are only declared here, because only engines use them.
namespace hocket::control {
class GroupControl;
}
namespace hocket::cuda {
class DeviceContext;
}

namespace hocket::engine {

// The form of a job's ranks: threads of one process, processes of one host, or processes of several
// hosts.
enum class Ranks : std::uint8_t { kThreads, kProcesses, kHosts };
// Whether a job uses an engine: never, only if the user asks for it, or by default.
enum class Use : std::uint8_t { kNever, kWhenAsked, kByDefault };
// The greatest distance that messages can go: between threads of a process, between processes of a
// host, or between hosts.
enum class Distance : std::uint8_t { kNowhere, kProcess, kHost, kHosts };

// The facts of the job that a provider gets before the ranks meet. A value.
struct JobSite {
  int rank = 0;
  int size = 1;
  std::string launcher;              // see LaunchInfo::launcher
  std::string interface;             // network interface to other hosts; empty: the library chooses
  base::PortRange ports = {};        // on which it may listen
  bool is_interface_chosen = false;  // true: by the user; false: it leads to the store
};

// The facts of a group that needs engines. A value. The objects that it refers to outlive the
// engines.
struct GroupSite {
  std::uint64_t id = 0;  // equal on all members, and unique in the job
  GroupFacts facts;
  std::span<const int> world_ranks;  // the rank in the world of each member
  // True if the group, or the one that it was made from, has lost a rank.
  bool has_lost_ranks = false;
  // `block` is the group's block in the memory that the ranks of this host share. Each group of a
  // process has its own block. `memory` is the part of the block for this engine: see
  // Provider::group_bytes.
  std::byte* block = nullptr;
  std::byte* memory = nullptr;
  control::GroupControl* control = nullptr;
  Consistency* consistency = nullptr;
  // Wakes a member that waits for an action of this rank.
  std::function<void(int member)> ring;
  // All engines of the group. The list is filled after all engines are made.
  std::shared_ptr<const std::vector<CollectiveEngine*>> rivals;
};

// The facts that a rank sends to the others about its engine for GPUs, in that engine's own format.
// A value of fixed size, because all ranks exchange it.
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

// The facts of a group when it first uses an array on a GPU. A value. The objects that it refers to
// outlive the engines, except `cards`.
struct DeviceSite {
  std::uint64_t id = 0;
  GroupFacts facts;
  std::span<const int> world_ranks;
  int world_size = 1;
  bool has_lost_ranks = false;
  std::shared_ptr<const cuda::DeviceContext> device;
  std::span<const DeviceCard> cards;  // the cards of all members; see Provider::device_card
  int ranks_a_gpu = 1;                // largest number of ranks on any GPU, including ranks
                                      // of other groups
  bool shares_gpu = false;            // two members share a GPU
  bool is_only = false;               // the only chosen engine that serves GPUs' memory alone
  // Returns whether the user wants the waiting thread to stop.
  std::function<bool()> interrupted;
};

// Represents an engine in a job. A resource: a process has one for each job, and ranks that are
// threads share it. It outlives everything that it makes. `configure`, `join` and `meet` are called
// first, once each, in this order. After that any thread may use it. Tools such as `hocket doctor`
// call only the functions of the first section, without `configure`.
class Provider {
 public:
  virtual ~Provider() = default;

  // --- Description ------------------------------------------------------------------------------

  // Returns the engine's name in HOCKET_ENGINES. The engines that it makes return the same name.
  virtual std::string_view name() const noexcept = 0;
  virtual Use use(Ranks ranks) const noexcept = 0;
  // Returns whether the engine carries arrays in this memory.
  virtual bool serves(MemoryKind memory) const noexcept { return memory == MemoryKind::kHost; }
  // Returns the environment variables that only this engine reads.
  virtual std::span<const base::SettingRow> settings() const noexcept { return {}; }
  // Returns a hash of the settings that affect the engine's scores. It must be equal on all ranks.
  // 0: there are no such settings.
  virtual std::uint64_t tuning() const noexcept { return 0; }
  // Returns the engine's times on GPUs, measured before the release, as lines of a CostTable. Each
  // line has a line end. Empty: none.
  virtual std::string_view shipped_costs() const noexcept { return {}; }
  // Returns whether the engine can run on this machine, and what it carries. Absent: there is
  // nothing to report. A library of another project must be tried in a child process, by
  // os::run_in_child.
  virtual std::optional<hocket::Engine> probe(const Machine& machine) const = 0;

  // --- The job ----------------------------------------------------------------------------------

  // Reads the engine's settings by name, with foundation/base/config.h. Throws InvalidArgument for
  // a bad value. It starts nothing and loads nothing.
  virtual void configure() {}
  // Returns whether the ranks exchange facts about this engine. If not, `join` and `meet` are not
  // called.
  virtual bool introduces() const noexcept { return false; }
  // Returns the facts of this rank that the other ranks need. Throws Error if something is missing
  // on this rank. All ranks then get the error, and the job does not begin.
  virtual std::vector<std::byte> join(const JobSite& site) {
    static_cast<void>(site);
    return {};
  }
  // Takes the results of every rank's `join`, by rank. Throws RendezvousError if they do not fit
  // together.
  virtual void meet(const std::vector<std::vector<std::byte>>& cards) { static_cast<void>(cards); }
  // Tells the provider that a rank of the job has died. It may be called several times.
  virtual void forsake() noexcept {}
  // Returns the carrier, if the engine's messages go between hosts. Called after `join`.
  virtual std::shared_ptr<Carrier> carrier() { return nullptr; }

  // --- Groups -----------------------------------------------------------------------------------

  // Returns how far the engine's messages can go. kNowhere: it carries no messages.
  virtual Distance reach() const noexcept { return Distance::kNowhere; }
  // Returns how many bytes of a group's block the engine needs for `members` members on this host.
  // The bytes are zero when the group is new.
  virtual std::size_t group_bytes(int members) const noexcept {
    static_cast<void>(members);
    return 0;
  }
  // Makes the carrier of messages of a group, which lies within `reach`.
  virtual std::unique_ptr<PointToPoint> make_messages(const GroupSite& site) {
    static_cast<void>(site);
    return nullptr;
  }
  // Returns whether the engine implements collectives itself. If not, algorithm::AlgorithmEngine
  // makes collectives from its messages.
  virtual bool has_collectives() const noexcept { return false; }
  // Makes the engine for a group's collectives. Null: the provider has none for this group. The
  // choice depends only on facts that are equal on all members.
  virtual std::unique_ptr<CollectiveEngine> make_collectives(const GroupSite& site) {
    static_cast<void>(site);
    return nullptr;
  }

  // Tells the provider that this rank has closed a group and is destroying its engines. The
  // provider keeps `hold` if it needs the group's block until the other ranks have closed the group
  // too.
  virtual void close(std::uint64_t group, const std::shared_ptr<void>& hold) noexcept {
    static_cast<void>(group), static_cast<void>(hold);
  }
  // Ends the job on this rank. The provider releases everything that it has kept of closed groups.
  virtual void end() noexcept {}

  // --- Groups' arrays in GPUs -------------------------------------------------------------------

  // Returns the facts about the engine that this rank sends to the others. If something is missing,
  // it does not throw: the card says so.
  virtual DeviceCard device_card(const cuda::DeviceContext& device) {
    static_cast<void>(device);
    return {};
  }
  // Returns why this provider has no engine for the GPU arrays of this group. Empty: it has one.
  // The answer is equal on all members.
  virtual std::string why_no_device_engine(const DeviceSite& site) const {
    static_cast<void>(site);
    return "it is for host memory";
  }
  virtual std::unique_ptr<DeviceEngine> make_device_engine(const DeviceSite& site) {
    static_cast<void>(site);
    return nullptr;
  }
};

// Returns whether the provider's engines carry only arrays in GPUs' memory.
inline bool is_of_gpus(const Provider& provider) noexcept {
  return !provider.serves(MemoryKind::kHost);
}

// Providers, best first. Among engines with equal scores, the first one is chosen.
using ProviderList = std::vector<std::shared_ptr<Provider>>;

}  // namespace hocket::engine
