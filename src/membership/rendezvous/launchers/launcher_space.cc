#include "membership/rendezvous/launchers/launcher_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "foundation/base/config.h"
#include "hocket/error.h"

namespace hocket::rendezvous {
namespace {

// The number of bytes in one value of the space. A value has at most 1000 characters, and a byte
// takes two.
constexpr std::size_t kBytesAValue = 400;

std::string digits_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte each : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(each));
  return text;
}

void read_digits(const std::string& text, std::span<std::byte> bytes) {
  if (text.size() != 2 * bytes.size()) {
    throw RendezvousError(fmt::format(
        "the launcher's process manager gave back {} characters of {}; are all ranks running the "
        "same version of hocket?",
        text.size(),
        2 * bytes.size()));
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    std::uint8_t value = 0;
    if (std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2) {
      throw RendezvousError("the launcher's process manager gave back another value than was put");
    }
    bytes[i] = std::byte{value};
  }
}

// A bootstrap over a launcher's key-value space. A key can be put only once, so each call uses new
// keys.
class SpaceBootstrap final : public Bootstrap {
 public:
  SpaceBootstrap(std::unique_ptr<LauncherSpace> space, const LaunchPlace& place)
      : space_(std::move(space)), rank_(place.rank), size_(place.size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void broadcast(std::span<std::byte> bytes, int root) override {
    ++calls_;
    if (rank_ == root) put(bytes);
    space_->fence();
    if (rank_ != root) get(root, bytes);
  }

  void all_reduce(std::span<std::int64_t> values, Fold fold) override {
    ++calls_;
    put(std::as_bytes(values));
    space_->fence();
    std::vector<std::int64_t> theirs(values.size());
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_) continue;
      get(rank, std::as_writable_bytes(std::span(theirs)));
      fold_into(values, theirs, fold);
    }
  }

 private:
  std::string key_of(int rank, std::size_t piece) const {
    return fmt::format("hocket-{}-{}-{}", calls_, rank, piece);
  }
  void put(std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i * kBytesAValue < bytes.size(); ++i) {
      const std::size_t first = i * kBytesAValue;
      space_->put(key_of(rank_, i),
                  digits_of(bytes.subspan(first, std::min(kBytesAValue, bytes.size() - first))));
    }
  }
  void get(int rank, std::span<std::byte> bytes) {
    for (std::size_t i = 0; i * kBytesAValue < bytes.size(); ++i) {
      const std::size_t first = i * kBytesAValue;
      read_digits(space_->get(rank, key_of(rank, i)),
                  bytes.subspan(first, std::min(kBytesAValue, bytes.size() - first)));
    }
  }

  std::unique_ptr<LauncherSpace> space_;
  int rank_;
  int size_;
  int calls_ = 0;
};

bool says_where_to_meet(const InitOptions& options) {
  if (options.rank || options.size || !options.address.empty()) return true;
  for (const char* variable : {"HOCKET_STORE", "HOCKET_RANK", "RANK"}) {
    if (base::environment(variable)) return true;
  }
  return false;
}

}  // namespace

std::unique_ptr<Bootstrap> make_space_bootstrap(std::unique_ptr<LauncherSpace> space,
                                                const LaunchPlace& place) {
  return std::make_unique<SpaceBootstrap>(std::move(space), place);
}

LauncherMeeting find_launcher_meeting(const InitOptions& options) {
  if (says_where_to_meet(options)) return {};
  for (auto* find : {place_from_open_mpi, place_from_mpich, place_from_slurm}) {
    const auto place = find();
    if (!place) continue;
    if (place->size == 1 || place->local_size == place->size) return {};
    auto space = open_pmix_space();
    if (!space) space = open_pmi_space();
    if (!space) return {};
    return {.launcher = place->launcher,
            .bootstrap = make_space_bootstrap(std::move(space), *place)};
  }
  return {};
}

}  // namespace hocket::rendezvous
