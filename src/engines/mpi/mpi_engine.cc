#include "engines/mpi/mpi_engine.h"

#include <algorithm>
#include <limits>

#include "engines/mpi/staging.h"

namespace hocket::engines::mpi {

using engine::Call;
using engine::Kind;
using engine::Score;
using engine::Signature;
using engine::Task;

namespace {

// A flight of a task: given up with it.
class Boarded {
 public:
  explicit Boarded(Library& library) : library_(library) {}
  ~Boarded() {
    if (flight_->request != nullptr) library_.abandon(std::move(flight_));
  }
  Boarded(const Boarded&) = delete;
  Boarded& operator=(const Boarded&) = delete;
  Flight& flight() noexcept { return *flight_; }

 private:
  Library& library_;
  std::unique_ptr<Flight> flight_ = std::make_unique<Flight>();
};

}  // namespace

// As the best of the algorithms would take over the same network, and the two copies.
std::optional<Score> MpiEngine::score(const Signature& s) const noexcept {
  if (s.memory != MemoryKind::kHost || s.kind == Kind::kNone || s.kind > Kind::kAllToAllV) {
    return std::nullopt;
  }
  const auto n = static_cast<std::uint64_t>(facts_.size);
  const bool whole = s.kind < Kind::kReduceScatter;
  const std::uint64_t most = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  if (s.count > (whole ? most : most / n)) return std::nullopt;
  const algorithm::Network& network = facts_.one_host ? algorithm::kSharedMemory : algorithm::kTcp;
  double least = 0;
  for (const algorithm::Way& way : algorithm::ways_of(s.kind)) {
    const double time =
        algorithm::predicted_us(way.algorithm, s, facts_.size, network, algorithm::Pieces{});
    if (least == 0 || time < least) least = time;
  }
  return Score{least + 2 * network.gamma * static_cast<double>(bytes_of(s))};
}

Task MpiEngine::start(const Call& call) { return carry(call); }

Task MpiEngine::carry(Call call) {
  Library& library = comm_->library();
  Boarded boarded(library);
  Flight& flight = boarded.flight();
  stage_in(flight, call, facts_);
  library.begin(*comm_, flight);
  co_await engine::until([&] {
    if (library.test(flight)) return true;
    if (ring_) ring_();
    return false;
  });
  stage_out(flight, call, facts_);
}

}  // namespace hocket::engines::mpi
