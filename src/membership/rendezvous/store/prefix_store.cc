#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hocket/error.h"
#include "hocket/store.h"

namespace hocket {
namespace rendezvous {
namespace {

// A part of another store: all its keys have a prefix. A resource. It keeps the other store alive,
// and leaves it open when it is closed.
class PrefixStore final : public Store {
 public:
  PrefixStore(std::shared_ptr<Store> store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix)) {
    if (!store_) throw InvalidArgument("make_prefix_store: the store is null");
  }

  void set(std::string_view key, std::span<const std::byte> value) override {
    store_->set(full(key), value);
  }
  Bytes get(std::string_view key, Duration timeout) override {
    return store_->get(full(key), timeout);
  }
  std::optional<Bytes> try_get(std::string_view key) override { return store_->try_get(full(key)); }
  void wait(std::span<const std::string> keys, Duration timeout) override {
    std::vector<std::string> all;
    for (const auto& key : keys) all.push_back(full(key));
    store_->wait(all, timeout);
  }
  std::int64_t add(std::string_view key, std::int64_t amount) override {
    return store_->add(full(key), amount);
  }
  std::optional<Bytes> compare_and_set(std::string_view key,
                                       const std::optional<std::span<const std::byte>>& expected,
                                       std::span<const std::byte> desired) override {
    return store_->compare_and_set(full(key), expected, desired);
  }
  bool erase(std::string_view key) override { return store_->erase(full(key)); }
  std::vector<Bytes> exchange(std::string_view name,
                              int rank,
                              int size,
                              std::span<const std::byte> mine,
                              Duration timeout) override {
    return store_->exchange(full(name), rank, size, mine, timeout);
  }
  void barrier(std::string_view name, int size, int rank, Duration timeout) override {
    store_->barrier(full(name), size, rank, timeout);
  }

 private:
  std::string full(std::string_view key) const {
    if (key.empty()) throw InvalidArgument("a store's key has at least 1 byte, this one none");
    return prefix_ + std::string(key);
  }

  std::shared_ptr<Store> store_;
  std::string prefix_;
};

}  // namespace
}  // namespace rendezvous

std::shared_ptr<Store> make_prefix_store(std::shared_ptr<Store> store, std::string prefix) {
  return std::make_shared<rendezvous::PrefixStore>(std::move(store), std::move(prefix));
}

}  // namespace hocket
