// Collectives made of messages. The ranks' messages match each other, and bring every byte to its
// destination, for every size, root and awkward count.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "engines/movement/moves.h"

namespace hocket::movement {
namespace {

using engine::Call;
using engine::DeviceMessage;
using engine::Kind;
using Bytes = std::vector<std::byte>;

std::byte value(int from, int to, std::size_t at) {
  return static_cast<std::byte>(from * 31 + to * 7 + static_cast<int>(at % 251) + 1);
}

// A part that `from` has for `to`; -1: for everybody.
Bytes part(int from, int to, std::size_t bytes) {
  Bytes result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) result[i] = value(from, to, i);
  return result;
}

// Parts of different lengths, some empty.
std::size_t length_of(Kind kind, std::size_t count, int from, int to) {
  if (kind < Kind::kReduceScatterV) return count;
  return count * static_cast<std::size_t>((from * 2 + to) % 4);
}

struct Rank {
  Bytes in, out, wanted;
  std::vector<std::size_t> in_bytes, in_offsets, out_bytes, out_offsets;
  Call call;
};

void append(Bytes& to, const Bytes& bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

// One rank's call: its data for each other rank.
Rank make(Kind kind, int rank, int size, int root, std::size_t count) {
  Rank made;
  const bool at_root = rank == root;
  const bool gathers = kind == Kind::kGather || kind == Kind::kGatherV;
  const bool scatters = kind == Kind::kScatter || kind == Kind::kScatterV;
  const bool same = kind == Kind::kAllGather || kind == Kind::kAllGatherV || gathers;
  const bool all_to_all = kind == Kind::kAllToAll || kind == Kind::kAllToAllV;
  const auto sent = [&](int from, int to) {
    const int whom = same ? -1 : to;
    return part(from, whom, length_of(kind, count, from, same ? 0 : to));
  };
  for (int peer = 0; peer < size; ++peer) {
    if (all_to_all || (scatters && at_root)) {
      made.in_offsets.push_back(made.in.size());
      append(made.in, sent(rank, peer));
      made.in_bytes.push_back(made.in.size() - made.in_offsets.back());
    }
    if (all_to_all || (same && (!gathers || at_root))) {
      made.out_offsets.push_back(made.wanted.size());
      append(made.wanted, sent(peer, rank));
      made.out_bytes.push_back(made.wanted.size() - made.out_offsets.back());
    }
  }
  if (same) made.in = sent(rank, -1);
  if (scatters) made.wanted = sent(root, rank);
  if (kind == Kind::kBroadcast) {
    if (at_root) made.in = part(root, -1, count);
    made.wanted = part(root, -1, count);
  }
  made.out.resize(made.wanted.size(), std::byte{0});
  Call& call = made.call;
  call.signature.kind = kind;
  call.signature.root = root;
  call.signature.count = kind < Kind::kReduceScatterV ? count : 0;
  call.own_bytes = scatters ? made.wanted.size() : made.in.size();
  return made;
}

// Messages that were sent and not received: by sender and receiver, in order.
using Channels = std::map<std::pair<int, int>, std::deque<Bytes>>;

void expect_right(Kind kind, int size, int root, std::size_t count, bool in_place) {
  std::vector<Rank> ranks;
  std::vector<Moves> moves;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(make(kind, rank, size, root, count));
  for (int rank = 0; rank < size; ++rank) {
    Rank& own = ranks[static_cast<std::size_t>(rank)];
    own.call.in = own.in.data();
    own.call.out = own.out.data();
    if (in_place && kind == Kind::kBroadcast) {
      if (rank == root) own.out = own.in;
      own.call.in = own.out.data();
    }
    own.call.in_parts = {own.in_bytes.data(), own.in_offsets.data()};
    own.call.out_parts = {own.out_bytes.data(), own.out_offsets.data()};
    moves.push_back(moves_of(own.call, rank, size));
  }
  Channels channels;
  std::vector<std::size_t> round(static_cast<std::size_t>(size), 0);
  std::vector<bool> sent(static_cast<std::size_t>(size), false);
  // Each rank proceeds as far as it can, one after the other, until none can.
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      if (round[rank] == moves[rank].rounds.size()) continue;
      auto& messages = moves[rank].rounds[round[rank]];
      const int own = static_cast<int>(rank);
      if (!sent[rank]) {
        for (const DeviceMessage& m : messages) {
          ASSERT_NE(m.peer, own);
          ASSERT_GT(m.bytes, 0U);
          const auto* data = static_cast<const std::byte*>(m.data);
          if (m.way == DeviceMessage::Way::kSend) {
            channels[{own, m.peer}].emplace_back(data, data + m.bytes);
          }
        }
        sent[rank] = moved = true;
      }
      moved |=
          std::erase_if(messages, [&](const DeviceMessage& m) {
            if (m.way == DeviceMessage::Way::kSend) return true;
            auto& channel = channels[{m.peer, own}];
            if (channel.empty()) return false;
            EXPECT_EQ(channel.front().size(), m.bytes);
            std::memcpy(m.data, channel.front().data(), std::min(m.bytes, channel.front().size()));
            channel.pop_front();
            return true;
          }) > 0;
      if (messages.empty()) {
        ++round[rank];
        sent[rank] = false;
      }
    }
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    EXPECT_EQ(round[rank], moves[rank].rounds.size()) << "rank " << rank << " waits for ever";
    const Moves::Copy& own = moves[rank].own;
    if (own.bytes != 0) std::memcpy(own.to, own.from, own.bytes);
    EXPECT_EQ(ranks[rank].out, ranks[rank].wanted) << "rank " << rank;
  }
  for (const auto& [who, left] : channels) EXPECT_TRUE(left.empty()) << who.first;
}

class UcxMoves : public testing::TestWithParam<Kind> {};

TEST_P(UcxMoves, BringEveryByteWhereItBelongs) {
  for (int size = 1; size <= 17; ++size) {
    for (int root = 0; root < size; root += size > 5 ? 3 : 1) {
      for (const std::size_t count : {0, 1, 511, 5000}) {
        SCOPED_TRACE(testing::Message() << size << " ranks, root " << root << ", " << count);
        expect_right(GetParam(), size, root, count, false);
        if (GetParam() == Kind::kBroadcast) expect_right(GetParam(), size, root, count, true);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST_P(UcxMoves, ManyRanksAreNotAllAskedAtOnce) {
  expect_right(GetParam(), 70, 1, 3, false);
  EXPECT_TRUE(kCarries.has(GetParam()));
}

TEST(UcxMovesOfOthers, ReductionsAreNone) {
  for (const Kind kind : {Kind::kBarrier,
                          Kind::kReduce,
                          Kind::kAllReduce,
                          Kind::kReduceScatter,
                          Kind::kReduceScatterV}) {
    EXPECT_FALSE(kCarries.has(kind));
  }
}

// A broadcast cannot be faster than the root's own link.
TEST(UcxMovesOfOthers, TheRootOfABroadcastSendsTheArrayOnce) {
  Rank root = make(Kind::kBroadcast, 2, 8, 2, 100'000);
  root.call.in = root.in.data();
  root.call.out = root.out.data();
  std::size_t sent = 0;
  for (const auto& round : moves_of(root.call, 2, 8).rounds) {
    for (const DeviceMessage& m : round) sent += m.bytes;
  }
  EXPECT_EQ(sent, 100'000U);
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         UcxMoves,
                         testing::Values(Kind::kBroadcast,
                                         Kind::kGather,
                                         Kind::kScatter,
                                         Kind::kAllGather,
                                         Kind::kAllToAll,
                                         Kind::kGatherV,
                                         Kind::kScatterV,
                                         Kind::kAllGatherV,
                                         Kind::kAllToAllV));

}  // namespace
}  // namespace hocket::movement
