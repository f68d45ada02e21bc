// Calls that combine data with a function of the program or of hocket. Each is one call, however
// many messages it takes. So it can be started, prepared and cancelled like any other call.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "calls/call/ledger.h"
#include "calls/call/planner.h"
#include "calls/world/communicator_impl.h"
#include "calls/world/prepared_call.h"
#include "engine/engine.h"
#include "engines/algorithm/by_operator.h"
#include "hocket/communicator.h"
#include "hocket/work.h"

namespace hocket::composed {

// A resource: carries one call at a time, of one signature. It is not one of the group's engines.
// It must outlive its tasks.
class ByFunction : public engine::CollectiveEngine {
 public:
  ByFunction(world::CommunicatorImpl& impl,
             const engine::Signature& signature,
             const algorithm::ByOperator::What& what);

  std::string_view name() const noexcept override { return "algorithm"; }
  std::optional<engine::Score> score(const engine::Signature&) const noexcept override {
    return std::nullopt;
  }
  engine::Task start(const engine::Call& call) override;

  const engine::Signature& signature() const noexcept { return signature_; }

 protected:
  // This rank's inputs and outputs in units. They are available from the start of the call.
  struct Arrays {
    const std::byte* in;
    std::byte* out;
  };
  virtual Arrays begin(const engine::Call& call) = 0;
  virtual void combine(std::byte* left, const std::byte* right, std::size_t units) = 0;
  virtual void end() {}

 private:
  engine::Task carry(engine::Call call);
  [[noreturn]] void raise(const algorithm::ByOperator::Fault& fault, std::uint64_t sequence) const;

  engine::PointToPoint* const messages_;
  const engine::Signature signature_;
  const std::string communicator_;
  const int rank_;
  const int size_;
  algorithm::ByOperator by_operator_;
};

// A checked call, to be run, started or prepared. Audits read `in` and `out`.
struct Checked {
  std::shared_ptr<ByFunction> engine;
  const void* in = nullptr;
  void* out = nullptr;
  std::optional<Duration> deadline = {};
};
void run(world::CommunicatorImpl& impl, const Checked& made);
Work start(world::CommunicatorImpl& impl, const Checked& made);
Prepared prepare(const std::shared_ptr<world::CommunicatorImpl>& impl, const Checked& made);
Prepared prepare(const std::shared_ptr<world::CommunicatorImpl>& impl,
                 const world::PreparedCall::Ways& ways);
call::Plan plan_of(const Checked& made);

}  // namespace hocket::composed
