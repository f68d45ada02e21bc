// The status board on which a rank shows its groups and calls to other processes
// (monitoring/live/board_layout.h).
#include <array>
#include <string>

#include "monitoring/live/board_layout.h"
#include "scenario.h"

namespace hocket::live {
namespace {

EntryContent group_of(std::uint64_t block) {
  EntryContent group{.block = block, .rank = static_cast<int>(10 * block), .name = {}};
  group.name = "group " + std::to_string(block);
  return group;
}

// Two threads of a rank make and close groups, and share two entries, while somebody looks.
class Entries : public relacy::Program {
 public:
  static constexpr int kThreads = 3;
  void thread(int number) override {
    if (number == 2) return look();
    const auto base = static_cast<std::uint64_t>(100 * (number + 1));
    for (std::uint64_t block = base; block < base + 2; ++block) {
      const EntryContent group = group_of(block);
      const bool sits = entries_[0].take(group) || entries_[1].take(group);
      HOCKET_CHECK(sits);
      HOCKET_CHECK(entries_[0].leave(block) || entries_[1].leave(block));
    }
  }

 private:
  void look() {
    for (int i = 0; i < 4; ++i) {
      const auto seen = entries_[static_cast<std::size_t>(i % 2)].read();
      if (!seen) continue;
      const EntryContent expected = group_of(seen->block);
      HOCKET_CHECK(seen->rank == expected.rank);
      HOCKET_CHECK(seen->name.view() == expected.name.view());
    }
  }
  std::array<BoardEntry, 2> entries_;
};

// Two groups look for their rows; a reader sees whole ones.
class Rows : public relacy::Program {
 public:
  static constexpr int kThreads = 3;
  void thread(int number) override {
    if (number == 2) {
      for (MeterRow& row : rows_) {
        if (!row.is_taken()) continue;
        const GroupName group = row.group;
        HOCKET_CHECK(group.view() == "a" || group.view() == "b");
      }
      return;
    }
    Metered metered{
        .kind = engine::Kind::kBarrier, .timed = LiveTimed::kOnHost, .engine = {}, .group = {}};
    metered.engine = "shm";
    metered.group = number == 0 ? "a" : "b";
    const bool has = rows_[0].take(metered) || rows_[1].take(metered);
    HOCKET_CHECK(has);
  }
  void after() override {
    HOCKET_CHECK(rows_[0].is_taken() && rows_[1].is_taken());
    const GroupName first = rows_[0].group;
    const GroupName second = rows_[1].group;
    HOCKET_CHECK(first.view() != second.view());
  }

 private:
  std::array<MeterRow, 2> rows_;
};

// The thread that answers where a rank is answers again and again, while somebody reads.
class Answers : public relacy::Program {
 public:
  static constexpr int kThreads = 2;
  static constexpr std::uint64_t kLast = 3;
  void thread(int number) override {
    if (number == 1) {
      for (int i = 0; i < 3; ++i) look();
      return;
    }
    for (std::uint64_t answer = 1; answer <= kLast; ++answer) {
      ToldPosition told{.moves = 10 * answer, .text = {}};
      told.text = "line " + std::to_string(told.moves);
      question_.write(answer, told);
    }
  }
  void after() override {
    const auto told = question_.read();
    HOCKET_CHECK(told && told->moves == 10 * kLast);
  }

 private:
  void look() {
    const auto told = question_.read();
    if (!told) return;
    HOCKET_CHECK(told->moves % 10 == 0 && told->moves <= 10 * kLast);
    HOCKET_CHECK(told->text.view() == "line " + std::to_string(told->moves));
  }
  PositionQuestion question_;
};

TEST(Answers, AreWholeOrNotThere) { relacy::holds_and_needs_all<Answers>({}, {}, 3'000); }

TEST(Entries, AreWholeOrNotThere) {
  // Relacy orders the stores of threads to one place by the order of its steps. So it does not see
  // two groups' names in the wrong order.
  const relacy::Harmless between_groups = {{"take compare_exchange", "it orders names"},
                                           {"leave compare_exchange", "the same"}};
  relacy::holds_and_needs_all<Entries>(between_groups, {}, 3'000);
}

TEST(Rows, AreWholeOrNotThere) {
  relacy::holds_and_needs_all<Rows>(
      {{"compare_exchange", "nothing was written before a row was free"}}, {}, 3'000);
}

}  // namespace
}  // namespace hocket::live
