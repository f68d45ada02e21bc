#include "monitoring/live/place.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <utility>

#include "foundation/base/place_teller.h"
#include "foundation/base/threads.h"
#include "monitoring/live/desk_layout.h"
#include "monitoring/live/sampler.h"

namespace hocket::live {
namespace {

constexpr std::chrono::nanoseconds kAsksAgain = std::chrono::milliseconds(50);

DeskLayout* desk_at(control::HostControl& host, int place) noexcept {
  auto* const desk = reinterpret_cast<DeskLayout*>(host.at(control::first_block_of(host, place)));
  return desk->manner.load(std::memory_order_acquire) == DeskLayout::kShown ? desk : nullptr;
}

// Number of calls that the rank has begun and ended, in all its groups.
std::uint64_t moves_of(const control::Onlooker& segment, int place) noexcept {
  const DeskLayout* const desk = desk_of(segment, place);
  if (desk == nullptr) return 0;
  std::uint64_t moves = 0;
  for (const GroupSeat& seat : desk->seats) {
    const auto seated = seat.read();
    if (!seated) continue;
    const control::SeenMember member = segment.member(seated->block, seated->rank);
    moves += member.last + member.finished;
  }
  return moves;
}

}  // namespace

void ask_place(control::HostControl& host, int place) noexcept {
  if (!host.is_here(place) || host.state(place) != control::RankState::kAlive) return;
  DeskLayout* const desk = desk_at(host, place);
  if (desk == nullptr || desk->place.tells.load(std::memory_order_relaxed) == 0) return;
  const std::int64_t now =
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  std::int64_t last = desk->place.last_asked.load(std::memory_order_relaxed);
  if (now - last < kAsksAgain.count()) return;
  if (!desk->place.last_asked.compare_exchange_strong(last, now, std::memory_order_relaxed)) return;
  desk->place.asked.fetch_add(1, std::memory_order_seq_cst);
  os::futex_wake_all(desk->place.asked);
}

std::string place_of(const control::Onlooker& segment, int place) {
  const DeskLayout* const desk = desk_of(segment, place);
  if (desk == nullptr) return {};
  const auto told = desk->place.read();
  if (!told || told->moves != moves_of(segment, place)) return {};
  return std::string(told->text.view());
}

// --- The rank that is asked ---------------------------------------------------------------------

// A resource, shared with the thread that answers.
struct PlaceTelling::Answering {
  Answering(std::shared_ptr<control::HostControl> of, PlaceDesk& at, std::uint64_t whose)
      : host(std::move(of)), desk(at), thread(whose) {}

  const std::shared_ptr<control::HostControl> host;
  PlaceDesk& desk;
  const std::uint64_t thread;
  std::atomic<bool> is_under_way{false};
  std::uint64_t answers = 0;  // of who is at it

  // May be kept by the interpreter for any time, and ended there.
  void answer() {
    const base::PlaceTeller tell = base::place_teller();
    const std::string where = tell == nullptr ? std::string() : tell(thread);
    ToldPlace told{.moves = moves_of(control::Onlooker(host->memory()), host->self()), .text = {}};
    told.text = where;
    desk.write(++answers, told);
  }
};

PlaceTelling::PlaceTelling(std::shared_ptr<Answering> answering, os::FutexWord& asked)
    : answering_(std::move(answering)),
      asked_(asked),
      seen_(asked.load(std::memory_order_relaxed)) {}

std::unique_ptr<PlaceTelling> PlaceTelling::make(std::shared_ptr<control::HostControl> host) {
  DeskLayout* const desk = desk_at(*host, host->self());
  if (desk == nullptr || base::place_teller() == nullptr) return nullptr;
  auto answering = std::make_shared<Answering>(
      std::move(host), desk->place, static_cast<std::uint64_t>(::pthread_self()));
  desk->place.tells.store(1, std::memory_order_relaxed);
  return std::unique_ptr<PlaceTelling>(new PlaceTelling(std::move(answering), desk->place.asked));
}

void PlaceTelling::look() noexcept {
  const std::uint32_t asked = asked_.load(std::memory_order_acquire);
  if (asked == seen_ || answering_->is_under_way.exchange(true, std::memory_order_acquire)) return;
  seen_ = asked;
  try {
    base::start_thread("hocket-place", [answering = answering_] {
      try {
        answering->answer();
      } catch (const std::exception&) {  // without memory nothing is said
      }
      answering->is_under_way.store(false, std::memory_order_release);
    }).detach();
  } catch (const std::exception&) {  // then nothing is said
    answering_->is_under_way.store(false, std::memory_order_release);
  }
}

}  // namespace hocket::live
