#include "comm/composition_mpi.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <string>

#include "control/succession.h"
#include "engines/mpi/mpi_device_engine.h"
#include "engines/mpi/mpi_engine.h"

namespace hocket::comm {
namespace {

using engines::mpi::Comm;
using engines::mpi::Elsewhere;
using engines::mpi::Library;
using engines::mpi::MpiDeviceEngine;
using engines::mpi::MpiEngine;

bool is_carried_by_mpi(const std::vector<engine::CollectiveEngine*>& engines,
                       const engine::Signature& signature) {
  const engine::CollectiveEngine* best = nullptr;
  double least = 0;
  for (const auto* engine : engines) {
    const auto score = engine->score(signature);
    if (!score || (best != nullptr && score->microseconds >= least)) continue;
    best = engine;
    least = score->microseconds;
  }
  return best != nullptr && best->name() == "mpi";
}

// Of a call that this rank did not make by MPI: what the others did, where it was because this one
// refused it.
Elsewhere called_elsewhere(const control::GroupControl& control,
                           const call::Membership& membership,
                           const std::vector<engine::CollectiveEngine*>& engines,
                           std::uint64_t sequence,
                           bool given_up) {
  const auto own = control.find(membership.rank, sequence);
  if (!own || !(own->refused || given_up)) return {.known = true};
  std::optional<engine::Signature> called;
  for (int rank = 0; rank < membership.size(); ++rank) {
    if (rank == membership.rank) {
      if (!own->refused) called = own->signature;
      continue;
    }
    // Once all have heard of the refusal, and given the call up, nothing that is made up can be
    // taken for data.
    if (control.finished_sequence(rank) < sequence) return {};
    const auto theirs = control.find(rank, sequence);
    if (theirs && !theirs->refused) called = theirs->signature;
  }
  if (called && !is_carried_by_mpi(engines, *called)) called.reset();
  return {.known = true, .signature = called};
}

// A group that was closed on this rank. Another may have a call under way in it, or make one yet;
// so long its number in MPI is not free, as a later communicator that got it here would take what
// comes of that call for its own. A resource: the communicator, and the hold of the group's block.
class Retired {
 public:
  Retired(std::shared_ptr<Comm> comm,
          control::HostControl& host,
          const call::Membership& membership,
          std::uint64_t block)
      : comm_(std::move(comm)),
        host_(host),
        rank_(membership.rank),
        places_(membership.host_ranks),
        block_(block) {}

  // True when it is done with.
  bool look() noexcept {
    const auto quiet = is_quiet();
    if (!quiet) return false;
    end(*quiet);
    return true;
  }
  void end(bool is_quiet) noexcept {
    if (!is_quiet) Library::keep(std::move(comm_));
    comm_.reset();
    host_.release(block_);
  }

 private:
  // Whether all have closed it after the same calls, and nothing was given up in it; absent: some
  // have yet to close it.
  std::optional<bool> is_quiet() const noexcept {
    control::GroupControl control(host_, host_.at(block_), rank_, places_);
    const control::Succession words(control);
    bool all_closed = true;
    for (int i = 0; i < control.size(); ++i) {
      if (words.has_closed(i)) continue;
      if (words.has_come(i) || words.is_lost(i)) return false;
      all_closed = false;
    }
    if (control.failed() || control.any_refusal()) return false;
    if (!all_closed) return std::nullopt;
    for (int i = 0; i < control.size(); ++i) {
      if (control.last_sequence(i) != control.last_sequence(rank_)) return false;
    }
    return true;
  }

  std::shared_ptr<Comm> comm_;
  control::HostControl& host_;
  int rank_;
  std::vector<int> places_;
  std::uint64_t block_;
};

class Home final : public MpiHome {
 public:
  Home(std::shared_ptr<Library> library, std::vector<int> ranks, UseGpus use_gpus)
      : library_(std::move(library)),
        everybody_(library_->world()),
        ranks_(std::move(ranks)),
        use_gpus_(use_gpus) {}

  std::unique_ptr<engine::CollectiveEngine> make_engine(const call::Membership& membership,
                                                        const engine::GroupFacts& facts,
                                                        control::GroupControl& control,
                                                        Rivals rivals) override {
    std::vector<int> members;
    for (const int rank : membership.world_ranks) {
      members.push_back(ranks_[static_cast<std::size_t>(rank)]);
    }
    look_at_retired();
    // Groups that are made at the same time have no rank in common, so that one tag does for all.
    constexpr int kTag = 17;
    const auto made = library_->create(*everybody_, members, kTag);
    remember(membership.id(), made);
    return std::make_unique<MpiEngine>(
        made,
        facts,
        [&control, rank = membership.rank] { control.ring(rank); },
        [&control, membership, rivals = std::move(rivals)](std::uint64_t sequence, bool given_up) {
          return called_elsewhere(control, membership, *rivals, sequence, given_up);
        });
  }

  UseGpus use_gpus() const noexcept override { return use_gpus_; }

  std::unique_ptr<engine::DeviceEngine> make_device_engine(
      const call::Membership& membership,
      std::shared_ptr<const cuda::DeviceContext> device,
      bool always,
      std::function<bool()> interrupted) override {
    return std::make_unique<MpiDeviceEngine>(
        std::move(device),
        engines::mpi::DeviceOptions{.comm = find(membership.id()),
                                    .rank = membership.rank,
                                    .size = membership.size(),
                                    .always = always,
                                    .interrupted = std::move(interrupted)});
  }

  void retire(const call::Membership& membership,
              control::HostControl& host,
              std::uint64_t block) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      const auto found = groups_.find(membership.id());
      if (found == groups_.end()) return host.release(block);
      retired_.emplace_back(found->second, host, membership, block);
      groups_.erase(found);
    }
    look_at_retired();
  }

  void end() noexcept override {
    look_at_retired();
    const std::lock_guard lock(mutex_);
    for (Retired& group : retired_) group.end(false);
    retired_.clear();
    for (auto& [id, comm] : groups_) Library::keep(std::move(comm));
    groups_.clear();
  }

  void forsake() noexcept override { library_->forsake(); }

 private:
  void remember(std::uint64_t group, const std::shared_ptr<Comm>& made) {
    const std::lock_guard lock(mutex_);
    groups_[group] = made;
  }
  std::shared_ptr<Comm> find(std::uint64_t group) {
    const std::lock_guard lock(mutex_);
    const auto found = groups_.find(group);
    if (found == groups_.end()) throw DeviceError("MPI has no communicator for this group");
    return found->second;
  }
  void look_at_retired() noexcept {
    const std::lock_guard lock(mutex_);
    retired_.remove_if([](Retired& group) { return group.look(); });
  }

  std::shared_ptr<Library> library_;
  std::shared_ptr<Comm> everybody_;  // of MPI
  std::vector<int> ranks_;           // in MPI's world, of hocket's world's
  const UseGpus use_gpus_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Comm>> groups_;  // that are open
  std::list<Retired> retired_;
};

// What a rank tells the others: its number in MPI's world, then what must be alike everywhere.
std::string card_of(Library& library) {
  int rank = 0;
  int size = 1;
  library.place(*library.world(), rank, size);
  return fmt::format("{}\n{}\n{}", rank, size, library.name());
}

// The ranks' numbers in MPI's world.
std::vector<int> numbers_of(const std::vector<Bytes>& cards, const std::string& own, int rank) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const std::string card = to_string(cards[i]);
    const std::size_t end = card.find('\n');
    const bool alike = end != std::string::npos &&
                       card.substr(end) == own.substr(std::min(own.find('\n'), own.size()));
    const int number = alike ? std::stoi(card.substr(0, end)) : -1;
    if (!alike || std::find(numbers.begin(), numbers.end(), number) != numbers.end()) {
      throw RendezvousError(fmt::format(
          "engine mpi: ranks {} and {} are not of one MPI job; start all ranks by one mpirun",
          i,
          rank));
    }
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

std::vector<std::string> known_mpis() { return Library::built_for(); }

std::string look_at_mpi(const std::string& name) {
  using engines::mpi::Gpus;
  const auto found = Library::load(name);
  if (!found.library) return fmt::format("{} cannot be had ({})", name, found.why_not);
  found.library->start();
  const Gpus says = found.library->gpus();
  found.library->end();
  return fmt::format("{} says {}",
                     found.library->name(),
                     says == Gpus::kSaysYes  ? "yes"
                     : says == Gpus::kSaysNo ? "no"
                                             : "nothing");
}

std::shared_ptr<MpiHome> make_mpi_home(Store* store,
                                       const LaunchInfo& launch,
                                       UseGpus use_gpus,
                                       base::Deadline deadline) {
  const auto found = Library::find(launch.launcher);
  // A rank without MPI says so, so that nobody is left waiting.
  std::string own;
  if (found.library) {
    found.library->start();
    own = card_of(*found.library);
  }
  std::vector<Bytes> cards{to_bytes(own)};
  if (store != nullptr) {
    cards = store->exchange(
        "hocket/mpi", launch.rank, launch.size, hocket::as_bytes(own), deadline.left());
  }
  if (!found.library) throw RendezvousError("engine mpi: " + found.why_not);
  return std::make_shared<Home>(found.library, numbers_of(cards, own, launch.rank), use_gpus);
}

}  // namespace hocket::comm
