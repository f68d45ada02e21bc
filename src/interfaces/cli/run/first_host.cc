#include "interfaces/cli/run/first_host.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <chrono>
#include <cstdint>

#include "hocket/error.h"
#include "hocket/run_clock.h"

namespace hocket::cli {
namespace {

constexpr const char* kNews = "launcher/news";  // init knows it, too
constexpr const char* kListeners = "launcher/listeners";
constexpr const char* kEndedWell = "ended";
constexpr const char* kFailed = "failed";
constexpr std::chrono::seconds kForTheStore{10};
constexpr std::chrono::seconds kForListeners{2};

}  // namespace

FirstHost::FirstHost(const RunOptions& options, const Key& key, const std::string& job, int size)
    : store_(connect_store({.address = options.rendezvous,
                            .key = key,
                            .job = job,
                            .rank = options.node_rank,
                            .size = size,
                            .role = StoreRole::kLauncher,
                            .timeout = kForTheStore})),
      address_(options.rendezvous),
      gone_(checked_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "cannot make an eventfd")) {
  store_->add(kListeners, 1);
  thread_ = std::thread([this] { listen(); });
}

FirstHost::~FirstHost() {
  store_->close();  // ends the thread's wait
  thread_.join();
}

void FirstHost::listen() noexcept {
  try {
    if (to_string(store_->get(kNews, kForever)) != kFailed) return;
    why_ = "the first host's launcher has ended in failure";
  } catch (const std::exception&) {
    why_ = fmt::format("the first host's launcher, which serves {}, has ended or cannot be reached",
                       address_);
  }
  why_ += ", and not all ranks had joined";
  const std::uint64_t one = 1;
  static_cast<void>(::write(gone_.get(), &one, sizeof one));
}

void tell_end(const RunOptions& options,
              const Key& key,
              const std::string& job,
              bool failed) noexcept {
  try {
    const auto store = connect_store({.address = options.rendezvous,
                                      .key = key,
                                      .job = job,
                                      .role = StoreRole::kObserver,
                                      .timeout = kForListeners});
    const auto before =
        store->compare_and_set(kNews, std::nullopt, as_bytes(failed ? kFailed : kEndedWell));
    const auto until = RunClock::now() + kForListeners;
    while (!before && store->add(kListeners, 0) < options.nodes - 1 && RunClock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    store->close();
  } catch (const std::exception&) {
    // If this fails, the others notice that the store is gone.
  }
}

}  // namespace hocket::cli
