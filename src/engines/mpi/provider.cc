#include "engines/mpi/provider.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "engines/mpi/called_elsewhere.h"
#include "engines/mpi/mpi_device_engine.h"
#include "engines/mpi/mpi_engine.h"
#include "foundation/cuda/usable.h"
#include "foundation/os/machine/probe.h"
#include "hocket/error.h"

namespace hocket::engines::mpi {
namespace {

using movement::UseGpus;

constexpr const char* kGpusVariable = "HOCKET_MPI_GPUS";

constexpr base::SettingRow kRows[]{
    {kGpusVariable,
     "GPUs' arrays by MPI: never (default), auto (where it says it knows CUDA), always"},
};

// Starts and ends one of the MPIs that this build supports. This may crash or hang. Returns the
// name of the MPI and its answer about GPUs' memory, for example "Open MPI v4.1.4 says no".
std::string look_at(const std::string& which) {
  const auto found = MpiLibrary::load(which);
  if (!found.library) return fmt::format("{} cannot be had ({})", which, found.why_not);
  found.library->start();
  const Gpus says = found.library->gpus();
  found.library->end();
  return fmt::format("{} says {}",
                     found.library->name(),
                     says == Gpus::kSaysYes  ? "yes"
                     : says == Gpus::kSaysNo ? "no"
                                             : "nothing");
}

// Returns the text that a rank gives to all ranks: its rank in MPI's world, then facts that must be
// equal on all ranks.
std::string card_of(MpiLibrary& library) {
  int rank = 0;
  int size = 1;
  library.place(*library.world(), rank, size);
  return fmt::format("{}\n{}\n{}", rank, size, library.name());
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns the rank in MPI's world that `card` contains. Returns nothing if `card` and `own` belong
// to different MPI jobs.
std::optional<int> number_in(const std::string& card, const std::string& own) {
  const std::size_t end = card.find('\n');
  if (end == std::string::npos) return std::nullopt;
  if (card.substr(end) != own.substr(std::min(own.find('\n'), own.size()))) return std::nullopt;
  int number = 0;
  const auto [rest, error] = std::from_chars(card.data(), card.data() + end, number);
  if (error != std::errc() || rest != card.data() + end) return std::nullopt;
  return number;
}

}  // namespace

void MpiProvider::configure() { gpus_ = movement::use_of_gpus(kGpusVariable); }

engine::Use MpiProvider::use(engine::Ranks ranks) const noexcept {
  return ranks == engine::Ranks::kThreads ? engine::Use::kNever : engine::Use::kWhenAsked;
}

std::span<const base::SettingRow> MpiProvider::settings() const noexcept { return kRows; }

// If there are GPUs, the note also has the answer of each MPI about GPUs' memory.
std::optional<Engine> MpiProvider::probe(const Machine& machine) const {
  const std::vector<std::string> mpis = MpiLibrary::built_for();
  Engine mpi{.name = std::string(name()), .available = !mpis.empty(), .note = {}};
  if (mpis.empty()) {
    mpi.note = "this build has none of MPI's headers";
    return mpi;
  }
  mpi.note = fmt::format("host memory, under the mpirun of {}, when asked for (HOCKET_ENGINES=mpi)",
                         fmt::join(mpis, " or "));
  if (!cuda::why_no_gpu(machine).empty()) return mpi;
  std::vector<std::string> said;
  for (const std::string& which : mpis) {
    const auto found = os::run_in_child([&] { return look_at(which); }, 15000);
    said.push_back(found.value_or(which + " crashed or hung when it was started"));
  }
  mpi.note += fmt::format("; GPU memory too, by those that know it, with HOCKET_MPI_GPUS=auto: {}",
                          fmt::join(said, ", "));
  return mpi;
}

std::vector<std::byte> MpiProvider::join(const engine::JobSite& site) {
  const auto found = MpiLibrary::find(site.launcher);
  if (!found.library) throw RendezvousError("engine mpi: " + found.why_not);
  own_ = site.rank;
  library_ = found.library;
  library_->start();
  everybody_ = library_->world();
  card_ = card_of(*library_);
  const auto bytes = std::as_bytes(std::span(card_));
  return {bytes.begin(), bytes.end()};
}

void MpiProvider::meet(const std::vector<std::vector<std::byte>>& cards) {
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const auto number = number_in(text_of(cards[i]), card_);
    if (!number || std::ranges::find(ranks_, *number) != ranks_.end()) {
      throw RendezvousError(fmt::format(
          "engine mpi: ranks {} and {} are not of one MPI job; start all ranks by one mpirun",
          i,
          own_));
    }
    ranks_.push_back(*number);
  }
}

void MpiProvider::forsake() noexcept {
  if (library_) library_->forsake();
}

std::unique_ptr<engine::CollectiveEngine> MpiProvider::make_collectives(
    const engine::GroupSite& site) {
  if (site.has_lost_ranks) return nullptr;
  std::vector<int> members;
  for (const int rank : site.world_ranks) {
    members.push_back(ranks_[static_cast<std::size_t>(rank)]);
  }
  groups_.look_at_closed();
  // All groups use the same tag, because groups that are made at the same time have no common rank.
  constexpr int kTag = 17;
  const auto made = library_->create(*everybody_, members, kTag);
  groups_.add(site, made);
  return std::make_unique<MpiEngine>(
      made,
      site.facts,
      [ring = site.ring, rank = site.facts.rank] { ring(rank); },
      [site](std::uint64_t sequence, bool given_up) {
        return called_elsewhere(site, sequence, given_up);
      });
}

engine::DeviceCard MpiProvider::device_card(const cuda::DeviceContext&) {
  return engine::DeviceCard::of(gpus_);
}

std::string MpiProvider::why_no_device_engine(const engine::DeviceSite& site) const {
  if (site.facts.size == 1) return "one rank needs no other";
  if (site.has_lost_ranks) return "MPI has lost a rank";
  if (movement::agreed_use(site.cards) != UseGpus::kNever) return {};
  return fmt::format("{}=never", kGpusVariable);
}

std::unique_ptr<engine::DeviceEngine> MpiProvider::make_device_engine(
    const engine::DeviceSite& site) {
  return std::make_unique<MpiDeviceEngine>(
      site.device,
      MpiDeviceOptions{.comm = groups_.find(site.id),
                       .rank = site.facts.rank,
                       .size = site.facts.size,
                       .always = movement::agreed_use(site.cards) == UseGpus::kAlways,
                       .interrupted = site.interrupted});
}

}  // namespace hocket::engines::mpi
