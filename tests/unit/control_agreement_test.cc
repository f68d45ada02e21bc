// Hosts agree on the members that go on, whatever happens to their messages. Several hosts are
// simulated in one process. Messages between them are lost, come twice, late, and in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "foundation/os/segment.h"
#include "membership/control/agreement.h"
#include "membership/control/group.h"
#include "membership/control/host/host.h"

namespace hocket::control {
namespace {

constexpr std::uint64_t kGroup = 77;
constexpr int kRanksAHost = 2;

// Host `number` of `hosts`, with two ranks each; member i is rank i of the world.
class Host {
 public:
  Host(int number, int hosts, const Agreement::Send& send)
      : number_(number), size_(hosts * kRanksAHost), agreement_(number, send) {
    const HostShape shape{
        .ranks = kRanksAHost, .remote = size_ - kRanksAHost, .stripe_bytes = std::size_t{1} << 20};
    auto segment = std::make_shared<os::Segment>(
        os::Segment::create_private(HostControl::segment_bytes(shape)));
    HostControl::format(*segment, shape);
    control_ = std::make_unique<HostControl>(segment, 0);
    control_->arrive(number * kRanksAHost);
    HostControl second(segment, 1);
    second.arrive(number * kRanksAHost + 1);
    std::vector<int> places;
    int next = kRanksAHost;
    for (int i = 0; i < size_; ++i) {
      hosts_.push_back(i / kRanksAHost);
      places.push_back(is_own(i) ? i % kRanksAHost : next++);
      if (!is_own(i)) record(places.back(), i, RankState::kAlive);
    }
    places_ = places;
    const std::uint64_t block =
        control_->memory.allocate(GroupControl::bytes(size_), std::array{0});
    GroupControl::format(control_->memory.at(block), places);
    entry_ = control_->groups.enlist({.id = kGroup, .block = block, .size = size_});
    words_ = std::make_unique<Succession>(*control_, control_->memory.at(block), entry_);
  }

  bool is_own(int member) const { return member / kRanksAHost == number_; }
  void record(int place, int member, RankState state) {
    control_->remote_hosts.record(place, {.world_rank = member, .state = state, .pid = 1});
  }
  void lose(int member, RankState state) {
    record(places_[static_cast<std::size_t>(member)], member, state);
  }
  Agreement::Group group() { return {kGroup, *words_, hosts_}; }
  Succession& words() { return *words_; }
  Agreement& agreement() { return agreement_; }

 private:
  const int number_;
  const int size_;
  Agreement agreement_;
  std::unique_ptr<HostControl> control_;
  std::vector<int> hosts_;
  std::vector<int> places_;
  GroupEntry* entry_ = nullptr;
  std::unique_ptr<Succession> words_;
};

struct Message {
  int from;
  int to;
  Fact fact;
};

// A job of `count` hosts and the network between them.
class Job {
 public:
  Job(int count, unsigned seed) : random_(seed), heard_(count, std::vector<bool>(count, true)) {
    for (int i = 0; i < count; ++i) {
      hosts_.push_back(std::make_unique<Host>(i, count, [this, i](int to, const Fact& fact) {
        for (int h = 0; h < size(); ++h) {
          if (h != i && (to == h || to == Agreement::kAllHosts)) network_.push_back({i, h, fact});
        }
      }));
      alive_.push_back(true);
    }
  }

  int size() const { return static_cast<int>(hosts_.size()); }
  int ranks() const { return size() * kRanksAHost; }
  Host& host(int number) { return *hosts_[static_cast<std::size_t>(number)]; }
  bool is_alive(int number) const { return alive_[static_cast<std::size_t>(number)]; }
  unsigned below(unsigned end) { return static_cast<unsigned>(random_() % end); }

  // A member calls for it; the others hear of that in time.
  void come(int member, std::uint32_t how = kCame) {
    const int own = member / kRanksAHost;
    host(own).words().come(member, how);
    for (int h = 0; h < size(); ++h) {
      if (h != own) network_.push_back({own, h, ComeFact{kGroup, member, how}});
    }
  }
  // The host ends; each other one hears of it for itself.
  void crash(int number) { alive_[static_cast<std::size_t>(number)] = false; }
  void hear_of_crash(int at, int of) {
    for (int i = of * kRanksAHost; i < (of + 1) * kRanksAHost; ++i) {
      host(at).lose(i, RankState::kDied);
    }
  }
  // Nothing goes from one to the other any more, nor back; either notices when it does.
  void cut(int one, int other) {
    heard_[static_cast<std::size_t>(one)][static_cast<std::size_t>(other)] = false;
    heard_[static_cast<std::size_t>(other)][static_cast<std::size_t>(one)] = false;
  }
  void notice_cut(int at, int of) {
    for (int i = of * kRanksAHost; i < (of + 1) * kRanksAHost; ++i) {
      host(at).lose(i, RankState::kSilent);
    }
  }
  // The carrier of messages breaks between two members of different hosts, and the lanes stand.
  void notice_broken(int at, int member) { host(at).lose(member, RankState::kCut); }
  bool hears(int one, int other) const {
    return heard_[static_cast<std::size_t>(one)][static_cast<std::size_t>(other)];
  }

  // One event happens: a message arrives, is lost or doubled; or a host takes its next step.
  void turn() {
    now_ += std::chrono::milliseconds(below(20));
    if (network_.empty() || below(3) == 0) {
      const auto at = static_cast<int>(below(static_cast<unsigned>(size())));
      if (is_alive(at)) host(at).agreement().step(host(at).group(), now_);
      return;
    }
    const std::size_t which = below(static_cast<unsigned>(network_.size()));
    const Message message = network_[which];
    const bool is_vote = std::holds_alternative<VoteFact>(message.fact);
    const bool twice = is_vote && below(10) == 0;
    if (!twice) network_.erase(network_.begin() + static_cast<std::ptrdiff_t>(which));
    if (!is_alive(message.to) || !hears(message.from, message.to)) return;
    if (is_vote && below(8) == 0) {
      // Each host sends a decision only once: a lane that breaks gets everything again.
      const auto& vote = std::get<VoteFact>(message.fact);
      if (vote.kind != VoteFact::Kind::kDecided) return;
    }
    Host& to = host(message.to);
    if (is_vote) {
      to.agreement().take(to.group(), std::get<VoteFact>(message.fact), message.from);
    } else {
      const auto& come = std::get<ComeFact>(message.fact);
      to.words().note(come.member, come.how);
    }
  }

  // True if these are more than half of all members, or half with the first.
  bool outweighs(const Members& members) const {
    const auto these = 2 * std::count(members.begin(), members.end(), true);
    return these > ranks() || (these == ranks() && members.front());
  }
  // The decision, which no second one may follow. Fails the test if hosts decided differently.
  std::optional<Members> decision() {
    std::optional<Members> found;
    for (const auto& host : hosts_) {
      const auto decided = host->words().decided();
      if (!decided) continue;
      if (found) {
        EXPECT_EQ(*found, *decided);
      }
      found = decided;
    }
    return found;
  }
  bool all_decided() {
    for (int i = 0; i < size(); ++i) {
      if (is_alive(i) && !host(i).words().is_decided()) return false;
    }
    return true;
  }

 private:
  std::mt19937 random_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<bool> alive_;
  std::vector<std::vector<bool>> heard_;
  std::deque<Message> network_;
  Agreement::Clock::time_point now_ = Agreement::Clock::now();
};

TEST(Agreement, IsReachedByAll) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    Job job(2 + static_cast<int>(seed % 3), seed);
    for (int i = 0; i < job.ranks(); ++i) job.come(i);
    for (int turns = 0; turns < 20'000 && !job.all_decided(); ++turns) job.turn();
    ASSERT_TRUE(job.all_decided()) << "seed " << seed;
    EXPECT_EQ(job.decision(), Members(static_cast<std::size_t>(job.ranks()), true));
  }
}

TEST(Agreement, IsTheSameWhicheverHostsEndAndWhenever) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Job job(3 + static_cast<int>(seed % 2), seed);
    // Two of four may end; of three, too.
    const int first = static_cast<int>(job.below(static_cast<unsigned>(job.size())));
    const int second = (first + 1) % job.size();
    const unsigned first_at = job.below(120);
    const unsigned second_at = job.below(200);
    for (int i = 0; i < job.ranks(); ++i) job.come(i);
    std::map<std::pair<int, int>, unsigned> hear;  // (host, other host): time
    for (int i = 0; i < job.size(); ++i) {
      hear[{i, first}] = first_at + job.below(150);
      hear[{i, second}] = second_at + job.below(150);
    }
    for (unsigned turns = 0; turns < 30'000; ++turns) {
      if (turns == first_at) job.crash(first);
      if (turns == second_at) job.crash(second);
      for (const auto& [who, when] : hear) {
        if (turns == when && who.first != who.second) job.hear_of_crash(who.first, who.second);
      }
      if (turns > 400 && job.all_decided()) break;
      job.turn();
    }
    EXPECT_TRUE(job.all_decided()) << "seed " << seed;
    static_cast<void>(job.decision());
    if (testing::Test::HasFailure()) {
      FAIL() << "seed " << seed << ": hosts " << first << " and " << second;
    }
  }
}

// Whichever hosts hear each other, no two hosts decide differently.
TEST(Agreement, IsOneInANetworkThatIsCutAnywhere) {
  int decided = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Job job(2 + static_cast<int>(seed % 4), seed);
    for (int i = 0; i < job.ranks(); ++i) job.come(i);
    std::vector<std::pair<std::pair<int, int>, unsigned>> notices;
    for (int a = 0; a < job.size(); ++a) {
      for (int b = a + 1; b < job.size(); ++b) {
        if (job.below(2) == 0) continue;
        const unsigned from = job.below(100);
        notices.push_back({{a, b}, from});
        notices.push_back({{a, b}, from + job.below(120)});
        notices.push_back({{b, a}, from + job.below(120)});
      }
    }
    for (unsigned turns = 0; turns < 3'000; ++turns) {
      for (std::size_t i = 0; i < notices.size(); ++i) {
        const auto& [pair, when] = notices[i];
        if (when != turns) continue;
        if (i % 3 == 0) {
          job.cut(pair.first, pair.second);
        } else {
          job.notice_cut(pair.first, pair.second);
        }
      }
      job.turn();
    }
    const auto found = job.decision();
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
    if (!found) continue;
    EXPECT_TRUE(job.outweighs(*found)) << "seed " << seed;
    ++decided;
  }
  EXPECT_GT(decided, 100);
}

// The carrier of messages breaks between any hosts, and either end notices late or not at all. The
// lanes stand, so that all know the outcome.
TEST(Agreement, IsOfTheGreaterPartWhateverBreaksBesideTheLanes) {
  int decided = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Job job(3 + static_cast<int>(seed % 3), seed);
    for (int i = 0; i < job.ranks(); ++i) job.come(i);
    std::vector<std::pair<std::pair<int, int>, unsigned>> notices;
    for (int a = 0; a < job.size(); ++a) {
      for (int b = 0; b < job.size(); ++b) {
        if (a != b && job.below(3) == 0) notices.push_back({{a, b}, job.below(200)});
      }
    }
    for (unsigned turns = 0; turns < 2'000; ++turns) {
      for (const auto& [pair, when] : notices) {
        if (when == turns) job.notice_cut(pair.first, pair.second);
      }
      job.turn();
    }
    const auto found = job.decision();
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
    if (!found) continue;
    EXPECT_TRUE(job.outweighs(*found)) << "seed " << seed;
    ++decided;
  }
  EXPECT_GT(decided, 100);
}

// Pairs of members of different hosts whose messages do not reach each other any more.
using Pairs = std::vector<std::pair<int, int>>;

// True if hosts that all hear each other hold more than half of the members, or half and the first.
bool can_go_on(const Job& job, const Pairs& broken) {
  for (unsigned set = 1; set < 1u << static_cast<unsigned>(job.size()); ++set) {
    const auto is_in = [&](int member) { return (set >> (member / kRanksAHost) & 1u) != 0; };
    const bool hear = std::ranges::none_of(
        broken, [&](const auto& pair) { return is_in(pair.first) && is_in(pair.second); });
    Members members;
    for (int i = 0; i < job.ranks(); ++i) members.push_back(is_in(i));
    if (hear && job.outweighs(members)) return true;
  }
  return false;
}

// Single members lose each other. Each of the other members lives, and goes on with its host or not
// at all.
TEST(Agreement, IsOfWholeHostsWhereSingleMembersLoseEachOther) {
  int decided = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Job job(2 + static_cast<int>(seed % 3), seed);
    Pairs broken;
    const auto members = static_cast<unsigned>(job.ranks());
    for (unsigned count = 1 + job.below(3); count > 0; --count) {
      const auto a = static_cast<int>(job.below(members));
      const auto b = static_cast<int>(job.below(members));
      if (a / kRanksAHost != b / kRanksAHost) broken.emplace_back(a, b);
    }
    for (const auto& [a, b] : broken) {
      job.notice_broken(a / kRanksAHost, b);
      job.notice_broken(b / kRanksAHost, a);
    }
    for (int i = 0; i < job.ranks(); ++i) job.come(i);
    for (int turns = 0; turns < 4'000; ++turns) job.turn();
    const auto found = job.decision();
    ASSERT_EQ(found.has_value(), can_go_on(job, broken)) << "seed " << seed;
    if (!found) continue;
    EXPECT_TRUE(job.outweighs(*found)) << "seed " << seed;
    for (int i = 0; i < job.ranks(); i += kRanksAHost) {
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ((*found)[at], (*found)[at + 1]) << "seed " << seed << ", host of " << i;
    }
    ++decided;
  }
  EXPECT_GT(decided, 200);
}

// Host 0 has lost both others, and has noticed one loss so far.
TEST(Agreement, IsOfThoseWhoHearEachOtherWhereTheFirstHearsNobody) {
  Job job(3, 5);
  for (int i = 0; i < 6; ++i) job.come(i);
  job.notice_cut(0, 1);
  job.notice_cut(1, 0);
  job.notice_cut(2, 0);
  for (int turns = 0; turns < 5'000 && !job.all_decided(); ++turns) job.turn();
  EXPECT_EQ(job.decision(), (Members{false, false, true, true, true, true}));
  EXPECT_TRUE(job.host(0).words().is_decided());  // and knows that it is out
}

TEST(Agreement, OfTwoHalvesOnlyTheOneWithTheFirstDecides) {
  Job job(2, 3);
  for (int i = 0; i < 4; ++i) job.come(i);
  job.cut(0, 1);
  job.notice_cut(0, 1);
  job.notice_cut(1, 0);
  for (int turns = 0; turns < 500; ++turns) job.turn();
  EXPECT_EQ(job.host(0).words().decided(), (Members{true, true, false, false}));
  EXPECT_FALSE(job.host(1).words().is_decided());
}

TEST(Agreement, LeavesOutOneOfTwoThatDoNotHearEachOther) {
  Job job(3, 3);
  for (int i = 0; i < 6; ++i) job.come(i);
  for (int turns = 0; turns < 3; ++turns) job.turn();
  job.cut(1, 2);
  job.notice_cut(1, 2);
  job.notice_cut(2, 1);
  for (int turns = 0; turns < 2'000; ++turns) job.turn();
  EXPECT_EQ(job.decision(), (Members{true, true, true, true, false, false}));
  EXPECT_TRUE(job.host(2).words().is_decided());  // and knows that it is out
}

// A host that hears of a death first still hears the dead rank's host.
TEST(Agreement, LeavesNobodyOutForKnowingOfADeathFirst) {
  Job job(3, 3);
  for (int i = 0; i < 6; ++i) job.come(i);
  job.host(1).lose(3, RankState::kDied);
  job.host(2).lose(3, RankState::kDied);
  for (int turns = 0; turns < 20'000 && !job.all_decided(); ++turns) job.turn();
  const auto found = job.decision();
  ASSERT_TRUE(found);
  for (const int living : {0, 1, 2, 4, 5}) EXPECT_TRUE((*found)[static_cast<std::size_t>(living)]);
}

// The vote of a host that ends as a whole is lost. So all asked hosts must accept a proposal.
TEST(Agreement, WaitsForTheVotesOfAll) {
  Job job(3, 3);
  for (int i = 0; i < 6; ++i) job.come(i);
  while (!job.host(0).words().accepted()) job.turn();
  job.cut(0, 2);  // no host has noticed so far
  for (int turns = 0; turns < 2'000; ++turns) job.turn();
  EXPECT_TRUE(job.host(1).words().accepted());
  EXPECT_FALSE(job.decision());
  job.notice_cut(0, 2);
  job.notice_cut(2, 0);
  for (int turns = 0; turns < 2'000; ++turns) job.turn();
  EXPECT_EQ(job.decision(), Members(6, true));  // as host 2 may have voted before it was cut off
}

// Another process that speaks for the host may have taken the group off.
TEST(Agreement, IsNotPursuedForAGroupThatIsGone) {
  Job job(2, 3);
  for (int i = 0; i < 4; ++i) {
    job.come(i);
    job.host(0).words().note(i, kCame);
  }
  Host& host = job.host(0);
  host.agreement().step(host.group(), Agreement::Clock::now());
  EXPECT_TRUE(host.agreement().is_busy());
  host.agreement().forget_unless([](std::uint64_t id) { return id == kGroup; });
  EXPECT_TRUE(host.agreement().is_busy());
  host.agreement().forget_unless([](std::uint64_t id) { return id != kGroup; });
  EXPECT_FALSE(host.agreement().is_busy());
}

TEST(Agreement, IsKeptUntilTheOthersKnowIt) {
  Job job(3, 3);
  for (int i = 0; i < 6; ++i) job.come(i);
  while (!job.all_decided()) job.turn();
  job.cut(0, 2);
  for (int turns = 0; turns < 2'000; ++turns) job.turn();
  EXPECT_FALSE(job.host(1).words().owes_outcome());
  Host& first = job.host(0);
  if (first.words().owes_outcome()) {
    const VoteFact through{.group = kGroup, .kind = VoteFact::Kind::kThrough};
    first.agreement().take(first.group(), through, 2);
  }
  EXPECT_FALSE(first.words().owes_outcome());
}

// One of three hosts ends, and the others cannot hear each other: it may have voted with either.
TEST(Agreement, IsNotReachedWhereTheDeadMayHaveVotedOtherwise) {
  Job job(3, 3);
  for (int i = 0; i < 6; ++i) job.come(i);
  for (int turns = 0; turns < 3; ++turns) job.turn();
  job.crash(2);
  job.cut(0, 1);
  for (const int host : {0, 1}) {
    job.hear_of_crash(host, 2);
    job.notice_cut(host, 1 - host);
  }
  for (int turns = 0; turns < 2'000; ++turns) job.turn();
  EXPECT_FALSE(job.decision());
}

// A host speaks for itself: a ballot contains the number of the proposing host.
TEST(Agreement, HearsNoBallotInAnotherHostsName) {
  Job job(3, 3);
  Host& host = job.host(0);
  constexpr std::uint64_t kBallotOfTwo = (std::uint64_t{9} << 16) | 2;
  for (const auto kind : {VoteFact::Kind::kPrepare, VoteFact::Kind::kAccept}) {
    const VoteFact vote{
        .group = kGroup, .kind = kind, .ballot = kBallotOfTwo, .members = Members(6, true)};
    host.agreement().take(host.group(), vote, 1);
    EXPECT_EQ(host.words().promised(), 0);
    EXPECT_FALSE(host.words().accepted());
  }
  const VoteFact decided{
      .group = kGroup, .kind = VoteFact::Kind::kDecided, .members = Members(6, true)};
  host.agreement().take(host.group(), decided, 7);  // who has no member in it
  EXPECT_FALSE(host.words().is_decided());
  const VoteFact vote{
      .group = kGroup, .kind = VoteFact::Kind::kPrepare, .ballot = kBallotOfTwo, .members = {}};
  host.agreement().take(host.group(), vote, 2);
  EXPECT_EQ(host.words().promised(), kBallotOfTwo);
}

TEST(Agreement, GoesAloneWhereAllSaySo) {
  Job job(2, 3);
  for (int i = 0; i < 4; ++i) job.come(i, kCame | (i >= 2 ? std::uint32_t{kAlone} : 0U));
  job.cut(0, 1);
  job.notice_cut(1, 0);
  for (int turns = 0; turns < 500; ++turns) job.turn();
  EXPECT_EQ(job.host(1).words().decided(), (Members{false, false, true, true}));
  EXPECT_FALSE(job.host(0).words().is_decided());  // still waits for the others
}

}  // namespace
}  // namespace hocket::control
