// A launcher's link to the head that started it on this host. The orders and notices are in
// hosts/briefing.h.
#pragma once

#include <poll.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hocket/run_clock.h"
#include "interfaces/cli/fd.h"
#include "interfaces/cli/hosts/briefing.h"

namespace hocket::cli {

// An order from the head. A value.
struct HeadOrder {
  enum class Kind {
    kGo,      // text: the address where the hosts meet
    kSignal,  // number: for the ranks
    kFail,    // a rank of another host has failed
    kDeaf,    // number: the output, 1 or 2, that nobody reads any more
    kGone,    // the head has gone, is silent, or sent an invalid order. text: which of these
    kTook,    // number: bytes that rank 0 has taken, which the head wants to know
  };
  Kind kind;
  int number = 0;
  std::string text;
};

// A resource: reads orders from standard input, and passes rank 0's input on. One thread.
class HeadLink {
 public:
  explicit HeadLink(const Briefing& briefing) : token_(briefing.token) {}

  // Makes rank 0's standard input. Returns the end that it reads.
  Fd make_input();

  // An event loop polls the descriptors that `add_to` adds. It passes the result to `move`, which
  // returns the orders that came.
  static constexpr std::size_t kDescriptors = 2;
  void add_to(std::vector<pollfd>& wait) const;
  std::vector<HeadOrder> move(std::span<const pollfd> answer);
  // Returns when the head counts as gone unless it sends something before. The maximum if the head
  // may be silent because the job is stopped, or if it has already gone.
  RunClock::time_point silent_at() const noexcept { return silent_at_; }

  std::string notice(std::string_view text) const { return cli::notice(token_, text); }

 private:
  void read_orders(std::vector<HeadOrder>& orders);
  // Takes one order from the bytes that were read. Returns false if it is incomplete.
  bool take_order(std::vector<HeadOrder>& orders);
  void feed(std::vector<HeadOrder>& orders);
  void lose(std::vector<HeadOrder>& orders, const char* why);

  std::string token_;
  std::string unread_;  // the beginning of an order
  Fd input_;            // rank 0's
  std::string for_input_;
  bool input_ends_ = false;
  bool is_gone_ = false;
  RunClock::time_point silent_at_ = RunClock::now() + kHeadSilence;
};

}  // namespace hocket::cli
