// The ring of records between two ranks (engines/shm/channel.h).
#include "engines/shm/channel.h"

#include <memory>
#include <vector>

#include "scenario.h"

namespace hocket::engines::shm {
namespace {

// Bytes of message `number`, short or long, which no other has.
std::vector<std::byte> payload_of(int number, std::size_t bytes) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(number + 1));
}

// More records than the ring has places for, so that places are used again: begun at the end of a
// round, to keep it short.
template <std::size_t kBytes, int kMessages>
class Traffic : public relacy::Program {
 public:
  static constexpr int kThreads = 2;
  void before() override {
    relacy::share(shared_.get(), sizeof(Shared));
    relacy::share(ring_.get(), kCapacity);
    // Both have been here for some time.
    for (std::size_t i = 0; i < kRecords - 1; ++i) {
      writer_.write({}, {}, 0);
      reader_.pop();
    }
  }
  void thread(int number) override { number == 0 ? write() : read(); }

 private:
  void write() {
    for (int i = 0; i < kMessages; ++i) {
      const auto payload = payload_of(i, kBytes);
      while (writer_.room(kBytes, kBytes) < kBytes) relacy::yield();
      writer_.write({.count = static_cast<std::uint64_t>(i)}, payload, kBytes);
    }
  }
  void read() {
    for (int i = 0; i < kMessages; ++i) {
      std::optional<RingChannel::Record> record;
      while (!(record = reader_.front())) relacy::yield();
      HOCKET_CHECK(record->header.count == static_cast<std::uint64_t>(i));
      HOCKET_CHECK(record->payload.bytes.size() == kBytes);
      std::vector<std::byte> got(kBytes);
      record->payload.copy_to(got.data(), core::Stores::kCached);
      HOCKET_CHECK(got == payload_of(i, kBytes));
      reader_.pop();
    }
  }

  static constexpr std::size_t kCapacity = 1024;
  static constexpr std::size_t kRecords = 32;
  struct Shared {
    ChannelShared channel;
    RecordLines records[kRecords];
  };
  std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
  std::unique_ptr<std::byte[]> ring_ = std::make_unique<std::byte[]>(kCapacity);
  RingChannel writer_{&shared_->channel, kRecords, ring_.get(), kCapacity};
  RingChannel reader_{&shared_->channel, kRecords, ring_.get(), kCapacity};
};

TEST(RingChannel, ShortMessagesComeWholeAndInOrder) {
  // With 35 records a place is written a second time. Three are enough to check that a record is
  // not read before it is complete.
  relacy::holds_and_needs_all<Traffic<8, 3>>(
      {{"pop", "no place is used again"}, {"learn_what_is_done", "no place is used again"}},
      {{"pop", "no place is used again"}},
      400);
}

TEST(RingChannel, LongMessagesWaitForRoom) {
  relacy::holds_and_needs_all<Traffic<500, 4>>({}, {}, 400);
}

}  // namespace
}  // namespace hocket::engines::shm
