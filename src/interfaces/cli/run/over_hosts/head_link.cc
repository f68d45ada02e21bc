#include "interfaces/cli/run/over_hosts/head_link.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <sstream>

namespace hocket::cli {

static constexpr std::size_t kLongestOrder = 4096;

Fd HeadLink::make_input() {
  Pipe pipe = make_pipe();
  ::fcntl(pipe.write.get(), F_SETFL, O_NONBLOCK);
  input_ = std::move(pipe.write);
  return std::move(pipe.read);
}

void HeadLink::add_to(std::vector<pollfd>& wait) const {
  wait.push_back({is_gone_ ? -1 : STDIN_FILENO, POLLIN, 0});
  wait.push_back({for_input_.empty() ? -1 : input_.get(), POLLOUT, 0});
}

std::vector<HeadOrder> HeadLink::move(std::span<const pollfd> answer) {
  std::vector<HeadOrder> orders;
  if (answer[0].revents != 0) read_orders(orders);
  if (answer[1].revents != 0) feed(orders);
  if (!is_gone_ && RunClock::now() >= silent_at_) {
    lose(orders, "the launcher that started this one has been silent for a minute");
  }
  return orders;
}

void HeadLink::read_orders(std::vector<HeadOrder>& orders) {
  std::array<char, 1 << 16> buffer;
  const ssize_t length = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (length <= 0) {
    return lose(orders, "the launcher that started this one has ended, or the way to it");
  }
  if (silent_at_ != RunClock::time_point::max()) silent_at_ = RunClock::now() + kHeadSilence;
  unread_.append(buffer.data(), static_cast<std::size_t>(length));
  while (!is_gone_ && take_order(orders)) {
  }
}

bool HeadLink::take_order(std::vector<HeadOrder>& orders) {
  const std::size_t end = unread_.find('\n');
  if (end == std::string::npos) {
    if (unread_.size() > kLongestOrder)
      lose(orders, "the launcher that started this one talks nonsense");
    return false;
  }
  std::istringstream line(unread_.substr(0, end));
  std::string word;
  std::string text;
  std::size_t number = 0;
  line >> word;
  if (word == "go") {
    line >> text;
    orders.push_back({.kind = HeadOrder::Kind::kGo, .text = text});
  } else if (word == "fail") {
    orders.push_back({.kind = HeadOrder::Kind::kFail});
  } else if (word == "deaf" && line >> number) {
    orders.push_back({.kind = HeadOrder::Kind::kDeaf, .number = static_cast<int>(number)});
  } else if (word == "signal" && line >> number && number < 65) {
    const int signal = static_cast<int>(number);
    if (signal == SIGTSTP) silent_at_ = RunClock::time_point::max();
    if (signal == SIGCONT) silent_at_ = RunClock::now() + kHeadSilence;
    orders.push_back({.kind = HeadOrder::Kind::kSignal, .number = signal});
  } else if (word == "input" && line >> number && number <= kMostInput) {
    if (unread_.size() < end + 1 + number) return false;
    for_input_.append(unread_, end + 1, number);
    input_ends_ |= number == 0;
    unread_.erase(0, number);
    feed(orders);
  } else if (word != "alive") {
    lose(orders, "the launcher that started this one talks nonsense");
  }
  unread_.erase(0, end + 1);
  return true;
}

void HeadLink::feed(std::vector<HeadOrder>& orders) {
  std::size_t taken = 0;
  while (input_.valid() && !for_input_.empty()) {
    const ssize_t written = ::write(input_.get(), for_input_.data(), for_input_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    if (written < 0) {  // rank 0 no longer reads
      input_.reset();
      break;
    }
    taken += static_cast<std::size_t>(written);
    for_input_.erase(0, static_cast<std::size_t>(written));
  }
  if (!input_.valid()) taken += std::exchange(for_input_, {}).size();
  if (input_ends_ && for_input_.empty()) input_.reset();
  if (taken > 0) {
    orders.push_back({.kind = HeadOrder::Kind::kTook, .number = static_cast<int>(taken)});
  }
}

void HeadLink::lose(std::vector<HeadOrder>& orders, const char* why) {
  is_gone_ = true;
  silent_at_ = RunClock::time_point::max();  // otherwise the event loop would not sleep any more
  input_.reset();
  orders.push_back({.kind = HeadOrder::Kind::kGone, .text = why});
}

}  // namespace hocket::cli
