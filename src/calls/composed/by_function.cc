#include "calls/composed/by_function.h"

#include <fmt/format.h>

#include "calls/call/operation.h"
#include "hocket/error.h"

namespace hocket::composed {

using engine::Task;

ByFunction::ByFunction(world::CommunicatorImpl& impl,
                       const engine::Signature& signature,
                       const algorithm::ByOperator::What& what)
    : messages_(impl.engines().messages.get()),
      signature_(signature),
      communicator_(impl.membership().name),
      rank_(what.rank),
      size_(what.size),
      by_operator_(what) {}

Task ByFunction::start(const engine::Call& call) { return carry(call); }

Task ByFunction::carry(engine::Call call) {
  const Arrays arrays = begin(call);
  const algorithm::ByOperator::Combine combined =
      [this](std::byte* left, const std::byte* right, std::size_t units) {
        combine(left, right, units);
      };
  const engine::GroupFacts facts{.rank = rank_, .size = size_};
  algorithm::ByOperator::Fault fault;
  const algorithm::Endpoint at(*messages_, facts, call);
  co_await by_operator_.carry(at, arrays.in, arrays.out, combined, fault);
  if (fault.rank >= 0) raise(fault, call.sequence);
  end();
}

// Throws the operator's failure. All ranks throw it for this call, and the communicator stays
// usable.
void ByFunction::raise(const algorithm::ByOperator::Fault& fault, std::uint64_t sequence) const {
  const std::string_view name = engine::name_of(signature_.kind);
  throw InvalidArgument(
      Status{.code = ErrorCode::kInvalidArgument,
             .message = fmt::format("{} #{} on {}: the operator has failed on rank {}: {}; the "
                                    "communicator can be used further",
                                    name,
                                    sequence,
                                    communicator_,
                                    fault.rank,
                                    fault.text),
             .communicator = communicator_,
             .sequence = sequence,
             .operation = std::string(name),
             .rank = rank_,
             .peer = fault.rank,
             .reason = fault.text});
}

call::Plan plan_of(const Checked& made) {
  const engine::Signature& signature = made.engine->signature();
  return {.call = {.signature = signature, .in = made.in, .out = made.out},
          .engine = made.engine.get(),
          .hash = call::Ledger::hash_of(signature)};
}

namespace {

call::Request request_of(const Checked& made) {
  return {.kind = engine::kind_named(engine::name_of(made.engine->signature())),
          .deadline = made.deadline};
}

std::shared_ptr<call::Operation> started(world::CommunicatorImpl& impl, const Checked& made) {
  world::AnyPlan plan = plan_of(made);
  return impl.start_prepared(plan, request_of(made), made.engine);
}

}  // namespace

void run(world::CommunicatorImpl& impl, const Checked& made) {
  world::AnyPlan plan = plan_of(made);
  impl.run_prepared(plan, request_of(made));
}
Work start(world::CommunicatorImpl& impl, const Checked& made) { return Work(started(impl, made)); }
Prepared prepare(const std::shared_ptr<world::CommunicatorImpl>& impl, const Checked& made) {
  return prepare(impl,
                 {.run = [impl, made] { run(*impl, made); },
                  .start = [impl, made] { return started(*impl, made); }});
}
Prepared prepare(const std::shared_ptr<world::CommunicatorImpl>& impl,
                 const world::PreparedCall::Ways& ways) {
  return Prepared(std::make_shared<world::PreparedCall>(impl, ways));
}

}  // namespace hocket::composed
