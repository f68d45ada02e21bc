#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "hocket/bootstrap.h"
#include "hocket/error.h"

namespace hocket {
namespace {

// A bootstrap over a store. All its operations are exchanges, because set-up makes only few and
// small ones.
class StoreBootstrap final : public Bootstrap {
 public:
  StoreBootstrap(std::shared_ptr<Store> store, int rank, int size, Duration timeout)
      : store_(std::move(store)), rank_(rank), size_(size), timeout_(timeout) {
    if (size < 1 || rank < 0 || rank >= size) {
      throw InvalidArgument(fmt::format(
          "make_store_bootstrap was given rank {} of {}; ranks go from 0 to size - 1", rank, size));
    }
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void broadcast(std::span<std::byte> bytes, int root) override {
    const bool own = root == rank_;
    const auto all = store_->exchange(
        "bootstrap/broadcast", rank_, size_, own ? bytes : std::span<std::byte>{}, timeout_);
    const Bytes& from = all[static_cast<std::size_t>(root)];
    require(from.size() == bytes.size(), root);
    if (!own && !bytes.empty()) std::memcpy(bytes.data(), from.data(), bytes.size());
  }

  void all_reduce(std::span<std::int64_t> values, Fold fold) override {
    const auto all =
        store_->exchange("bootstrap/all_reduce", rank_, size_, std::as_bytes(values), timeout_);
    std::vector<std::int64_t> theirs(values.size());
    for (int rank = 0; rank < size_; ++rank) {
      const Bytes& from = all[static_cast<std::size_t>(rank)];
      require(from.size() == values.size_bytes(), rank);
      if (rank == rank_ || values.empty()) continue;
      std::memcpy(theirs.data(), from.data(), from.size());
      fold_into(values, theirs, fold);
    }
  }

 private:
  static void require(bool right, int rank) {
    if (right) return;
    throw RendezvousError(fmt::format(
        "rank {} brought another number of bytes to a bootstrap's call; is it running the same "
        "version of hocket?",
        rank));
  }

  std::shared_ptr<Store> store_;
  int rank_;
  int size_;
  Duration timeout_;
};

}  // namespace

std::unique_ptr<Bootstrap> make_store_bootstrap(std::shared_ptr<Store> store,
                                                int rank,
                                                int size,
                                                Duration timeout) {
  return std::make_unique<StoreBootstrap>(std::move(store), rank, size, timeout);
}

}  // namespace hocket
