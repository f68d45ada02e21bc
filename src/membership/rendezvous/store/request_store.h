// Implements the operations of a store by requests, for all stores that answer requests.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "hocket/error.h"
#include "membership/rendezvous/store/request.h"

namespace hocket::rendezvous {

// Thrown if some ranks did not come to an exchange or a barrier in time. Its message is for users
// of a store. Other callers make a message of their own from the fields.
class RanksMissing : public RendezvousError {
 public:
  RanksMissing(const std::string& message, std::string who, bool one, std::string others)
      : RendezvousError(message), who_(std::move(who)), one_(one), others_(std::move(others)) {}
  const std::string& who() const noexcept { return who_; }  // "rank 3", "ranks 2, 5 and 97 more"
  bool one() const noexcept { return one_; }
  // Returns a fact about other ranks, such as "rank 0 had given up waiting". Empty if there is
  // none.
  const std::string& others() const noexcept { return others_; }

 private:
  std::string who_;
  bool one_;
  std::string others_;
};

// A store that answers requests. A resource, and an abstract class. Any thread, as for `Store`.
class RequestStore : public Store {
 public:
  void set(std::string_view key, std::span<const std::byte> value) final;
  Bytes get(std::string_view key, Duration timeout) final;
  std::optional<Bytes> try_get(std::string_view key) final;
  void wait(std::span<const std::string> keys, Duration timeout) final;
  std::int64_t add(std::string_view key, std::int64_t amount) final;
  std::optional<Bytes> compare_and_set(std::string_view key,
                                       const std::optional<std::span<const std::byte>>& expected,
                                       std::span<const std::byte> desired) final;
  bool erase(std::string_view key) final;
  std::vector<Bytes> exchange(std::string_view name,
                              int rank,
                              int size,
                              std::span<const std::byte> mine,
                              Duration timeout) final;
  void barrier(std::string_view name, int size, int rank, Duration timeout) final;

 protected:
  // Performs a request, and blocks until the answer. The answer comes at the request's timeout at
  // the latest.
  virtual Reply perform(StoreRequest&& request) = 0;

 private:
  Reply checked(StoreRequest&& request);
};

// The store of a rank that joins a job. It also reports at once if some rank will not come. A
// resource, and an abstract class. `watch` is called first. Only one thread calls `watch` and
// `why_lost`.
class MemberStore : public RequestStore {
 public:
  // Asks the store to report if one of the `size` ranks will not come.
  virtual void watch(int size, Duration timeout) = 0;
  // Returns why not all ranks can join: a rank has ended or failed, or the store is gone. Absent if
  // no reason is known, or if a thread has yet to take an answer. Never waits.
  virtual std::optional<std::string> why_lost() = 0;
  virtual void end_watch() noexcept = 0;
  // Makes the store tell the other ranks that this rank has failed and will not come. Never throws.
  virtual void withdraw(std::string_view reason) noexcept = 0;
};

}  // namespace hocket::rendezvous
