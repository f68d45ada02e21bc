#include "comm/device_engines.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/config.h"
#include "base/log.h"
#include "comm/communicator_impl.h"
#include "comm/composition.h"
#include "comm/world.h"

namespace hocket::comm {
namespace {

constexpr const char* kOnlyInGraphs =
    ": only in graphs, as processes that share a GPU take turns there without NVIDIA's MPS";
constexpr const char* kNotUnderMps =
    "threads share a GPU under NVIDIA's MPS, which need not run their kernels side by side";

bool equal(const cuda::Uuid& a, const cuda::Uuid& b) {
  return std::equal(std::begin(a.bytes), std::end(a.bytes), std::begin(b.bytes));
}

bool has_mps(const cuda::DeviceContext& device) {
  int mps = 0;  // a driver that does not know the question leaves it so
  device.driver().device_get_attribute(&mps, cuda::DeviceAttribute::kMps, device.ordinal());
  return mps != 0;
}

// How many streams of a process its driver serves side by side; for a bad value, which the driver
// passes over, its default. NVIDIA's MPS shares 96 between 48 processes.
int connections(bool mps) {
  constexpr const char* kName = "CUDA_DEVICE_MAX_CONNECTIONS";
  constexpr int kMost = 32;
  const int usual = mps ? 2 : 8;
  try {
    return static_cast<int>(base::environment_integer(kName, 1, kMost).value_or(usual));
  } catch (const InvalidArgument&) {
    return usual;
  }
}

// Processes take turns but under NVIDIA's MPS, which serves 48. Streams that share a connection
// wait for each other; a rank has about two streams.
int ranks_at_once(const WorldImpl& world, bool mps) {
  if (world.threads()) return std::max(connections(mps) / 2, 1);
  return mps ? 48 : 1;
}

int pieces(int whole, int piece) { return (whole + piece - 1) / std::max(piece, 1); }

}  // namespace

DeviceAgreement agree(const std::vector<DeviceFacts>& facts) {
  DeviceAgreement agreed{.shareable = true, .why_no_nccl = {}};
  int most_here = 0;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    agreed.relayed = agreed.relayed || facts[i].relayed != 0;
    agreed.mps = agreed.mps || facts[i].mps != 0;
    agreed.ucx_gpus = i == 0 ? facts[i].ucx_gpus : std::min(agreed.ucx_gpus, facts[i].ucx_gpus);
    agreed.mpi_gpus = i == 0 ? facts[i].mpi_gpus : std::min(agreed.mpi_gpus, facts[i].mpi_gpus);
    agreed.shareable = agreed.shareable && facts[i].shareable != 0;
    if (facts[i].costs != facts[0].costs && agreed.differing_costs < 0) {
      agreed.differing_costs = static_cast<int>(i);
    }
    const auto here = static_cast<int>(std::ranges::count_if(
        facts, [&](const DeviceFacts& other) { return equal(facts[i].uuid, other.uuid); }));
    most_here = std::max(most_here, here);
    const int sharing = std::max(here, facts[i].crowd);
    agreed.in_turns = agreed.in_turns || sharing > facts[i].at_once;
    agreed.ranks_a_gpu = std::max(agreed.ranks_a_gpu, sharing);
    if (!agreed.why_no_nccl.empty()) continue;
    if (facts[i].nccl == 0) {
      agreed.why_no_nccl = fmt::format("rank {}: {}", i, facts[i].why_no_nccl.view());
    } else if (facts[i].nccl != facts[0].nccl) {
      agreed.why_no_nccl = fmt::format(
          "rank 0 has version {} and rank {} version {}", facts[0].nccl, i, facts[i].nccl);
    }
  }
  if (agreed.why_no_nccl.empty() && most_here > 1) {
    agreed.why_no_nccl = "two ranks use one GPU, which NCCL refuses";
  }
  return agreed;
}

DeviceEngines::DeviceEngines(WorldImpl& world,
                             const call::Membership& membership,
                             std::shared_ptr<const cuda::DeviceContext> device,
                             bool relayed,
                             const engine::Gather& gather)
    : costs_(world.device_libraries().costs()), size_(membership.size()) {
  DeviceFacts own;
  own.costs = costs_.hash();
  own.relayed = relayed ? 1 : 0;
  own.ucx_gpus = ucx_gpus(world);
  own.mpi_gpus = mpi_gpus(world);
  if (world.threads()) own.crowd = pieces(world.size(), device->driver().devices());
  own.mps = has_mps(*device) ? 1 : 0;
  own.at_once = ranks_at_once(world, own.mps != 0);
  device->driver().device_get_uuid(&own.uuid, device->ordinal());
  own.shareable = device->attribute(cuda::DeviceAttribute::kVmm) != 0 &&
                  device->attribute(cuda::DeviceAttribute::kPosixFdHandles) != 0;
  std::string why_not;
  own.nccl = world.device_libraries().nccl_version(why_not);
  own.why_no_nccl = why_not;
  const DeviceAgreement agreed = agree(engine::gather_values(gather, own));
  relayed_ = agreed.relayed;
  if (agreed.in_turns && world.threads()) {
    throw InvalidArgument(fmt::format(
        "{} ranks of this process share a GPU, with two streams each, and the driver serves {} "
        "side by side: set CUDA_DEVICE_MAX_CONNECTIONS={} (at most 32) before the program starts, "
        "or have fewer ranks on a GPU",
        agreed.ranks_a_gpu,
        connections(agreed.mps),
        2 * agreed.ranks_a_gpu));
  }
  by_crowded_threads_ = world.threads() && agreed.ranks_a_gpu > 1;
  // Who asks for engines of GPUs alone has them, whatever comes of it.
  const bool asked_for = is_of_gpus(world.engines().front());
  in_turns_ = agreed.in_turns && !asked_for;
  const bool never_meet = by_crowded_threads_ && agreed.mps;
  if (never_meet && asked_for) {
    throw InvalidArgument(
        fmt::format("{}: have ranks be processes there (hocket run, hocket.spawn), or leave the "
                    "choice of engines to hocket, so that the host carries the calls",
                    kNotUnderMps));
  }
  if (agreed.differing_costs >= 0) {
    throw InvalidArgument(
        fmt::format("HOCKET_COSTS names a table on rank {} that differs from rank 0's; all ranks "
                    "need the same one, or they would choose different engines",
                    agreed.differing_costs));
  }
  for (auto& engine : make_device_engines(world, membership, device, agreed, notes_)) {
    if (never_meet && engine->meets_on_device()) {
      notes_.push_back(fmt::format("{}: {}", engine->name(), kNotUnderMps));
      continue;
    }
    notes_.emplace_back(engine->name());
    if (in_turns_ && engine->meets_on_device()) notes_.back() += kOnlyInGraphs;
    entries_.push_back({std::move(engine)});
  }
  for (const std::string& note : notes_) base::log(base::LogLevel::kDebug, "GPU engine " + note);
}

engine::DeviceEngine* DeviceEngines::choose(const engine::Signature& signature,
                                            bool captured) const noexcept {
  engine::DeviceEngine* best = nullptr;
  double least = 0;
  for (const Entry& entry : entries_) {
    if (in_turns_ && !captured && entry.engine->meets_on_device()) continue;
    const auto score = entry.engine->score(signature);
    if (!score) continue;
    const double cost = microseconds(entry.engine->name(), signature).value_or(score->microseconds);
    if (best != nullptr && cost >= least) continue;
    best = entry.engine.get();
    least = cost;
  }
  return best;
}

std::optional<double> DeviceEngines::microseconds(std::string_view name,
                                                  const engine::Signature& signature) const {
  if (signature.symmetric != 0) {
    const auto symmetric = costs_.microseconds(std::string(name) + ".symmetric", signature, size_);
    if (symmetric) return symmetric;
  }
  return costs_.microseconds(name, signature, size_);
}

engine::DeviceEngine* DeviceEngines::messenger() const noexcept {
  const auto found = std::ranges::find_if(
      entries_, [](const Entry& entry) { return entry.engine->has_messages(); });
  return found == entries_.end() ? nullptr : found->engine.get();
}

bool DeviceEngines::is_connected(const engine::DeviceEngine& engine) const noexcept {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    return entry.engine.get() == &engine && entry.connected;
  });
}

bool DeviceEngines::connect(engine::DeviceEngine& engine,
                            const engine::Introduction& introduction) {
  struct Outcome {
    base::ShortText<160> why_not;
    bool surprising = true;
  } own;
  try {
    engine.connect(introduction);
  } catch (const engine::NotOffered& reason) {
    own.why_not = reason.what();
    own.surprising = false;
  } catch (const DeviceError& error) {
    own.why_not = *error.what() == '\0' ? "it failed" : error.what();
  }
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return entry.engine.get() == &engine; });
  const auto all = engine::gather_values(introduction.gather, own);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].why_not.empty()) continue;
    std::string note = fmt::format("{}: rank {}: {}", engine.name(), i, all[i].why_not.view());
    base::log(all[i].surprising ? base::LogLevel::kWarning : base::LogLevel::kDebug,
              "GPU engine " + note);
    std::erase_if(notes_, [&](const std::string& had) { return had.starts_with(engine.name()); });
    notes_.push_back(std::move(note));
    entries_.erase(found);
    return false;
  }
  found->connected = true;
  return true;
}

}  // namespace hocket::comm
