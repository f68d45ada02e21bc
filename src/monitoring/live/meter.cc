#include "monitoring/live/meter.h"

#include <utility>

#include "monitoring/live/status_board.h"

namespace hocket::live {
namespace {

// Adds without an atomic instruction, because one thread writes at a time.
void add_to(base::Atomic<std::uint64_t>& sum, std::uint64_t more) noexcept {
  sum.store(sum.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

// Returns the row of a key, or takes a free row. Null if all rows are taken. Threads with different
// groups may call it at once.
MeterRow* row_of(BoardLayout& board, const Meter::What& what, std::string_view group) noexcept {
  Metered metered{.kind = what.kind, .timed = what.timed, .engine = {}, .group = {}};
  metered.engine = what.engine;
  metered.group = group;
  for (MeterRow& row : board.rows) {
    if (row.take(metered)) return &row;
  }
  return nullptr;
}

}  // namespace

void Counted::add(bool failed) noexcept {
  if (!failed) return add(Clock::now() - begun_);
  add_to(std::exchange(row_, nullptr)->failed, 1);
}

void Counted::add(std::chrono::nanoseconds time) noexcept {
  MeterRow& row = *std::exchange(row_, nullptr);
  const auto took = static_cast<std::uint64_t>(time.count());
  add_to(row.bytes, bytes_);
  add_to(row.nanoseconds, took);
  add_to(row.ended[bucket_of(took)], 1);
}

Meter::Meter(control::HostMemory& memory, std::string group)
    : board_(counting_board(memory)), group_(std::move(group)) {
  if (board_ != nullptr) known_ = std::make_unique<decltype(known_)::element_type>();
}

Counted Meter::begin(const What& what) noexcept {
  if (board_ == nullptr) return {};
  Known& known = (*known_)[kTimed * static_cast<std::size_t>(what.kind) +
                           static_cast<std::size_t>(what.timed)];
  if (known.engine != what.engine.data() || known.row == nullptr) {
    known = {.engine = what.engine.data(), .row = row_of(*board_, what, group_)};
  }
  return {known.row, what.bytes};
}

}  // namespace hocket::live
