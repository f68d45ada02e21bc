#include "engines/mpi/mpi_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <vector>

#include "engines/mpi/staging.h"
#include "foundation/base/deadline.h"
#include "hocket/error.h"

namespace hocket::engines::mpi {

using engine::Call;
using engine::Kind;
using engine::Score;
using engine::Signature;
using engine::Task;

namespace {

// MPI fails if the parts of a call do not fit together. The ranks' records are known here by then,
// or soon, and explain the failure better.
constexpr std::chrono::seconds kForAnExplanation{3};

// The flight of a task. Abandoned with the task.
class Boarded {
 public:
  explicit Boarded(MpiLibrary& library) : library_(library) {}
  ~Boarded() {
    if (flight_->request != nullptr) {
      library_.abandon(std::move(flight_));
    } else if (flight_->failed) {
      static_cast<void>(flight_.release());  // no request is left that would say when MPI is done
    }
  }
  Boarded(const Boarded&) = delete;
  Boarded& operator=(const Boarded&) = delete;
  Flight& flight() noexcept { return *flight_; }

 private:
  MpiLibrary& library_;
  std::unique_ptr<Flight> flight_ = std::make_unique<Flight>();
};

}  // namespace

// Estimates the time of the best algorithm over the same network, plus two copies.
std::optional<Score> MpiEngine::score(const Signature& s) const noexcept {
  if (s.memory != MemoryKind::kHost || !kCarries.has(s.kind)) return std::nullopt;
  const auto n = static_cast<std::uint64_t>(facts_.size);
  const bool whole = !is_listed(s.kind) && !has_parts(s.kind);
  const std::uint64_t most = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  if (s.count > (whole ? most : most / n)) return std::nullopt;
  const algorithm::NetworkCosts& network =
      facts_.one_host ? algorithm::kSharedMemory : algorithm::kTcp;
  double least = 0;
  for (const algorithm::Way& way : algorithm::ways_of(s.kind)) {
    const double time =
        algorithm::predicted_us(way.algorithm, s, facts_.size, network, algorithm::Pieces{});
    if (least == 0 || time < least) least = time;
  }
  return Score{least + 2 * network.gamma * static_cast<double>(bytes_of(s))};
}

Task MpiEngine::start(const Call& call) { return carry(call); }

// Forgets the oldest ones, as the other ranks do.
void MpiEngine::leave_out(Skipped skipped) {
  constexpr std::size_t kMost = 16;
  if (!elsewhere_) return;
  skipped_.push_back(skipped);
  if (skipped_.size() > kMost) skipped_.pop_front();
}

void MpiEngine::skip(std::uint64_t sequence) { leave_out({.sequence = sequence}); }

// A call whose task may end before MPI has begun it.
class MpiEngine::Begun {
 public:
  Begun(MpiEngine& engine, std::uint64_t sequence) : engine_(engine), sequence_(sequence) {}
  ~Begun() {
    if (!begun_) engine_.leave_out({.sequence = sequence_, .given_up = true});
  }
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;
  void set() noexcept { begun_ = true; }

 private:
  MpiEngine& engine_;
  std::uint64_t sequence_;
  bool begun_ = false;
};

// Takes part in a call of the other ranks. Its results are not used.
void MpiEngine::make_up(std::uint64_t sequence, const Signature& signature) {
  if (is_listed(signature.kind) || !is_carried(signature.kind)) {
    throw Error(
        {.code = ErrorCode::kSystem,
         .message = fmt::format(
             "engine mpi: call #{} was refused here and begun elsewhere, and MPI cannot "
             "leave out {}, of which only those who made it know how; make the communicator "
             "anew",
             sequence,
             engine::name_of(signature.kind))});
  }
  const std::size_t bytes = bytes_of(signature) * static_cast<std::size_t>(facts_.size);
  std::vector<std::byte> nothing(bytes);
  Call call;
  call.sequence = sequence;
  call.signature = signature;
  call.in = call.out = nothing.data();
  auto flight = std::make_unique<Flight>();
  stage_in(*flight, call, facts_);
  MpiLibrary& library = comm_->library();
  library.begin(*comm_, *flight);
  library.abandon(std::move(flight));
}

Task MpiEngine::carry(Call call) {
  MpiLibrary& library = comm_->library();
  Begun begun(*this, call.sequence);
  while (!skipped_.empty()) {
    const auto [sequence, given_up] = skipped_.front();
    Elsewhere found;
    co_await engine::until([&, sequence = sequence, given_up = given_up] {
      found = elsewhere_(sequence, given_up);
      if (!found.known && ring_) ring_();
      return found.known;
    });
    skipped_.pop_front();
    if (found.signature) make_up(sequence, *found.signature);
  }
  Boarded boarded(library);
  Flight& flight = boarded.flight();
  stage_in(flight, call, facts_);
  library.begin(*comm_, flight);
  begun.set();
  std::optional<SystemError> failure;
  std::optional<base::Deadline> until;
  co_await engine::until([&] {
    try {
      if (!failure && library.test(flight)) return true;
    } catch (const SystemError& error) {
      failure = error;
      until = base::Deadline::in(kForAnExplanation);
    }
    if (failure && until->has_passed()) throw *failure;
    if (ring_) ring_();
    return false;
  });
  stage_out(flight, call, facts_);
}

}  // namespace hocket::engines::mpi
