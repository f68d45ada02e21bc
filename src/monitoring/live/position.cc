#include "monitoring/live/position.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <utility>

#include "foundation/base/place_teller.h"
#include "foundation/base/threads.h"
#include "monitoring/live/board_layout.h"
#include "monitoring/live/sampler.h"
#include "monitoring/live/status_board.h"

namespace hocket::live {
namespace {

constexpr std::chrono::nanoseconds kAsksAgain = std::chrono::milliseconds(50);

// Number of calls that the rank has begun and ended, in all its groups.
std::uint64_t moves_of(const control::Onlooker& segment, int place) noexcept {
  const BoardLayout* const board = board_of(segment, place);
  if (board == nullptr) return 0;
  std::uint64_t moves = 0;
  for (const BoardEntry& entry : board->groups) {
    const auto content = entry.read();
    if (!content) continue;
    const control::SeenMember member = segment.member(content->block, content->rank);
    moves += member.last + member.finished;
  }
  return moves;
}

}  // namespace

void ask_position(control::HostControl& host, int place) noexcept {
  if (!host.is_here(place) || host.liveness.state(place) != control::RankState::kAlive) return;
  BoardLayout* const board = board_at(host.memory, place);
  if (board == nullptr || board->place.tells.load(std::memory_order_relaxed) == 0) return;
  const std::int64_t now =
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  std::int64_t last = board->place.last_asked.load(std::memory_order_relaxed);
  if (now - last < kAsksAgain.count()) return;
  if (!board->place.last_asked.compare_exchange_strong(last, now, std::memory_order_relaxed))
    return;
  board->place.asked.fetch_add(1, std::memory_order_seq_cst);
  os::futex_wake_all(board->place.asked);
}

std::string place_of(const control::Onlooker& segment, int place) {
  const BoardLayout* const board = board_of(segment, place);
  if (board == nullptr) return {};
  const auto told = board->place.read();
  if (!told || told->moves != moves_of(segment, place)) return {};
  return std::string(told->text.view());
}

// --- The rank that is asked ---------------------------------------------------------------------

// A resource, shared with the thread that answers.
struct PositionReporter::Answering {
  Answering(std::shared_ptr<control::HostMemory> of, PositionQuestion& at, std::uint64_t whose)
      : memory(std::move(of)), board(at), thread(whose) {}

  const std::shared_ptr<control::HostMemory> memory;
  PositionQuestion& board;
  const std::uint64_t thread;
  std::atomic<bool> is_under_way{false};
  std::uint64_t answers = 0;  // number of the last answer; only the answering thread uses it

  // May block in the Python interpreter for any time. The interpreter may end this thread at exit.
  void answer() {
    const base::PlaceTeller tell = base::place_teller();
    const std::string where = tell == nullptr ? std::string() : tell(thread);
    ToldPosition told{.moves = moves_of(control::Onlooker(memory->whole()), memory->self()),
                      .text = {}};
    told.text = where;
    board.write(++answers, told);
  }
};

PositionReporter::PositionReporter(std::shared_ptr<Answering> answering, os::FutexWord& asked)
    : answering_(std::move(answering)),
      asked_(asked),
      seen_(asked.load(std::memory_order_relaxed)) {}

std::unique_ptr<PositionReporter> PositionReporter::make(
    std::shared_ptr<control::HostMemory> memory) {
  BoardLayout* const board = board_at(*memory, memory->self());
  if (board == nullptr || base::place_teller() == nullptr) return nullptr;
  auto answering = std::make_shared<Answering>(
      std::move(memory), board->place, static_cast<std::uint64_t>(::pthread_self()));
  board->place.tells.store(1, std::memory_order_relaxed);
  return std::unique_ptr<PositionReporter>(
      new PositionReporter(std::move(answering), board->place.asked));
}

void PositionReporter::look() noexcept {
  const std::uint32_t asked = asked_.load(std::memory_order_acquire);
  if (asked == seen_ || answering_->is_under_way.exchange(true, std::memory_order_acquire)) return;
  seen_ = asked;
  try {
    base::start_thread("hocket-place", [answering = answering_] {
      try {
        answering->answer();
      } catch (const std::exception&) {  // out of memory: no answer
      }
      answering->is_under_way.store(false, std::memory_order_release);
    }).detach();
  } catch (const std::exception&) {  // no thread could be started: no answer
    answering_->is_under_way.store(false, std::memory_order_release);
  }
}

}  // namespace hocket::live
