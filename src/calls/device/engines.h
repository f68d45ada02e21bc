// The engines for GPUs that a communicator has. All its ranks determine them together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calls/call/membership.h"
#include "calls/device/device_job_context.h"
#include "engine/cost_table.h"
#include "engine/device_engine.h"
#include "engine/provider.h"
#include "foundation/base/short_text.h"
#include "foundation/cuda/context.h"

namespace hocket::device {

// A rank's facts about its GPU, which it sends to the other ranks before the engines' cards. A
// value of fixed size.
struct DeviceFacts {
  cuda::Uuid uuid{};
  std::int32_t relayed = 0;  // 1: the host has carried messages
  std::int32_t crowd = 1;    // number of ranks of its process on one GPU
  std::int32_t at_once = 1;  // number of ranks that the GPU runs at the same time
  std::int32_t mps = 0;      // 1: NVIDIA's MPS runs there
  std::uint64_t costs = 0;   // hash of the cost table
};

// The facts that all ranks agree on. A value.
struct DeviceAgreement {
  int ranks_a_gpu = 1;       // largest number of ranks on one GPU, including other groups of the
                             // process
  bool shares_gpu = false;   // two ranks of the group share a GPU
  bool in_turns = false;     // ranks that share a GPU do not all run at the same time
  bool mps = false;          // on at least one rank's GPU
  bool relayed = false;      // the host has carried messages of a rank
  int differing_costs = -1;  // a rank whose cost table differs from rank 0's, or -1
};
DeviceAgreement agree(const std::vector<DeviceFacts>& facts);

// A resource: the engines, and which of them are connected. Of equal scores, the first engine wins.
// One thread at a time uses it.
class DeviceEngines {
 public:
  DeviceEngines(DeviceJobContext& job,
                const call::Membership& membership,
                std::shared_ptr<const cuda::DeviceContext> device,
                bool relayed,
                const engine::Gather& gather);

  // Returns whether the host had carried messages of any rank.
  bool relayed() const noexcept { return relayed_; }
  // Returns whether ranks that are threads of one process share a GPU.
  bool by_crowded_threads() const noexcept { return by_crowded_threads_; }
  // Returns the best engine for the call. Null if the host must carry it, or is faster. Kernels
  // that wait for each other take milliseconds if their processes take turns on a GPU. Kernels of
  // threads block the driver. `captured`: the call is captured into a graph, which only GPUs can
  // carry.
  engine::DeviceEngine* choose(const engine::Signature& signature, bool captured) const noexcept;
  // Returns the first engine that carries messages and works, or null.
  engine::DeviceEngine* messenger() const noexcept;
  bool is_connected(const engine::DeviceEngine& engine) const noexcept;
  // Returns whether a connected engine `meets_on_device`.
  bool any_meets() const noexcept;
  // Connects an engine. Collective. Returns false on all ranks, and removes the engine, if it fails
  // on one of them.
  bool connect(engine::DeviceEngine& engine, const engine::Introduction& introduction);

 private:
  struct Entry {
    std::unique_ptr<engine::DeviceEngine> engine;
    bool connected = false;
  };
  // The answers of all ranks: the facts of each rank and, for each provider, the card of each rank.
  struct Said {
    std::vector<DeviceFacts> facts;
    std::vector<std::vector<engine::DeviceCard>> cards;
  };
  // Exchanges the facts and cards of all ranks. Collective.
  static Said exchange(const engine::Gather& gather,
                       const DeviceFacts& own,
                       const engine::ProviderList& providers,
                       const cuda::DeviceContext& device);
  // Makes the engines that work in this group. `notes_` records why others are missing.
  void make(const engine::ProviderList& providers, engine::DeviceSite site, const Said& said);
  void add(std::unique_ptr<engine::DeviceEngine> engine);

  // Returns the measured time of a call. Absent: it was not measured.
  std::optional<double> microseconds(std::string_view name,
                                     const engine::Signature& signature) const;

  const engine::CostTable& costs_;
  int size_;
  bool relayed_ = false;
  bool in_turns_ = false;
  bool by_crowded_threads_ = false;
  std::string never_meet_;  // why kernels of different ranks cannot wait for each other; or ""
  std::vector<Entry> entries_;
  std::vector<std::string> notes_;  // the available engines, and why others are missing; for logs
};

}  // namespace hocket::device
