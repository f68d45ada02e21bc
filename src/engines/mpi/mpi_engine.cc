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

// The time between an error of MPI and its report. MPI fails if the calls of the ranks differ. Then
// the records of the ranks explain the failure better, and they arrive within this time.
constexpr std::chrono::seconds kForAnExplanation{3};

// Owns the Flight of one task. If the task is destroyed before the call has ended, the Flight is
// left to MPI, which may still use its memory. A resource.
class OwnedFlight {
 public:
  explicit OwnedFlight(MpiLibrary& library) : library_(library) {}
  ~OwnedFlight() {
    if (flight_->request != nullptr) {
      library_.abandon(std::move(flight_));
    } else if (flight_->failed) {
      static_cast<void>(flight_.release());  // never freed: nothing tells when MPI is done with it
    }
  }
  OwnedFlight(const OwnedFlight&) = delete;
  OwnedFlight& operator=(const OwnedFlight&) = delete;
  Flight& flight() noexcept { return *flight_; }

 private:
  MpiLibrary& library_;
  std::unique_ptr<Flight> flight_ = std::make_unique<Flight>();
};

}  // namespace

// Estimates the time as that of the fastest algorithm over the same network, plus two copies.
std::optional<Score> MpiEngine::score(const Signature& s) const noexcept {
  if (s.memory != MemoryKind::kHost || !kCarries.has(s.kind)) return std::nullopt;
  const auto n = static_cast<std::uint64_t>(facts_.size);
  const bool whole = !is_listed(s.kind) && !has_parts(s.kind);
  const std::uint64_t most = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  if (s.count > (whole ? most : most / n)) return std::nullopt;
  const algorithm::NetworkCosts& network =
      facts_.one_host ? algorithm::kSharedMemory : algorithm::kTcp;
  const double least = algorithm::least_predicted_us(s, facts_.size, network, algorithm::Pieces{});
  return Score{least + 2 * network.gamma * static_cast<double>(bytes_of(s))};
}

Task MpiEngine::start(const Call& call) { return carry(call); }

// Records a call that this rank has not made by MPI. Every rank keeps only the latest kMost such
// calls.
void MpiEngine::leave_out(Skipped skipped) {
  constexpr std::size_t kMost = 16;
  if (!elsewhere_) return;
  skipped_.push_back(skipped);
  if (skipped_.size() > kMost) skipped_.pop_front();
}

void MpiEngine::skip(std::uint64_t sequence) { leave_out({.sequence = sequence}); }

// A guard for a task that may end before MPI has begun its call. In this case the destructor
// records the call as left out.
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

// Makes up for a call that the other ranks have made: makes the same call with zeros. The results
// are not used.
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
  OwnedFlight owned(library);
  Flight& flight = owned.flight();
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
