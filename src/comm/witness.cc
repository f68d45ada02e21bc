#include "comm/witness.h"

#include <algorithm>

namespace hocket::comm {
namespace {

constexpr int kWitnesses = 4;  // of each rank, so that a few deaths at once leave one
// Errors wait 2 ms for what is learnt here. An end that is not known a while later never will be:
// the process lives on, as another program.
constexpr std::chrono::microseconds kEagerly{50};
constexpr std::chrono::milliseconds kPatiently{20};
constexpr std::chrono::seconds kLongest{60};

}  // namespace

void Witness::look() {
  next_ = base::Deadline::never();
  if (!met_) meet();
  for (std::size_t i = 0; i < watched_.size();) {
    const int rank = watched_[i].rank;
    const bool goes_on = host_.state(rank) != control::RankState::kDied ||
                         (!host_.has_end(rank) && look_at(watched_[i]));
    if (goes_on) {
      ++i;
    } else {
      watched_.erase(watched_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

// Once all have arrived: before, there is nobody to know.
void Witness::meet() {
  const int ranks = host_.ranks();
  for (int rank = 0; rank < ranks; ++rank) {
    if (host_.state(rank) == control::RankState::kAbsent) return;
  }
  met_ = true;
  for (int i = 1; i <= std::min(kWitnesses, ranks - 1); ++i) {
    const int rank = (host_.self() + i) % ranks;
    watched_.push_back({rank, os::ProcessExit(host_.pid(rank), host_.start(rank)), std::nullopt});
  }
}

bool Witness::look_at(Watched& watched) {
  using State = os::ProcessExit::State;
  const auto answer = watched.process.ask();
  if (answer.state == State::kKnown) host_.record_end(watched.rank, answer.status);
  if (!watched.give_up) watched.give_up = base::Deadline::in(kLongest);
  if (answer.state != State::kNotYet || watched.give_up->has_passed()) return false;
  const bool eager = watched.give_up->left() > kLongest - std::chrono::milliseconds(3);
  next_ = std::min(next_, base::Deadline::in(eager ? Duration(kEagerly) : Duration(kPatiently)));
  return true;
}

}  // namespace hocket::comm
