#include "calls/device/engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "foundation/base/config.h"
#include "foundation/base/log.h"

namespace hocket::device {
namespace {

constexpr const char* kOnlyInGraphs =
    ": only in graphs, as ranks that share a GPU wait for each other on the host";
constexpr const char* kNotUnderMps =
    "threads share a GPU under NVIDIA's MPS, which need not run their kernels side by side";

bool equal(const cuda::Uuid& a, const cuda::Uuid& b) {
  return std::equal(std::begin(a.bytes), std::end(a.bytes), std::begin(b.bytes));
}

bool has_mps(const cuda::DeviceContext& device) {
  int mps = 0;  // a driver that does not know the attribute leaves 0
  device.driver().device_get_attribute(&mps, cuda::DeviceAttribute::kMps, device.ordinal());
  return mps != 0;
}

// Returns how many streams of a process the driver runs concurrently. The driver ignores an invalid
// value and uses its default. NVIDIA's MPS shares 96 among 48 processes.
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

// Returns the number of ranks that a GPU runs at the same time. Processes take turns, except under
// NVIDIA's MPS, which serves 48. Threads share the connections of their process: streams on one
// connection wait for each other, and a rank has about two streams.
int ranks_at_once(const DeviceJobContext& job, bool mps) {
  if (job.threads()) return std::max(connections(mps) / 2, 1);
  return mps ? 48 : 1;
}

int pieces(int whole, int piece) { return (whole + piece - 1) / std::max(piece, 1); }

}  // namespace

DeviceAgreement agree(const std::vector<DeviceFacts>& facts) {
  DeviceAgreement agreed;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    agreed.relayed = agreed.relayed || facts[i].relayed != 0;
    agreed.mps = agreed.mps || facts[i].mps != 0;
    if (facts[i].costs != facts[0].costs && agreed.differing_costs < 0) {
      agreed.differing_costs = static_cast<int>(i);
    }
    const auto here = static_cast<int>(std::ranges::count_if(
        facts, [&](const DeviceFacts& other) { return equal(facts[i].uuid, other.uuid); }));
    agreed.shares_gpu = agreed.shares_gpu || here > 1;
    const int sharing = std::max(here, facts[i].crowd);
    agreed.in_turns = agreed.in_turns || sharing > facts[i].at_once;
    agreed.ranks_a_gpu = std::max(agreed.ranks_a_gpu, sharing);
  }
  return agreed;
}

DeviceEngines::Said DeviceEngines::exchange(const engine::Gather& gather,
                                            const DeviceFacts& own,
                                            const engine::ProviderList& providers,
                                            const cuda::DeviceContext& device) {
  const std::size_t each = sizeof own + providers.size() * sizeof(engine::DeviceCard);
  std::vector<std::byte> told(each);
  std::memcpy(told.data(), &own, sizeof own);
  for (std::size_t i = 0; i < providers.size(); ++i) {
    const engine::DeviceCard card = providers[i]->device_card(device);
    std::memcpy(told.data() + sizeof own + i * sizeof card, &card, sizeof card);
  }
  const std::vector<std::byte> all = gather(told);
  Said said;
  said.facts.resize(all.size() / each);
  said.cards.resize(providers.size());
  for (std::size_t rank = 0; rank < said.facts.size(); ++rank) {
    const std::byte* from = all.data() + rank * each;
    std::memcpy(&said.facts[rank], from, sizeof own);
    for (std::size_t i = 0; i < providers.size(); ++i) {
      engine::DeviceCard& card = said.cards[i].emplace_back();
      std::memcpy(&card, from + sizeof own + i * sizeof card, sizeof card);
    }
  }
  return said;
}

void DeviceEngines::make(const engine::ProviderList& providers,
                         engine::DeviceSite site,
                         const Said& said) {
  const auto of_gpus =
      std::ranges::count_if(providers, [](const auto& provider) { return is_of_gpus(*provider); });
  for (std::size_t i = 0; i < providers.size(); ++i) {
    engine::Provider& provider = *providers[i];
    site.cards = said.cards[i];
    site.is_only = of_gpus == (is_of_gpus(provider) ? 1 : 0);
    const std::string why_not = provider.why_no_device_engine(site);
    if (why_not.empty()) {
      add(provider.make_device_engine(site));
    } else {
      notes_.push_back(fmt::format("{}: {}", provider.name(), why_not));
    }
  }
}

void DeviceEngines::add(std::unique_ptr<engine::DeviceEngine> engine) {
  if (!never_meet_.empty() && engine->meets_on_device()) {
    notes_.push_back(fmt::format("{}: {}", engine->name(), never_meet_));
    return;
  }
  notes_.emplace_back(engine->name());
  if (in_turns_ && engine->meets_on_device()) notes_.back() += kOnlyInGraphs;
  entries_.push_back({std::move(engine)});
}

DeviceEngines::DeviceEngines(DeviceJobContext& job,
                             const call::Membership& membership,
                             std::shared_ptr<const cuda::DeviceContext> device,
                             bool relayed,
                             const engine::Gather& gather)
    : costs_(job.device_libraries().costs()), size_(membership.size()) {
  DeviceFacts own;
  own.costs = costs_.hash();
  own.relayed = relayed ? 1 : 0;
  if (job.threads()) own.crowd = pieces(job.size(), device->driver().devices());
  own.mps = has_mps(*device) ? 1 : 0;
  own.at_once = ranks_at_once(job, own.mps != 0);
  device->driver().device_get_uuid(&own.uuid, device->ordinal());
  engine::ProviderList providers;
  std::ranges::copy_if(job.providers(), std::back_inserter(providers), [](const auto& provider) {
    return provider->serves(MemoryKind::kCuda);
  });
  const Said said = DeviceEngines::exchange(gather, own, providers, *device);
  const DeviceAgreement agreed = agree(said.facts);
  relayed_ = agreed.relayed;
  by_crowded_threads_ = job.threads() && agreed.ranks_a_gpu > 1;
  // A user who asks only for engines for GPUs gets them in any case.
  const bool asked_for = is_of_gpus(*job.providers().front());
  in_turns_ = (agreed.in_turns || by_crowded_threads_) && !asked_for;
  if (by_crowded_threads_ && agreed.mps) {
    never_meet_ = kNotUnderMps;
  } else if (by_crowded_threads_ && agreed.in_turns) {
    never_meet_ = fmt::format(
        "{} ranks of this process share a GPU, with two streams each, and the driver serves {} "
        "side by side: set CUDA_DEVICE_MAX_CONNECTIONS={} (at most 32) before the program starts, "
        "or have fewer ranks on a GPU",
        agreed.ranks_a_gpu,
        connections(agreed.mps),
        2 * agreed.ranks_a_gpu);
  }
  if (!never_meet_.empty() && asked_for) {
    throw InvalidArgument(never_meet_ +
                          (agreed.mps ? ": have ranks be processes there (hocket run, "
                                        "hocket.spawn), or leave the choice of engines to hocket, "
                                        "so that the host carries the calls"
                                      : ""));
  }
  if (agreed.differing_costs >= 0) {
    throw InvalidArgument(
        fmt::format("HOCKET_COSTS names a table on rank {} that differs from rank 0's; all ranks "
                    "need the same one, or they would choose different engines",
                    agreed.differing_costs));
  }
  make(providers,
       {.id = membership.id(),
        .facts = call::facts_of(membership),
        .world_ranks = membership.world_ranks,
        .world_size = job.size(),
        .has_lost_ranks = membership.has_lost_ranks,
        .device = device,
        .ranks_a_gpu = agreed.ranks_a_gpu,
        .shares_gpu = agreed.shares_gpu,
        .interrupted = [&job] { return job.interrupted(); }},
       said);
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
  // Ranks do not meet on the host before a message, so no kernel may wait there for a peer.
  const bool waits_here = by_crowded_threads_ && in_turns_;
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.engine->has_messages() && !(waits_here && entry.engine->meets_on_device());
  });
  return found == entries_.end() ? nullptr : found->engine.get();
}

bool DeviceEngines::any_meets() const noexcept {
  return std::ranges::any_of(entries_, [](const Entry& entry) {
    return entry.connected && entry.engine->meets_on_device();
  });
}

bool DeviceEngines::is_connected(const engine::DeviceEngine& engine) const noexcept {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    return entry.engine.get() == &engine && entry.connected;
  });
}

bool DeviceEngines::connect(engine::DeviceEngine& engine,
                            const engine::Introduction& introduction) {
  struct Outcome {
    base::ShortSentence<160> why_not;
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

}  // namespace hocket::device
