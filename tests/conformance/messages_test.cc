// Messages between two ranks, over every engine that carries them: pairing by peer, tag and order.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "cases.h"

namespace hocket::conformance {
namespace {

using engine::Envelope;
using engine::MessageId;

class Messages : public testing::TestWithParam<std::tuple<std::size_t, int>> {
 protected:
  void SetUp() override {
    if (!engine_case().has_messages) GTEST_SKIP() << "this engine carries no messages";
  }
  const EngineCase& engine_case() const { return engine_cases()[std::get<0>(GetParam())]; }
  int ranks() const { return std::get<1>(GetParam()); }
  void run(const Body& body) { EXPECT_EQ(engine_case().run(ranks(), body), ""); }
};

using Words = std::vector<std::uint64_t>;

std::span<const std::byte> bytes_of(const Words& words) { return std::as_bytes(std::span(words)); }
std::span<std::byte> bytes_of(Words& words) { return std::as_writable_bytes(std::span(words)); }

Envelope envelope(int peer, std::uint64_t tag, std::size_t count) {
  return {.peer = peer, .tag = tag, .dtype = DType::kUInt64, .count = count};
}

// The words of message `number` from `source`; no two messages are alike.
Words message(int source, int destination, std::uint64_t number, std::size_t count) {
  Words words(count);
  const auto from = static_cast<std::uint64_t>(source),
             to = static_cast<std::uint64_t>(destination);
  for (std::size_t i = 0; i < count; ++i) words[i] = from << 56 | to << 48 | number << 32 | i;
  return words;
}

constexpr std::uint64_t kUntouched = ~std::uint64_t{0};

void require(bool truth, const std::string& what) {
  if (!truth) throw std::runtime_error(what);
}

struct UnderWay {
  MessageId id;
  Words words;
};

void complete_sends(const EngineRank& self, std::vector<UnderWay>& sends) {
  for (const UnderWay& send : sends) complete(self, send.id, "a send");
}

TEST_P(Messages, TagsPairInAnyOrderOfPosting) {
  constexpr std::uint64_t kTags = 40;
  run([](const EngineRank& self) {
    const auto length = [](std::uint64_t tag) { return 1 + tag * tag * 5; };  // up to 60 KiB
    std::vector<UnderWay> sends, receives;
    for (int peer = 0; peer < self.size; ++peer) {
      if (peer == self.rank) continue;
      for (std::uint64_t tag = 0; tag < kTags; ++tag) {
        sends.push_back({{}, message(self.rank, peer, tag, length(tag))});
        UnderWay& send = sends.back();
        send.id = self.messages->send(envelope(peer, tag, send.words.size()), bytes_of(send.words));
      }
    }
    for (int peer = self.size - 1; peer >= 0; --peer) {
      if (peer == self.rank) continue;
      for (std::uint64_t k = 0; k < kTags; ++k) {
        const std::uint64_t tag = kTags - 1 - k;  // the last one first
        receives.push_back({{}, Words(length(tag))});
        UnderWay& receive = receives.back();
        receive.id =
            self.messages->recv(envelope(peer, tag, receive.words.size()), bytes_of(receive.words));
      }
    }
    for (const UnderWay& receive : receives) {
      const Envelope got = complete(self, receive.id, "a receive");
      require(receive.words == message(got.peer, self.rank, got.tag, length(got.tag)),
              "wrong words from rank " + std::to_string(got.peer) + " with tag " +
                  std::to_string(got.tag));
    }
    complete_sends(self, sends);
  });
}

TEST_P(Messages, OneTagKeepsItsOrder) {
  constexpr std::uint64_t kMessages = 200;
  run([](const EngineRank& self) {
    if (self.size < 2) return;
    const int next = (self.rank + 1) % self.size;
    const int previous = (self.rank + self.size - 1) % self.size;
    const auto length = [](std::uint64_t number) {
      return mix(number) % (number % 8 == 0 ? 8000 : 600);
    };
    std::vector<UnderWay> sends;
    for (std::uint64_t k = 0; k < kMessages; ++k) {
      sends.push_back({{}, message(self.rank, next, k, length(k))});
      UnderWay& send = sends.back();
      send.id = self.messages->send(envelope(next, 3, send.words.size()), bytes_of(send.words));
    }
    for (std::uint64_t k = 0; k < kMessages; ++k) {
      Words words(length(k));
      const MessageId id =
          self.messages->recv(envelope(previous, 3, words.size()), bytes_of(words));
      complete(self, id, "receive " + std::to_string(k));
      require(words == message(previous, self.rank, k, words.size()), "out of order");
    }
    complete_sends(self, sends);
  });
}

TEST_P(Messages, AnySourceTakesWhoeverSends) {
  constexpr std::uint64_t kEach = 30;
  run([](const EngineRank& self) {
    std::vector<UnderWay> sends;
    if (self.rank != 0) {
      for (std::uint64_t k = 0; k < kEach; ++k) {
        sends.push_back({{}, message(self.rank, 0, k, 50)});
        UnderWay& send = sends.back();
        send.id = self.messages->send(envelope(0, 9, 50), bytes_of(send.words));
        if (k % 3 == 0) complete(self, send.id, "a send"), sends.pop_back();
      }
      complete_sends(self, sends);
      return;
    }
    std::vector<std::uint64_t> next(static_cast<std::size_t>(self.size));
    for (std::uint64_t k = 0; k < kEach * static_cast<std::uint64_t>(self.size - 1); ++k) {
      Words words(50);
      const MessageId id = self.messages->recv(envelope(engine::kAnyPeer, 9, 50), bytes_of(words));
      const Envelope got = complete(self, id, "a receive from anybody");
      require(got.peer > 0 && got.peer < self.size, "an impossible source");
      const std::uint64_t number = next[static_cast<std::size_t>(got.peer)]++;
      require(words == message(got.peer, 0, number, 50), "wrong words, or out of order");
    }
  });
}

// Messages come in the order of sending. A waiting message is seen before it is received.
TEST_P(Messages, AnyTagTakesWhatCameFirst) {
  constexpr std::uint64_t kEach = 24;
  run([](const EngineRank& self) {
    const auto length = [](std::uint64_t number) { return number * number * 20; };  // up to 85 KiB
    const auto tag = [](std::uint64_t number) { return number * 7 % 5; };
    if (self.rank != 0) {
      std::vector<UnderWay> sends;
      for (std::uint64_t k = 0; k < kEach; ++k) {
        sends.push_back({{}, message(self.rank, 0, k, length(k))});
        UnderWay& send = sends.back();
        send.id = self.messages->send(envelope(0, tag(k), length(k)), bytes_of(send.words));
      }
      complete_sends(self, sends);
      return;
    }
    std::vector<std::uint64_t> next(static_cast<std::size_t>(self.size));
    for (std::uint64_t k = 0; k < kEach * static_cast<std::uint64_t>(self.size - 1); ++k) {
      const bool looks = k % 2 == 0;
      Envelope wanted = envelope(engine::kAnyPeer, engine::kAnyTag, length(kEach));
      if (looks) {
        wanted = await_message(self, wanted, "a message that comes");
      } else {
        wanted.allows_shorter = true;
      }
      Words words(wanted.count, kUntouched);
      const MessageId id = self.messages->recv(wanted, bytes_of(words));
      const Envelope got = complete(self, id, "a receive of any tag");
      require(got.peer > 0 && got.peer < self.size, "an impossible source");
      const std::uint64_t number = next[static_cast<std::size_t>(got.peer)]++;
      require(got.tag == tag(number) && got.count == length(number), "another one came first");
      require(!looks || got.peer == wanted.peer, "not what was seen");
      const Words expected = message(got.peer, 0, number, length(number));
      require(std::equal(expected.begin(), expected.end(), words.begin()), "wrong words");
      const auto rest = std::span(words).subspan(expected.size());
      require(std::ranges::all_of(rest, [](std::uint64_t word) { return word == kUntouched; }),
              "more than came was written");
    }
    require(!self.messages->waiting(envelope(engine::kAnyPeer, engine::kAnyTag, 0)),
            "something is left");
  });
}

constexpr std::array<std::size_t, 8> kLengths{0, 1, 50, 1500, 3000, 9000, 40'000, 300'000};

// A receive stores the beginning of a longer message, and the rest disappears.
TEST_P(Messages, AShorterReceiveTakesTheBeginning) {
  if (ranks() > 3) GTEST_SKIP() << "two ranks act";
  run([](const EngineRank& self) {
    if (self.size < 2 || self.rank > 1) return;
    if (self.rank == 1) {
      std::vector<UnderWay> sends;
      for (std::uint64_t k = 0; k < 3 * kLengths.size(); ++k) {
        sends.push_back({{}, message(1, 0, k, kLengths[k / 3])});
        UnderWay& send = sends.back();
        send.id = self.messages->send(envelope(0, 6, send.words.size()), bytes_of(send.words));
      }
      complete_sends(self, sends);
      return;
    }
    for (std::uint64_t k = 0; k < 3 * kLengths.size(); ++k) {
      const std::size_t sent = kLengths[k / 3];
      const std::size_t room =
          std::array{std::size_t{0}, sent / 2, sent == 0 ? 0 : sent - 1}[k % 3];
      Words words(room + 1, kUntouched);
      Envelope wanted = envelope(1, 6, room);
      wanted.allows_longer = true;
      if (k % 2 == 0) await_message(self, wanted, "a message that comes");
      const MessageId id =
          self.messages->recv(wanted, bytes_of(words).first(room * sizeof(std::uint64_t)));
      const Envelope got = complete(self, id, "receive " + std::to_string(k));
      require(got.count == sent, "another length than was sent");
      const Words expected = message(1, 0, k, sent);
      require(std::equal(words.begin(), words.end() - 1, expected.begin()), "wrong words");
      require(words.back() == kUntouched, "more than there is room for was written");
    }
  });
}

TEST_P(Messages, ASynchronousSendAwaitsItsReceive) {
  if (ranks() > 3) GTEST_SKIP() << "two ranks act";
  if (engine_case().name == "mail") GTEST_SKIP() << "letters are copied as they are sent";
  run([](const EngineRank& self) {
    if (self.size < 2 || self.rank > 1) return;
    for (std::uint64_t k = 0; k < kLengths.size(); ++k) {
      Words token(1), words = message(1, 0, k, kLengths[k]);
      if (self.rank == 1) {
        Envelope to = envelope(0, 8, words.size());
        to.synchronous = true;
        const MessageId id = self.messages->send(to, bytes_of(words));
        for (int i = 0; i < 1000; ++i) {
          self.messages->progress();
          require(!self.messages->test(id), "it ended before its receive");
        }
        complete(self, self.messages->send(envelope(0, 9, 1), bytes_of(token)), "the token");
        complete(self, id, "a synchronous send");
      } else {
        complete(self, self.messages->recv(envelope(1, 9, 1), bytes_of(token)), "the token");
        Words came(words.size());
        complete(self,
                 self.messages->recv(envelope(1, 8, came.size()), bytes_of(came)),
                 "receive " + std::to_string(k));
        require(came == words, "wrong words");
      }
    }
  });
}

// Neither side receives before it has sent all.
TEST_P(Messages, BothMaySendMuchBeforeTheyReceive) {
  run([](const EngineRank& self) {
    constexpr std::size_t kWords = 16 * 1024 * 1024 / sizeof(std::uint64_t);
    if (self.rank > 1 || self.size < 2) return;
    const int peer = 1 - self.rank;
    const Words out = message(self.rank, peer, 1, kWords);
    Words in(kWords);
    const MessageId send = self.messages->send(envelope(peer, 0, kWords), bytes_of(out));
    for (int i = 0; i < 100; ++i) self.messages->progress();
    const MessageId receive = self.messages->recv(envelope(peer, 0, kWords), bytes_of(in));
    complete(self, receive, "a large receive");
    complete(self, send, "a large send");
    require(in == message(peer, self.rank, 1, kWords), "wrong words");
  });
}

TEST_P(Messages, CarryNothingToo) {
  run([](const EngineRank& self) {
    const int next = (self.rank + 1) % self.size;
    const int previous = (self.rank + self.size - 1) % self.size;
    if (next == self.rank) return;
    const MessageId receive = self.messages->recv(envelope(previous, 1, 0), {});
    const MessageId send = self.messages->send(envelope(next, 1, 0), {});
    const Envelope got = complete(self, receive, "a receive of nothing");
    require(got.peer == previous && got.count == 0, "wrong envelope");
    complete(self, send, "a send of nothing");
  });
}

TEST_P(Messages, TravelBesideCollectives) {
  run([](const EngineRank& self) {
    if (self.size < 2) return;
    const int next = (self.rank + 1) % self.size;
    const int previous = (self.rank + self.size - 1) % self.size;
    std::uint64_t sequence = 0;
    for (const std::size_t count : {3, 20'000, 100'000}) {
      const Words out = message(self.rank, next, 5, count);
      Words in(count);
      const MessageId send = self.messages->send(envelope(next, 8, count), bytes_of(out));
      for (int k = 0; k < 5; ++k) {
        ++sequence;
        run_case(self, random_case(sequence, self.size), sequence);
      }
      const MessageId receive = self.messages->recv(envelope(previous, 8, count), bytes_of(in));
      complete(self, receive, "a receive beside collectives");
      complete(self, send, "a send beside collectives");
      require(in == message(previous, self.rank, 5, count), "wrong words");
    }
  });
}

// Rank 1 expects something else than rank 0 sends, in count or in dtype; the next message pairs as
// if nothing had been.
TEST_P(Messages, WhoDisagreesIsTold) {
  run([](const EngineRank& self) {
    if (self.size < 2 || self.rank > 1) return;
    for (int k = 0; k < 8; ++k) {
      const bool count_differs = k % 2 == 0;
      const std::size_t count = std::array{10, 1000, 5000, 100'000}[static_cast<unsigned>(k / 2)];
      Words words = message(0, 1, 2, count);
      Envelope expected = envelope(1 - self.rank, 4, count);
      if (self.rank == 1 && count_differs) expected.count -= 1;
      if (self.rank == 1 && !count_differs) expected.dtype = DType::kInt64;
      const auto bytes = bytes_of(words).first(expected.count * sizeof(std::uint64_t));
      const MessageId id = self.rank == 0 ? self.messages->send(expected, bytes)
                                          : self.messages->recv(expected, bytes);
      std::optional<engine::EnvelopeMismatch> found;
      try {
        complete(self, id, "a message that does not fit");
      } catch (const engine::EnvelopeMismatch& mismatch) {
        found = mismatch;
        self.messages->cancel(id);  // gives the handle back
      }
      // A sender whose message was taken away at once may never learn.
      require(self.rank == 0 || found.has_value(), "the receiver took what it did not expect");
      if (found) {
        require(found->expected.count == expected.count && found->expected.dtype == expected.dtype,
                "not what was expected here");
        require(found->received.count != expected.count || found->received.dtype != expected.dtype,
                "not what came");
        require(found->received.peer == 1 - self.rank, "of another rank");
      }
      Words again = message(0, 1, 3, 10);
      if (self.rank == 0) {
        complete(self, self.messages->send(envelope(1, 4, 10), bytes_of(again)), "the next send");
      } else {
        Words in(10);
        complete(self, self.messages->recv(envelope(0, 4, 10), bytes_of(in)), "the next receive");
        require(in == again, "wrong words after a mismatch");
      }
    }
  });
}

// A receive that is cancelled takes nothing: the message goes to the next one.
TEST_P(Messages, CancelledReceivesTakeNothing) {
  run([](const EngineRank& self) {
    if (self.size < 2 || self.rank > 1) return;
    const Words out = message(0, 1, 6, 5000);
    std::atomic<std::uint64_t>& cancelled = self.board->cells[1];
    if (self.rank == 1) {
      Words abandoned(5000, 42);
      const MessageId id = self.messages->recv(envelope(0, 2, 5000), bytes_of(abandoned));
      self.messages->progress();
      self.messages->cancel(id);
      cancelled.store(1, std::memory_order_release);
      Words in(5000);
      complete(self, self.messages->recv(envelope(0, 2, 5000), bytes_of(in)), "a receive");
      require(in == out, "wrong words");
      require(abandoned == Words(5000, 42), "a cancelled receive was written to");
    } else {
      Wait wait(self, "the cancel");
      while (cancelled.load(std::memory_order_acquire) == 0) wait.pause();
      complete(self, self.messages->send(envelope(1, 2, 5000), bytes_of(out)), "a send");
    }
  });
}

// A receive can be withdrawn until it is matched. The messages then go to later receives.
TEST_P(Messages, WithdrawnReceivesTakeNothing) {
  run([](const EngineRank& self) {
    if (self.size < 2 || self.rank > 1) return;
    const Words out = message(0, 1, 6, 5000);
    std::atomic<std::uint64_t>& withdrawn = self.board->cells[1];
    const int any = engine::kAnyPeer;
    const std::array<Envelope, 4> wanted{envelope(0, 2, 5000),
                                         envelope(any, 2, 5000),
                                         envelope(0, engine::kAnyTag, 5000),
                                         envelope(any, engine::kAnyTag, 5000)};
    std::uint64_t round = 0;
    for (const Envelope& first : wanted) {
      for (const Envelope& second : wanted) {
        ++round;
        if (self.rank == 0) {
          Wait wait(self, "the withdrawal");
          while (withdrawn.load(std::memory_order_acquire) < round) wait.pause();
          complete(self, self.messages->send(envelope(1, 2, 5000), bytes_of(out)), "a send");
          continue;
        }
        Words abandoned(5000, 42), in(5000);
        const MessageId id = self.messages->recv(first, bytes_of(abandoned));
        const MessageId next = self.messages->recv(second, bytes_of(in));
        self.messages->progress();
        require(self.messages->withdraw(id), "a receive without a message was not withdrawn");
        withdrawn.store(round, std::memory_order_release);
        complete(self, next, "a receive");
        require(in == out, "wrong words");
        require(abandoned == Words(5000, 42), "a withdrawn receive was written to");
      }
    }
  });
}

// A receive that is matched goes on, and so does a send.
TEST_P(Messages, MatchedReceivesAreNotWithdrawn) {
  run([](const EngineRank& self) {
    if (self.size < 2 || self.rank > 1) return;
    std::atomic<std::uint64_t>& matched = self.board->cells[0];
    for (const std::size_t count : {100, 5000, 20'000, 200'000}) {
      const Words out = message(0, 1, 3, count);
      if (self.rank == 0) {
        Envelope to = envelope(1, 3, count);
        to.synchronous = true;
        const MessageId id = self.messages->send(to, bytes_of(out));
        require(!self.messages->withdraw(id), "a send was withdrawn");
        complete(self, id, "a send");
        matched.store(count, std::memory_order_release);
        continue;
      }
      Words in(count);
      const MessageId id = self.messages->recv(envelope(0, 3, count), bytes_of(in));
      Wait wait(self, "the send's end");
      while (matched.load(std::memory_order_acquire) < count) {
        self.messages->progress();
        wait.pause();
      }
      self.messages->progress();
      require(!self.messages->withdraw(id), "a matched receive was withdrawn");
      complete(self, id, "a receive");
      require(in == out, "wrong words");
    }
  });
}

// The same while a message of any length is arriving: nothing is written there afterwards.
TEST_P(Messages, CancelledReceivesStayAsTheyAre) {
  run([](const EngineRank& self) {
    if (self.size < 2 || self.rank > 1) return;
    std::uint64_t tag = 10;
    for (const std::size_t count : {100, 5000, 20'000, 200'000}) {
      const Words out = message(0, 1, tag, count);
      if (self.rank == 0) {
        const MessageId first = self.messages->send(envelope(1, tag, count), bytes_of(out));
        complete(self, self.messages->send(envelope(1, tag + 1, count), bytes_of(out)), "a send");
        if (!self.messages->test(first)) self.messages->cancel(first);
      } else {
        Words abandoned(count, 42);
        const MessageId id = self.messages->recv(envelope(0, tag, count), bytes_of(abandoned));
        for (int k = 0; k < 3; ++k) self.messages->progress();
        self.messages->cancel(id);
        const Words left = abandoned;
        Words in(count);
        complete(self, self.messages->recv(envelope(0, tag + 1, count), bytes_of(in)), "a receive");
        require(in == out, "wrong words");
        require(abandoned == left, "a cancelled receive was written to");
      }
      tag += 2;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Every,
                         Messages,
                         testing::Combine(testing::Range<std::size_t>(0, engine_cases().size()),
                                          testing::Values(1, 2, 3, 5, 8)),
                         [](const auto& parameters) {
                           return engine_cases()[std::get<0>(parameters.param)].name + "_" +
                                  std::to_string(std::get<1>(parameters.param));
                         });

}  // namespace
}  // namespace hocket::conformance
