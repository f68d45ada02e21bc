#include "comm/composition_mpi.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engines/mpi/mpi_engine.h"

namespace hocket::comm {
namespace {

using engines::mpi::Elsewhere;
using engines::mpi::Library;
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
                           const Membership& membership,
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

class Home final : public MpiHome {
 public:
  Home(std::shared_ptr<Library> library, std::vector<int> ranks)
      : library_(std::move(library)), everybody_(library_->world()), ranks_(std::move(ranks)) {}

  std::unique_ptr<engine::CollectiveEngine> make_engine(const Membership& membership,
                                                        const engine::GroupFacts& facts,
                                                        control::GroupControl& control,
                                                        Rivals rivals) override {
    std::vector<int> members;
    for (const int rank : membership.world_ranks) {
      members.push_back(ranks_[static_cast<std::size_t>(rank)]);
    }
    // Groups that are made at the same time have no rank in common, so that one tag does for all.
    constexpr int kTag = 17;
    return std::make_unique<MpiEngine>(
        library_->create(*everybody_, members, kTag),
        facts,
        [&control, rank = membership.rank] { control.ring(rank); },
        [&control, membership, rivals = std::move(rivals)](std::uint64_t sequence, bool given_up) {
          return called_elsewhere(control, membership, *rivals, sequence, given_up);
        });
  }

  void forsake() noexcept override { library_->forsake(); }

 private:
  std::shared_ptr<Library> library_;
  std::shared_ptr<engines::mpi::Comm> everybody_;  // of MPI
  std::vector<int> ranks_;                         // in MPI's world, of hocket's world's
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

std::shared_ptr<MpiHome> make_mpi_home(Store* store,
                                       const LaunchInfo& launch,
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
  return std::make_shared<Home>(found.library, numbers_of(cards, own, launch.rank));
}

}  // namespace hocket::comm
