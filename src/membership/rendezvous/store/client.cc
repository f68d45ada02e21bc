// The client's side of an established connection: many threads, one socket, no extra thread.

#include <fmt/format.h>
#include <unistd.h>

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

// Time beyond a request's own timeout, for an answer that names the missing ranks to arrive.
constexpr Duration kGrace = std::chrono::seconds(5);
constexpr Duration kGoodbyeTimeout = std::chrono::seconds(1);

bool may_wait(Op op) noexcept {
  return op == Op::kGet || op == Op::kWait || op == Op::kExchange || op == Op::kBarrier;
}

Duration sum(Duration a, Duration b) noexcept { return a > kForever - b ? kForever : a + b; }

// A resource. One of the threads that wait for an answer works the socket for all.
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
      // The store is gone, and the claim with it.
    }
    const std::scoped_lock lock(mutex_);
    fail(fmt::format("this client of the store at {} has been closed", address_));
    if (is_worked_) wakeup_.notify();
  }

  void watch(int size, Duration timeout) override {
    const std::scoped_lock lock(mutex_);
    watch_ = begin({.op = Op::kWatch, .timeout = timeout, .size = size}).slot;
    if (!address_.starts_with("unix:")) return;
    const pid_t pid = os::peer_credentials(channel_->fd()).pid;
    if (pid != ::getpid()) server_.emplace(pid, os::process_start(pid));
  }

  void end_watch() noexcept override {
    const std::scoped_lock lock(mutex_);
    watch_.reset();
    server_.reset();
  }

  std::optional<std::string> why_lost() override {
    const std::scoped_lock lock(mutex_);
    if (!is_worked_ && failure_.empty()) move();
    if (watch_ && *watch_ && (*watch_)->code == ReplyCode::kRefused) return (*watch_)->text;
    if (!failure_.empty()) return failure_;
    return std::nullopt;
  }

  void withdraw(std::string_view reason) noexcept override {
    try {
      StoreRequest request{.op = Op::kWithdraw};
      request.value = to_bytes(fmt::format("failed in init ({})", reason));
      ask(std::move(request), Deadline::in(kGoodbyeTimeout), Interrupts::kIgnored);
    } catch (const std::exception&) {
      // The store is gone, and the others hear that.
    }
  }

 protected:
  Reply perform(StoreRequest&& request) override {
    const Duration limit = may_wait(request.op) ? sum(request.timeout, kGrace) : timeout_;
    return ask(std::move(request), Deadline::in(limit), Interrupts::kAskedFor);
  }

 private:
  using Slot = std::shared_ptr<std::optional<Reply>>;
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

  struct Asked {
    std::uint32_t id;
    Slot slot;
  };
  // With the lock held.
  Asked begin(const StoreRequest& request) {
    const Asked asked{.id = next_id_++, .slot = std::make_shared<std::optional<Reply>>()};
    if (failure_.empty()) {
      to_send_.push_back(encode_request(asked.id, request));
      asked_.emplace(asked.id, asked.slot);
      send_some();
    }
    // The thread that works the socket must learn that there is more to send.
    if (!to_send_.empty() && is_worked_) wakeup_.notify();
    return asked;
  }

  // No other thread depends on this one now: the one that worked the socket notified the others
  // when it stopped.
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

  // Waits for the socket, once, without the lock; then sends and receives all that it can.
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
      // A late answer to a thread that gave up is dropped.
      if (const auto found = asked_.find(parsed->id); found != asked_.end()) {
        *found->second = std::move(parsed->reply);
      }
      taken += frame.size;
    }
    received_.erase(received_.begin(), received_.begin() + static_cast<long>(taken));
    return true;
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
  std::mutex mutex_;  // guards all below, and the channel but for waiting
  std::condition_variable changed_;
  bool is_worked_ = false;
  std::string failure_;  // once set, nothing works any more
  std::uint32_t next_id_ = 1;
  std::map<std::uint32_t, Slot> asked_;
  Slot watch_;                             // null: nothing is watched
  std::optional<os::ProcessExit> server_;  // while it is watched, where it is on this host
  std::deque<Bytes> to_send_;
  std::size_t sent_ = 0;  // of the first
  Bytes received_;
};

}  // namespace

std::shared_ptr<MemberStore> make_client(Established established,
                                         const StoreClientOptions& options) {
  return std::make_shared<Client>(std::move(established), options);
}

}  // namespace hocket::rendezvous
