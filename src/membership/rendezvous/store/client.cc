// The client of a store, once its connection is established. Many threads share one socket, and
// there is no extra thread.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "foundation/base/deadline.h"
#include "foundation/base/interrupt.h"
#include "foundation/os/process/process_exit.h"
#include "foundation/os/process/process_facts.h"
#include "foundation/os/sockets/peer_credentials.h"
#include "foundation/os/wakeup.h"
#include "hocket/error.h"
#include "membership/rendezvous/store/request_store.h"
#include "membership/rendezvous/wire/channel.h"
#include "membership/rendezvous/wire/establish.h"
#include "membership/rendezvous/wire/wire.h"

namespace hocket::rendezvous {
namespace {

using base::Deadline;

// The time beyond a request's own timeout in which an answer may still arrive. Such an answer names
// the missing ranks.
constexpr Duration kGrace = std::chrono::seconds(5);
constexpr Duration kGoodbyeTimeout = std::chrono::seconds(1);

bool may_wait(Op op) noexcept {
  return op == Op::kGet || op == Op::kWait || op == Op::kExchange || op == Op::kBarrier;
}

Duration sum(Duration a, Duration b) noexcept { return a > kForever - b ? kForever : a + b; }

// A client of a store. A resource. One of the waiting threads sends and receives for all others.
class Client final : public MemberStore {
 public:
  Client(Established established, const StoreClientOptions& options)
      : channel_(std::move(established.channel)),
        server_rank_(established.server_rank),
        address_(options.address),
        timeout_(options.timeout) {}

  void close() noexcept override {
    try {
      ask({.op = Op::kGoodbye}, Deadline::in(kGoodbyeTimeout), Interrupts::kIgnored);
    } catch (const std::exception&) {
      // The store is gone, so there is no claim of this rank to withdraw.
    }
    const std::scoped_lock lock(mutex_);
    fail(fmt::format("this client of the store at {} has been closed", address_));
    if (is_worked_) wakeup_.notify();
  }

  void watch(int size, Duration timeout) override {
    const std::scoped_lock lock(mutex_);
    watch_ = begin({.op = Op::kWatch, .timeout = timeout, .size = size});
    if (!address_.starts_with("unix:")) return;
    const pid_t pid = os::peer_credentials(channel_->fd()).pid;
    if (pid != ::getpid()) server_.emplace(pid, os::process_start(pid));
  }

  void end_watch() noexcept override {
    const std::scoped_lock lock(mutex_);
    if (watch_) asked_.erase(watch_->id);
    watch_.reset();
    server_.reset();
  }

  std::optional<std::string> why_lost() override {
    const std::scoped_lock lock(mutex_);
    if (!is_worked_ && failure_.empty()) move();
    if (has_untaken_answer()) return std::nullopt;
    if (watch_ && *watch_->slot && (*watch_->slot)->code == ReplyCode::kRefused) {
      return (*watch_->slot)->text;
    }
    if (!failure_.empty()) return failure_;
    return std::nullopt;
  }

  void withdraw(std::string_view reason) noexcept override {
    try {
      StoreRequest request{.op = Op::kWithdraw};
      request.value = to_bytes(fmt::format("failed in init ({})", reason));
      ask(std::move(request), Deadline::in(kGoodbyeTimeout), Interrupts::kIgnored);
    } catch (const std::exception&) {
      // The store is gone. The other ranks notice this themselves.
    }
  }

 protected:
  Reply perform(StoreRequest&& request) override {
    const Duration limit = may_wait(request.op) ? sum(request.timeout, kGrace) : timeout_;
    return ask(std::move(request), Deadline::in(limit), Interrupts::kAskedFor);
  }

 private:
  using Slot = std::shared_ptr<std::optional<Reply>>;
  struct Asked {
    std::uint32_t id;
    Slot slot;
  };
  enum class Interrupts : std::uint8_t { kAskedFor, kIgnored };

  Reply ask(StoreRequest&& request, Deadline deadline, Interrupts interrupts) {
    std::unique_lock lock(mutex_);
    const auto [id, slot] = begin(request);
    while (!*slot && failure_.empty()) {
      if (deadline.has_passed()) {
        asked_.erase(id);
        throw RendezvousError(fmt::format(
            "the store at {} does not answer; its process or host may be stopped", address_));
      }
      const Deadline until = base::until_asked(deadline);
      if (is_worked_) {
        wait_for_change(lock, until);
      } else {
        work(lock, until);
      }
      if (interrupts == Interrupts::kAskedFor && until.has_passed()) look_for_interrupt(lock, id);
    }
    asked_.erase(id);
    if (!*slot) throw RendezvousError(failure_);
    return std::move(**slot);
  }

  // Sends a request, or queues it if the socket is full. The caller holds the lock.
  Asked begin(const StoreRequest& request) {
    const Asked asked{.id = next_id_++, .slot = std::make_shared<std::optional<Reply>>()};
    if (failure_.empty()) {
      to_send_.push_back(encode_request(asked.id, request));
      asked_.emplace(asked.id, asked.slot);
      send_some();
    }
    // Wake the thread that serves the socket, so that it waits until it can send the rest.
    if (!to_send_.empty() && is_worked_) wakeup_.notify();
    return asked;
  }

  // Throws Aborted if the user interrupts the wait. Another thread can serve the socket meanwhile.
  void look_for_interrupt(std::unique_lock<std::mutex>& lock, std::uint32_t id) {
    lock.unlock();
    try {
      base::throw_if_interrupted(fmt::format("the wait at the store at {}", address_));
    } catch (...) {
      lock.lock();
      asked_.erase(id);
      throw;
    }
    lock.lock();
  }

  void wait_for_change(std::unique_lock<std::mutex>& lock, Deadline deadline) {
    if (deadline.is_never()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, deadline.when());
    }
  }

  // Waits for the socket once, without holding the lock. Then sends and receives as much as
  // possible.
  void work(std::unique_lock<std::mutex>& lock, Deadline deadline) {
    const os::Wakeup::Interest interest{.fd = channel_->fd(), .write = !to_send_.empty()};
    is_worked_ = true;
    lock.unlock();
    wakeup_.wait(interest, deadline);
    lock.lock();
    is_worked_ = false;
    move();
  }

  void move() {
    if (failure_.empty()) receive_some();
    if (failure_.empty()) send_some();
    changed_.notify_all();
  }

  void send_some() {
    while (!to_send_.empty()) {
      const auto rest = std::span<const std::byte>(to_send_.front()).subspan(sent_);
      const auto [state, bytes] = channel_->send(rest);
      if (state == Channel::State::kClosed) return fail_gone();
      if (state != Channel::State::kMoved) return;
      sent_ += bytes;
      if (bytes < rest.size()) continue;
      to_send_.pop_front();
      sent_ = 0;
    }
  }

  void receive_some() {
    std::array<std::byte, 32768> chunk;
    for (;;) {
      const auto [state, bytes] = channel_->receive(chunk);
      if (state == Channel::State::kClosed) return fail_gone();
      if (state != Channel::State::kMoved) return;
      received_.insert(received_.end(), chunk.begin(), chunk.begin() + static_cast<long>(bytes));
      if (!take_replies()) return fail(fmt::format("the store at {} talks nonsense", address_));
    }
  }

  bool take_replies() {
    std::size_t taken = 0;
    for (;;) {
      const Frame frame =
          parse_frame(std::span<const std::byte>(received_).subspan(taken), kMaxPayload);
      if (frame.state == Frame::State::kTooLong) return false;
      if (frame.state == Frame::State::kIncomplete) break;
      auto parsed = parse_reply(frame.payload);
      if (!parsed) return false;
      // If the thread that asked has given up, its late answer is dropped.
      if (const auto found = asked_.find(parsed->id); found != asked_.end()) {
        *found->second = std::move(parsed->reply);
      }
      taken += frame.size;
    }
    received_.erase(received_.begin(), received_.begin() + static_cast<long>(taken));
    return true;
  }

  // Returns whether some thread has yet to take an answer. The store answers in the order in which
  // it learns of events. So this answer may name the cause of a loss that is reported after it.
  bool has_untaken_answer() const {
    return std::ranges::any_of(asked_, [this](const auto& asked) {
      const auto& [id, slot] = asked;
      return slot->has_value() && !(watch_ && watch_->id == id);
    });
  }

  void fail_gone() {
    std::string how = "has ended or closed the connection";
    if (server_) {
      const auto answer = server_->ask();
      if (answer.state == os::ProcessExit::State::kKnown) how = os::describe_end(answer.status);
    }
    const std::string who = server_rank_ < 0 ? "its process" : fmt::format("rank {}", server_rank_);
    fail(fmt::format("the store at {} is gone: {} {}", address_, who, how));
  }

  void fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
    to_send_.clear();
    changed_.notify_all();
  }

  const std::unique_ptr<Channel> channel_;
  const int server_rank_;
  const std::string address_;
  const RunClock::Watch clock_watch_;
  const Duration timeout_;
  os::Wakeup wakeup_;
  std::mutex mutex_;  // guards the members below, and the channel except during waits
  std::condition_variable changed_;
  bool is_worked_ = false;
  std::string failure_;  // if set, every request fails with it
  std::uint32_t next_id_ = 1;
  std::map<std::uint32_t, Slot> asked_;
  std::optional<Asked> watch_;             // absent: this client watches no ranks
  std::optional<os::ProcessExit> server_;  // the server's process, if on this host, during a watch
  std::deque<Bytes> to_send_;
  std::size_t sent_ = 0;  // how many bytes of the first request in to_send_ are sent
  Bytes received_;
};

}  // namespace

std::shared_ptr<MemberStore> make_client(Established established,
                                         const StoreClientOptions& options) {
  return std::make_shared<Client>(std::move(established), options);
}

}  // namespace hocket::rendezvous
