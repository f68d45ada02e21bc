// Messages and receives match in MPI's order. Messages of one sender and tag match in the order of
// sending, each with the first receive that accepts it.
#include "engine/keyed_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <random>

namespace hocket::engine {
namespace {

// Both sides as plain lists that are searched from the front.
struct Lists {
  std::deque<std::pair<Envelope, int>> receives;
  std::deque<std::pair<Tag, int>> unexpected;

  std::optional<int> take_receive(int source, Tag tag) {
    for (auto at = receives.begin(); at != receives.end(); ++at) {
      if (!is_for(at->first, source, tag)) continue;
      const int found = at->second;
      receives.erase(at);
      return found;
    }
    return std::nullopt;
  }
  std::optional<int> take_early(Tag wanted) {
    for (auto at = unexpected.begin(); at != unexpected.end(); ++at) {
      if (!is_for({.peer = 0, .tag = wanted}, 0, at->first)) continue;
      const int found = at->second;
      unexpected.erase(at);
      return found;
    }
    return std::nullopt;
  }
};

template <typename Queue, typename Entry>
std::optional<int> take(Queue& queue, Entry* found) {
  if (found == nullptr) return std::nullopt;
  return queue.pop(*found);
}

class KeyedQueueTest : public testing::TestWithParam<int> {
 protected:
  int pick(int n) { return std::uniform_int_distribution<>(0, n - 1)(random_); }
  // Few or many tags; some of hocket's own.
  Tag pick_tag() {
    const int tag = pick(GetParam());
    return tag % 5 == 4 ? kCallTag + static_cast<Tag>(tag) : static_cast<Tag>(tag);
  }

  std::mt19937 random_{7};
  Lists lists_;
};

TEST_P(KeyedQueueTest, AMessageFindsTheFirstReceiveThatTakesIt) {
  Receives<int> queue;
  for (int i = 0; i < 20'000; ++i) {
    switch (pick(i < 10'000 ? 3 : 5)) {  // first more come, then more go
      case 0:
      case 1: {
        const Envelope wanted{.peer = pick(4) == 0 ? kAnyPeer : pick(3),
                              .tag = pick(4) == 0 ? kAnyTag : pick_tag()};
        queue.push(wanted, i);
        lists_.receives.emplace_back(wanted, i);
        break;
      }
      default: {
        const int source = pick(3);
        const Tag tag = pick_tag();
        ASSERT_EQ(take(queue, queue.find(source, tag)), lists_.take_receive(source, tag)) << i;
      }
    }
    if (pick(50) == 0 && !lists_.receives.empty()) {  // one is taken back
      const auto at = lists_.receives.begin() + pick(static_cast<int>(lists_.receives.size()));
      queue.erase(at->second);
      lists_.receives.erase(at);
    }
    ASSERT_EQ(queue.empty(), lists_.receives.empty());
  }
}

TEST_P(KeyedQueueTest, AReceiveFindsTheFirstMessageThatItTakes) {
  UnexpectedMessages<int> queue;
  for (int i = 0; i < 20'000; ++i) {
    if (pick(i < 10'000 ? 3 : 5) < 2) {
      const Tag tag = pick_tag();
      queue.push(tag, i);
      lists_.unexpected.emplace_back(tag, i);
    } else {
      const Tag wanted = pick(4) == 0 ? kAnyTag : pick_tag();
      ASSERT_EQ(take(queue, queue.find(wanted)), lists_.take_early(wanted)) << i;
    }
    ASSERT_EQ(queue.empty(), lists_.unexpected.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Tags, KeyedQueueTest, testing::Values(1, 7, 5'000));

}  // namespace
}  // namespace hocket::engine
