#include "live/meter.h"

#include <utility>

#include "live/desk.h"

namespace hocket::live {
namespace {

// One thread writes at a time.
void add(base::Atomic<std::uint64_t>& to, std::uint64_t more) noexcept {
  to.store(to.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

// The row of these; null where there is no room. Groups of several threads may look for one at once.
MeterRow* row_of(DeskLayout& desk,
                 engine::Kind kind,
                 std::string_view engine,
                 std::string_view group) noexcept {
  EngineName engine_name;
  GroupName group_name;
  engine_name = engine;
  group_name = group;
  for (MeterRow& row : desk.rows) {
    if (row.take(kind, engine_name, group_name)) return &row;
  }
  return nullptr;
}

}  // namespace

Meter::Meter(control::HostControl& host, std::string group)
    : desk_(counting_desk(host)), group_(std::move(group)) {}

void Meter::begin(engine::Kind kind, std::string_view engine, std::size_t bytes) noexcept {
  if (desk_ == nullptr) return;
  Known& known = known_[static_cast<std::size_t>(kind)];
  if (known.engine != engine.data() || known.row == nullptr) {
    known = {.engine = engine.data(), .row = row_of(*desk_, kind, engine, group_)};
  }
  under_way_ = known.row;
  bytes_ = bytes;
  begun_ = Clock::now();
}

void Meter::end(bool failed) noexcept {
  if (under_way_ == nullptr) return;
  MeterRow& row = *std::exchange(under_way_, nullptr);
  const auto took = static_cast<std::uint64_t>(
      std::chrono::nanoseconds(Clock::now() - begun_).count());
  if (failed) {
    add(row.failed, 1);
    return;
  }
  add(row.bytes, bytes_);
  add(row.nanoseconds, took);
  add(row.ended[bucket_of(took)], 1);
}

}  // namespace hocket::live
