#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "foundation/base/deadline.h"
#include "foundation/base/log.h"
#include "foundation/base/threads.h"
#include "foundation/os/segment_holders.h"
#include "foundation/os/sockets/socket.h"
#include "foundation/os/wakeup.h"
#include "hocket/error.h"
#include "hocket/live.h"
#include "monitoring/live/metrics_setting.h"

namespace hocket {
namespace {

using base::Deadline;

constexpr std::size_t kMostReaders = 64;
constexpr int kAcceptedAtOnce = 16;  // before the clients already connected are served
constexpr std::size_t kMostRequestBytes = 8192;
constexpr std::chrono::seconds kPatience{5};        // time limit of a reader
constexpr std::chrono::milliseconds kLook{100};     // between two looks at the job
constexpr std::chrono::milliseconds kSearch{1000};  // between two searches for the job

// Compares in a time that does not depend on the characters, so that it cannot leak the token.
bool is_same(std::string_view a, std::string_view b) noexcept {
  unsigned char differs = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    differs |= static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return differs == 0;
}

// Returns the value of a header; `name` is in lower case. Empty if the header is absent.
std::string header_of(std::string_view request, std::string_view name) {
  for (std::size_t at = request.find("\r\n"); at != std::string_view::npos;
       at = request.find("\r\n", at)) {
    at += 2;
    const std::string_view line = request.substr(at, request.find("\r\n", at) - at);
    const auto colon = line.find(':');
    if (colon != name.size()) continue;
    std::string lower(line.substr(0, colon));
    std::ranges::transform(lower, lower.begin(), [](char each) {
      return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
    });
    if (lower != name) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string_view::npos ? std::string() : std::string(line.substr(begin));
  }
  return {};
}

std::string answer(std::string_view status, std::string_view type, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
      status,
      type,
      body.size(),
      body);
}

// A resource: a connected client.
struct MetricsReader {
  os::Fd socket;
  Deadline until = Deadline::in(kPatience);
  std::string request = {};
  std::string reply = {};
  std::size_t sent = 0;
  bool gone = false;
};

}  // namespace

class MetricsServer::Impl {
 public:
  explicit Impl(const Options& options) : options_(options) {
    const os::HostPort where = live::checked_metrics_address(options.address, options.token);
    listener_ = os::listen_tcp(where);
    address_ = os::to_string({.host = where.host, .port = os::local_port(listener_.get())});
    thread_ = base::start_thread("hocket-metrics", [this] { run(); });
  }
  ~Impl() {
    stop_.store(true, std::memory_order_release);
    wakeup_.notify();
    thread_.join();
  }
  const std::string& address() const noexcept { return address_; }

 private:
  void run() {
    while (!stop_.load(std::memory_order_acquire)) {
      try {
        turn();
      } catch (const std::exception& error) {
        readers_.clear();
        base::log(base::LogLevel::kInfo, fmt::format("metrics: {}", error.what()));
      }
    }
  }

  void turn() {
    find_job();
    if (view_) view_->look();
    std::vector<pollfd> polls{{wakeup_.fd(), POLLIN, 0}};
    polls.push_back({listener_.get(), POLLIN, 0});
    for (const MetricsReader& reader : readers_) {
      polls.push_back(
          {reader.socket.get(), static_cast<short>(reader.reply.empty() ? POLLIN : POLLOUT), 0});
    }
    ::poll(polls.data(), polls.size(), static_cast<int>(kLook.count()));
    wakeup_.take();
    for (int i = 0; i < kAcceptedAtOnce; ++i) {
      os::Fd socket = os::accept_pending(listener_.get());
      if (!socket) break;
      if (readers_.size() >= kMostReaders) drop_oldest();
      readers_.push_back({.socket = std::move(socket)});
    }
    for (MetricsReader& reader : readers_) serve(reader);
    std::erase_if(readers_, [](const MetricsReader& reader) { return reader.gone; });
  }

  // Makes room for a new client: drops an idle connection, or else one with a request.
  void drop_oldest() {
    const auto asks_for_nothing = [](const MetricsReader& reader) { return reader.reply.empty(); };
    const auto oldest = std::ranges::find_if(readers_, asks_for_nothing);
    readers_.erase(oldest == readers_.end() ? readers_.begin() : oldest);
  }

  void find_job() {
    if (!next_search_.has_passed()) return;
    next_search_ = Deadline::in(kSearch);
    if (view_ && view_->lives()) return;
    view_.reset();
    FoundJob sought{.pid = options_.pid, .memory = options_.memory};
    if (sought.pid == 0) {
      for (const FoundJob& job : find_jobs()) {
        if (job.name != options_.job || !job.refusal.empty()) continue;
        // Prefer a job of processes: its ranks may themselves run jobs of threads of the same name.
        if (sought.pid == 0 || sought.threads) sought = job;
      }
    }
    if (sought.pid == 0) return;
    try {
      view_ = JobView::open(sought);
    } catch (const Error& error) {
      base::log(base::LogLevel::kInfo, fmt::format("metrics: {}", error.what()));
    }
  }

  void serve(MetricsReader& reader) {
    if (reader.until.has_passed()) reader.gone = true;
    if (!reader.gone && reader.reply.empty()) read_some(reader);
    if (!reader.gone && !reader.reply.empty()) write_some(reader);
  }

  void read_some(MetricsReader& reader) {
    std::array<char, 2048> bytes;
    const ssize_t length = ::recv(reader.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (length <= 0 || reader.request.size() > kMostRequestBytes) {
      reader.gone = true;
      return;
    }
    reader.request.append(bytes.data(), static_cast<std::size_t>(length));
    if (reader.request.find("\r\n\r\n") != std::string::npos)
      reader.reply = reply_to(reader.request);
  }

  void write_some(MetricsReader& reader) {
    const std::string_view rest = std::string_view(reader.reply).substr(reader.sent);
    const ssize_t length =
        ::send(reader.socket.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (length > 0) reader.sent += static_cast<std::size_t>(length);
    reader.gone = length <= 0 || reader.sent == reader.reply.size();
  }

  std::string reply_to(std::string_view request) {
    constexpr std::string_view kPlain = "text/plain; charset=utf-8";
    const std::string_view line = request.substr(0, request.find("\r\n"));
    const std::string_view method = line.substr(0, line.find(' '));
    std::string_view path = line.substr(std::min(line.size(), method.size() + 1));
    path = path.substr(0, path.find_first_of(" ?"));
    if (!options_.token.empty() &&
        !is_same(header_of(request, "authorization"), "Bearer " + options_.token)) {
      return answer("401 Unauthorized\r\nWWW-Authenticate: Bearer", kPlain, "a token is needed\n");
    }
    if (method != "GET") return answer("405 Method Not Allowed", kPlain, "GET alone\n");
    if (path != "/metrics" && path != "/") {
      return answer("404 Not Found", kPlain, "see /metrics\n");
    }
    if (!view_) return answer("503 Service Unavailable", kPlain, "the job is not there\n");
    const bool open =
        header_of(request, "accept").find("application/openmetrics-text") != std::string::npos;
    LiveJob job = view_->report({.processes = false});
    if (options_.store_clients) job.store_clients = options_.store_clients();
    return open ? answer("200 OK",
                         "application/openmetrics-text; version=1.0.0; charset=utf-8",
                         metrics_text(job, MetricsForm::kOpenMetrics))
                : answer("200 OK",
                         "text/plain; version=0.0.4; charset=utf-8",
                         metrics_text(job, MetricsForm::kPrometheus));
  }

  const Options options_;
  os::Fd listener_;
  std::string address_;
  os::Wakeup wakeup_;
  std::atomic<bool> stop_{false};
  // Used by the serving thread alone.
  std::optional<JobView> view_;
  Deadline next_search_ = Deadline::in(Duration::zero());
  std::vector<MetricsReader> readers_;
  std::thread thread_;  // last member, because the thread uses the members above
};

MetricsServer::MetricsServer(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
MetricsServer::MetricsServer(MetricsServer&&) noexcept = default;
MetricsServer& MetricsServer::operator=(MetricsServer&&) noexcept = default;
MetricsServer::~MetricsServer() = default;
std::string MetricsServer::address() const { return impl_->address(); }

namespace live {

std::unique_ptr<MetricsServer> serve_metrics(
    const os::Segment& segment, std::function<std::optional<std::size_t>()> store_clients) {
  const MetricsSetting setting = metrics_setting();
  if (setting.address.empty()) return nullptr;
  try {
    return std::make_unique<MetricsServer>(
        MetricsServer::Options{.address = setting.address,
                               .token = setting.token,
                               .pid = static_cast<int>(getpid()),
                               .memory = os::number_of(segment),
                               .store_clients = std::move(store_clients)});
  } catch (const Error& error) {
    base::log(base::LogLevel::kWarning, fmt::format("metrics are not served: {}", error.what()));
    return nullptr;
  }
}

}  // namespace live
}  // namespace hocket
