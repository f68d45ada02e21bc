// Records of calls that ranks announce, and of the end of a group (membership/control/group.h,
// group_layout.h).
#include "host.h"
#include "membership/control/group.h"
#include "membership/control/group_layout.h"
#include "scenario.h"

namespace hocket::control {
namespace {

engine::Signature signature_of(std::uint64_t sequence) {
  return {.kind = engine::Kind::kAllReduce,
          .root = static_cast<std::int32_t>(sequence),
          .count = 10 * sequence};
}

// A rank announces calls, of which one takes the place of an older one, while another looks them
// up.
class Announcements : public relacy::Program {
 public:
  static constexpr int kThreads = 2;
  void thread(int rank) override {
    GroupControl& group = host_.group(rank);
    if (rank == 0) {
      for (const std::uint64_t sequence : kCalls) {
        group.record(sequence, 7 * sequence, signature_of(sequence), sequence == kCalls[1]);
        group.finish(sequence, true);
      }
      return;
    }
    for (int look = 0; look < 3; ++look) {
      const std::uint64_t finished = group.finished_sequence(0);
      const std::uint64_t last = group.last_sequence(0);
      HOCKET_CHECK(last >= finished);
      if (last != 0) {
        const auto record = group.find(0, last);
        HOCKET_CHECK(record || last == kCalls[0]);  // unless it has been overwritten
        check(record);
      }
      for (const std::uint64_t sequence : kCalls) check(group.find(0, sequence));
    }
  }
  void after() override {
    HOCKET_CHECK(host_.group(1).finished_well(0, kCalls[1]));
    HOCKET_CHECK(host_.group(1).last_sequence(0) == kCalls[1]);
  }

 private:
  static constexpr std::uint64_t kCalls[] = {1, 1 + kRecords};
  static void check(const std::optional<Record>& record) {
    if (!record) return;
    HOCKET_CHECK(record->fingerprint == 7 * record->sequence);
    HOCKET_CHECK(record->signature == signature_of(record->sequence));
    HOCKET_CHECK(record->refused == (record->sequence == kCalls[1]));
  }
  relacy::Host host_{2};
};

// Refusals of calls whose reasons take each other's place.
class Refusals : public relacy::Program {
 public:
  static constexpr int kThreads = 2;
  void thread(int rank) override {
    GroupControl& group = host_.group(rank);
    if (rank == 0) {
      for (const std::uint64_t sequence : kCalls) {
        group.refuse(sequence, engine::Kind::kBarrier, std::to_string(sequence));
      }
      return;
    }
    for (int look = 0; look < 3; ++look) {
      for (const std::uint64_t sequence : kCalls) {
        const bool refused = group.refused(sequence);
        const auto refusal = group.refusal(0, sequence);
        HOCKET_CHECK(!refusal || refusal->reason == std::to_string(sequence));
        // The first may have been overwritten.
        HOCKET_CHECK(!refused || refusal || sequence == kCalls[0]);
        HOCKET_CHECK(!refused || group.any_refusal());
      }
    }
  }

 private:
  static constexpr std::uint64_t kCalls[] = {1, 1 + kRefusals};
  relacy::Host host_{2};
};

// Two ranks see different failures. All three take the first one as the cause of the group's end.
class FirstFailure : public relacy::Program {
 public:
  static constexpr int kThreads = 3;
  void thread(int rank) override {
    GroupControl& group = host_.group(rank);
    if (rank < 2) {
      group.fail({.cause = rank == 0 ? Cause::kAbortCalled : Cause::kDied,
                  .reporter = rank,
                  .culprit = rank,
                  .sequence = static_cast<std::uint64_t>(100 + rank),
                  .signature = signature_of(static_cast<std::uint64_t>(1 + rank))});
    } else {
      while (!group.failed()) {
        const std::uint32_t ticket = group.host().doorbells.before_sleep();
        if (!group.failed()) group.host().doorbells.sleep(ticket, base::Deadline::never());
        group.host().doorbells.after_sleep();
      }
    }
    const Failure failure = group.failure();
    HOCKET_CHECK(failure.culprit == failure.reporter);
    HOCKET_CHECK(failure.sequence == static_cast<std::uint64_t>(100 + failure.reporter));
    HOCKET_CHECK(failure.signature ==
                 signature_of(static_cast<std::uint64_t>(1 + failure.reporter)));
    HOCKET_CHECK(failure.cause == (failure.reporter == 0 ? Cause::kAbortCalled : Cause::kDied));
    told_[rank] = failure.reporter;
  }
  void after() override { HOCKET_CHECK(told_[0] == told_[1] && told_[1] == told_[2]); }

 private:
  relacy::Host host_{3};
  int told_[3] = {-1, -1, -1};
};

TEST(Records, AreWholeOrNotThere) { relacy::holds_and_needs_all<Announcements>({}, {}, 3'000); }

TEST(Refusals, AreWholeOrNotThere) {
  const relacy::Harmless of_the_record = {
      {"SharedRecord", "of the record, which the test before looks at"},
      {"GroupControl::record", "the same"},
      {"GroupControl::finish", "the same"},
      {"any_refusal", "nothing is read after it but the reason, by its own order"}};
  relacy::holds_and_needs_all<Refusals>(of_the_record, of_the_record, 3'000);
}

TEST(FirstFailure, IsTheSameForAllAndWakesWhoSleeps) {
  relacy::holds_and_needs_all<FirstFailure>(
      {{"heavy_fence", "whoever fails a group pays for a fence of its own"},
       {"GroupControl::fail fence", "whoever sleeps pays for a heavy one"},
       {"GroupControl::fail compare_exchange", "what follows is published by the store after it"},
       {"GroupControl::failed", "what failed is read by its own order"},
       {"before_sleep", "as in parking_test.cc"},
       {"ring_parked", "as in parking_test.cc"}},
      {{"after_sleep", "as in parking_test.cc"}},
      3'000);
}

}  // namespace
}  // namespace hocket::control
