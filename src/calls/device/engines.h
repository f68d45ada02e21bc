// Which engines of GPUs a communicator has, found out by all its ranks together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calls/call/membership.h"
#include "calls/device/surroundings.h"
#include "engine/cost_table.h"
#include "engine/device_engine.h"
#include "engine/provider.h"
#include "foundation/base/short_text.h"
#include "foundation/cuda/context.h"

namespace hocket::device {

// What a rank tells the others of its GPU, in front of the engines' cards. A value of fixed size,
// as it travels.
struct DeviceFacts {
  cuda::Uuid uuid{};
  std::int32_t relayed = 0;  // 1: messages have gone by the host
  std::int32_t crowd = 1;    // how many ranks of its process there are to a GPU
  std::int32_t at_once = 1;  // how many ranks a GPU runs side by side
  std::int32_t mps = 0;      // 1: NVIDIA's MPS runs there
  std::uint64_t costs = 0;   // the table's hash
};

// What is agreed by all: equal on all ranks. A value.
struct DeviceAgreement {
  int ranks_a_gpu = 1;       // the most that share one, with those of other groups in a process
  bool shares_gpu = false;   // two ranks of the group have one
  bool in_turns = false;     // ranks that share one do not all run at the same time
  bool mps = false;          // on any rank's GPU
  bool relayed = false;      // messages of any rank have gone by the host
  int differing_costs = -1;  // a rank whose table of costs differs from rank 0's, or -1
};
DeviceAgreement agree(const std::vector<DeviceFacts>& facts);

// A resource: the engines, best first on ties, and which of them have been connected. One thread at
// a time.
class DeviceEngines {
 public:
  DeviceEngines(DeviceSurroundings& surroundings,
                const call::Membership& membership,
                std::shared_ptr<const cuda::DeviceContext> device,
                bool relayed,
                const engine::Gather& gather);

  // Whether messages of any rank had gone by the host.
  bool relayed() const noexcept { return relayed_; }
  // Whether threads of a process are ranks that share a GPU.
  bool by_crowded_threads() const noexcept { return by_crowded_threads_; }
  // The best for such calls; null where the host has to carry them, or is better: kernels that
  // wait for each other while their processes take turns on a GPU take milliseconds, and those of
  // threads hold up the driver. `captured`: into a graph, as only GPUs can.
  engine::DeviceEngine* choose(const engine::Signature& signature, bool captured) const noexcept;
  // The first that carries messages and works, or null.
  engine::DeviceEngine* messenger() const noexcept;
  bool is_connected(const engine::DeviceEngine& engine) const noexcept;
  // Whether one is connected that `meets_on_device`.
  bool any_meets() const noexcept;
  // Collective. False, on all ranks, where it does not work on one of them: then it is gone.
  bool connect(engine::DeviceEngine& engine, const engine::Introduction& introduction);
  // What is there, and why the rest is not: "nccl", "peer: ...".
  const std::vector<std::string>& notes() const noexcept { return notes_; }

 private:
  struct Entry {
    std::unique_ptr<engine::DeviceEngine> engine;
    bool connected = false;
  };
  // What all ranks say of themselves and, by engine, of each of these. Collective.
  struct Said {
    std::vector<DeviceFacts> facts;
    std::vector<std::vector<engine::DeviceCard>> cards;
  };
  static Said exchange(const engine::Gather& gather,
                       const DeviceFacts& own,
                       const engine::ProviderList& providers,
                       const cuda::DeviceContext& device);
  // Makes those that groups like this have; the notes learn why others are not among them.
  void make(const engine::ProviderList& providers, engine::DeviceSite site, const Said& said);
  void add(std::unique_ptr<engine::DeviceEngine> engine);

  // As measured; absent: it was not.
  std::optional<double> microseconds(std::string_view name,
                                     const engine::Signature& signature) const;

  const engine::CostTable& costs_;
  int size_;
  bool relayed_ = false;
  bool in_turns_ = false;
  bool by_crowded_threads_ = false;
  std::string never_meet_;  // why kernels of different ranks cannot wait for each other; or empty
  std::vector<Entry> entries_;
  std::vector<std::string> notes_;
};

}  // namespace hocket::device
