#include "calls/world/job_engines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>

#include "hocket/error.h"
#include "hocket/object.h"
#include "hocket/store.h"

namespace hocket::world {

using engine::Distance;
using engine::Provider;
using engine::ProviderList;
using engine::Ranks;
using engine::Use;

namespace {

using Held = std::shared_ptr<Provider>;

// True if the provider's collectives are algorithms over messages.
bool is_by_messages(const Provider& provider) {
  return !is_of_gpus(provider) && !provider.has_collectives();
}

// Returns the engines for a forced algorithm: the first engine whose collectives are algorithms
// over messages, and the default engines for GPUs. The engines for GPUs use no such algorithm.
std::vector<std::string> for_algorithms(const ProviderList& all, Ranks ranks) {
  std::vector<std::string> names;
  bool found = false;
  for (const Held& each : all) {
    if (each->use(ranks) == Use::kNever) continue;
    const bool first = is_by_messages(*each) && !found;
    found = found || first;
    if (first || (is_of_gpus(*each) && each->use(ranks) == Use::kByDefault)) {
      names.emplace_back(each->name());
    }
  }
  return names;
}

// Returns the default engine for ranks of one host, or of one process.
Held usual_of_host(const ProviderList& all, Ranks ranks) {
  const auto found = std::ranges::find_if(all, [&](const Held& each) {
    return !is_of_gpus(*each) && each->use(ranks) == Use::kByDefault;
  });
  return found == all.end() ? nullptr : *found;
}

}  // namespace

engine::ProviderList configured(const MakeProviders& make,
                                const std::vector<std::string>& folders) {
  ProviderList made = make(folders);
  for (const Held& each : made) each->configure();
  return made;
}

std::vector<std::string> split_names(const std::string& comma_separated) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < comma_separated.size();) {
    const std::size_t end = std::min(comma_separated.find(',', at), comma_separated.size());
    if (end > at) names.push_back(comma_separated.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

JobEngines::JobEngines(ProviderList all,
                       const InitOptions& options,
                       const base::Config& config,
                       Ranks ranks)
    : all_(std::move(all)), asked_(!options.engines.empty() || !config.engines.empty()) {
  std::vector<std::string> wanted =
      options.engines.empty() ? split_names(config.engines) : options.engines;
  if (wanted.empty() && !config.algorithm.empty()) wanted = for_algorithms(all_, ranks);
  choose(wanted, ranks);
  for (const Held& each : chosen_) names_.emplace_back(each->name());
  find_carriers();
}

void JobEngines::choose(const std::vector<std::string>& wanted, Ranks ranks) {
  for (const std::string& name : wanted) {
    const auto found = std::ranges::find_if(all_, [&](const Held& each) {
      return each->name() == name && each->use(ranks) != Use::kNever;
    });
    if (found != all_.end()) {
      if (!is_chosen(**found)) chosen_.push_back(*found);
      continue;
    }
    std::vector<std::string_view> there;
    for (const Held& each : all_) {
      if (each->use(ranks) != Use::kNever) there.push_back(each->name());
    }
    throw InvalidArgument(fmt::format(
        "there is no engine \"{}\" for {}; there are: {}",
        name,
        ranks == Ranks::kThreads ? "ranks that are threads" : "ranks that are processes",
        fmt::join(there, ", ")));
  }
  if (wanted.empty()) {
    for (const Held& each : all_) {
      if (each->use(ranks) == Use::kByDefault) chosen_.push_back(each);
    }
    return;
  }
  // If the user asks only for engines for GPUs, the host still needs an engine.
  const bool only_gpus =
      std::ranges::all_of(chosen_, [](const Held& each) { return is_of_gpus(*each); });
  const Held usual = usual_of_host(all_, ranks);
  if (only_gpus && usual) chosen_.push_back(usual);
}

void JobEngines::span_hosts() {
  spans_ = true;
  if (!asked_) {
    // Adds the engine that carries all messages between hosts, and collectives on GPUs without a
    // better engine.
    for (const Held& each : all_) {
      if (is_chosen(*each) || each->use(Ranks::kHosts) != Use::kByDefault) continue;
      if (each->reach() != Distance::kHosts) continue;
      chosen_.push_back(each);
      names_.emplace_back(each->name());
    }
  }
  find_carriers();
}

bool JobEngines::is_chosen(const Provider& provider) const noexcept {
  return std::ranges::any_of(chosen_, [&](const Held& each) { return each.get() == &provider; });
}

void JobEngines::find_carriers() {
  far_.reset();
  near_.reset();
  ProviderList candidates;
  bool needs_messages = false;
  for (const Held& each : chosen_) {
    if (is_of_gpus(*each)) continue;
    if (each->reach() == Distance::kNowhere) {
      needs_messages = true;
    } else {
      candidates.push_back(each);
    }
    if (each->reach() == Distance::kHosts && !far_) far_ = each;
  }
  for (const Held& each : all_) {
    const auto is_usual = [&](Distance reach, Ranks ranks) {
      return each->reach() == reach && each->use(ranks) == Use::kByDefault;
    };
    if (needs_messages && is_usual(Distance::kHost, Ranks::kProcesses)) candidates.push_back(each);
    if (spans_ && !far_ && is_usual(Distance::kHosts, Ranks::kHosts)) far_ = each;
  }
  const auto nearest =
      std::ranges::min_element(candidates, {}, [](const Held& each) { return each->reach(); });
  if (nearest != candidates.end()) near_ = *nearest;
}

ProviderList JobEngines::with_memory() const {
  ProviderList users;
  for (const Held& each : all_) {
    const bool is_used = is_chosen(*each) || each == near_ || each == far_;
    if (is_used && each->group_bytes(1) > 0) users.push_back(each);
  }
  return users;
}

// --- Introductions ------------------------------------------------------------------------------

namespace {

void introduce(Provider& provider,
               Store* store,
               const LaunchInfo& launch,
               base::Deadline deadline) {
  Bytes card;
  std::exception_ptr problem;
  std::string said;
  try {
    card = provider.join(
        {.rank = launch.rank, .size = launch.size, .launcher = launch.launcher, .interface = {}});
  } catch (const Error& error) {
    problem = std::current_exception();
    said = error.what();
  }
  // A rank that lacks the engine tells the other ranks, so that they do not wait for it.
  std::vector<Bytes> words{
      encode(Object::list({Object::bytes(std::span<const std::byte>(card)), said}))};
  if (store != nullptr) {
    words = store->exchange(fmt::format("hocket/{}", provider.name()),
                            launch.rank,
                            launch.size,
                            words.front(),
                            deadline.left());
  }
  if (problem) std::rethrow_exception(problem);
  std::vector<Bytes> cards;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Object word = decode(words[i]);
    const std::string why = word[1].as_string();
    if (!why.empty()) throw RendezvousError(fmt::format("rank {}: {}", i, why));
    const auto bytes = word[0].as_bytes();
    cards.emplace_back(bytes.begin(), bytes.end());
  }
  provider.meet(cards);
}

}  // namespace

void introduce_engines(const JobEngines& engines,
                       Store* store,
                       const LaunchInfo& launch,
                       base::Deadline deadline) {
  for (const Held& each : engines.chosen()) {
    // The engine between hosts has met the other ranks before. Only in a job of one rank it has
    // not.
    const bool has_met = each == engines.far() && !(launch.size == 1 && engines.is_one_carrier());
    if (each->introduces() && !has_met) introduce(*each, store, launch, deadline);
  }
}

}  // namespace hocket::world
