// The public verbs: each converts its arguments to a Request; CommunicatorImpl does the rest.
#include "hocket/communicator.h"

#include "calls/call/operation.h"
#include "calls/world/communicator_impl.h"
#include "calls/world/prepared_call.h"
#include "calls/world/world.h"
#include "foundation/base/limit.h"
#include "hocket/audit.h"

namespace hocket {

using call::Request;
using engine::Kind;

Prepared::Prepared(std::shared_ptr<world::PreparedCall> call) noexcept : call_(std::move(call)) {}
Prepared::Prepared(Prepared&&) noexcept = default;
Prepared& Prepared::operator=(Prepared&&) noexcept = default;
Prepared::~Prepared() = default;
void Prepared::operator()() { call_->run(); }
Work Prepared::start() { return Work(call_->start()); }

Communicator::Communicator(std::shared_ptr<world::CommunicatorImpl> impl) noexcept
    : impl_(std::move(impl)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

int Communicator::rank() const { return impl_->rank(); }
int Communicator::size() const { return impl_->size(); }
const std::string& Communicator::name() const { return impl_->membership().name; }
std::span<const int> Communicator::world_ranks() const { return impl_->membership().world_ranks; }
std::span<const int> Communicator::hosts() const { return impl_->membership().hosts; }

void Communicator::abort(const std::string& reason) { impl_->abort(reason); }
void Communicator::refuse(const std::string& reason) { impl_->refuse_call(Kind::kNone, reason); }
Communicator Communicator::rebuild(const RebuildOptions& options) {
  try {
    base::require_limit(options.deadline, "deadline");
  } catch (const InvalidArgument& reason) {
    impl_->refuse_rebuild(reason.what());
  }
  return Communicator(impl_->rebuild(options));
}
void Communicator::refuse_rebuild(const std::string& reason) { impl_->refuse_rebuild(reason); }
int Communicator::epoch() const { return impl_->membership().epoch; }
std::optional<Status> Communicator::status() const { return impl_->status(); }
void Communicator::set_deadline(Duration deadline) {
  base::require_limit(deadline, "deadline");
  impl_->set_deadline(deadline);
}
Duration Communicator::deadline() const { return impl_->deadline(); }

void set_audited(Communicator& communicator, bool audited) {
  communicator.impl()->set_audited(audited);
}
bool is_audited(const Communicator& communicator) noexcept {
  return communicator.impl()->is_audited();
}
void Communicator::begin_task(std::uint32_t number) {
  if (number == 0) throw InvalidArgument("begin_task: the number is 0, expected another");
  impl_->world()->host().begin_task(number);
}
bool Communicator::end_task() {
  if (!impl_->world()->is_idle()) return false;
  impl_->world()->host().end_task();
  return true;
}
std::vector<RankCall> Communicator::last_calls() const { return impl_->last_calls(); }
std::vector<RankCall> Communicator::recent_calls() const { return impl_->recent_calls(); }
std::string Communicator::dump(const std::string& directory) const {
  return impl_->dump(directory);
}
void Communicator::close() { impl_->close(); }

namespace {

// The options that every family has.
template <typename Options>
call::Request with(call::Request request, const Options& o) {
  request.deadline = o.deadline;
  request.stream = o.stream;
  return request;
}
call::Request one(Kind kind, ArrayView inout, ReduceOp op = ReduceOp::kSum, int root = 0) {
  return {.kind = kind, .out = inout, .in_place = true, .op = op, .root = root};
}
call::Request two(
    Kind kind, ConstArrayView in, ArrayView out, ReduceOp op = ReduceOp::kSum, int root = 0) {
  return {.kind = kind, .in = in, .out = out, .op = op, .root = root};
}

// The options of each family, as a request's fields.
call::Request ask(Kind kind, ArrayView inout, const ReduceOptions& o) {
  return with(one(kind, inout, o.op), o);
}
call::Request ask(Kind kind, ArrayView inout, const ReduceRootOptions& o) {
  return with(one(kind, inout, o.op, o.root), o);
}
call::Request ask(Kind kind, ArrayView inout, const RootOptions& o) {
  return with(one(kind, inout, ReduceOp::kSum, o.root), o);
}
call::Request ask(Kind kind, ArrayView inout, const CallOptions& o) {
  return with(one(kind, inout), o);
}
call::Request ask(Kind kind, ConstArrayView in, ArrayView out, const ReduceOptions& o) {
  return with(two(kind, in, out, o.op), o);
}
call::Request ask(Kind kind, ConstArrayView in, ArrayView out, const ReduceRootOptions& o) {
  return with(two(kind, in, out, o.op, o.root), o);
}
call::Request ask(Kind kind, ConstArrayView in, ArrayView out, const RootOptions& o) {
  return with(two(kind, in, out, ReduceOp::kSum, o.root), o);
}
call::Request ask(Kind kind, ConstArrayView in, ArrayView out, const CallOptions& o) {
  return with(two(kind, in, out), o);
}

Prepared prepare(const std::shared_ptr<world::CommunicatorImpl>& impl,
                 const call::Request& request) {
  auto call = impl->before_call(
      request.kind, [&] { return std::make_shared<world::PreparedCall>(impl, request); });
  call->prepare();
  return Prepared(std::move(call));
}

}  // namespace

void Communicator::all_reduce(ArrayView inout, const ReduceOptions& o) {
  impl_->run(ask(Kind::kAllReduce, inout, o));
}
void Communicator::all_reduce(ConstArrayView in, ArrayView out, const ReduceOptions& o) {
  impl_->run(ask(Kind::kAllReduce, in, out, o));
}
Work Communicator::all_reduce_async(ArrayView inout, const ReduceOptions& o) {
  return Work(impl_->start(ask(Kind::kAllReduce, inout, o)));
}
Work Communicator::all_reduce_async(BorrowedView in, ArrayView out, const ReduceOptions& o) {
  return Work(impl_->start(ask(Kind::kAllReduce, in, out, o)));
}
Prepared Communicator::prepare_all_reduce(ArrayView inout, const ReduceOptions& o) {
  return prepare(impl_, ask(Kind::kAllReduce, inout, o));
}
Prepared Communicator::prepare_all_reduce(BorrowedView in, ArrayView out, const ReduceOptions& o) {
  return prepare(impl_, ask(Kind::kAllReduce, in, out, o));
}

void Communicator::reduce(ArrayView inout, const ReduceRootOptions& o) {
  impl_->run(ask(Kind::kReduce, inout, o));
}
void Communicator::reduce(ConstArrayView in, ArrayView out, const ReduceRootOptions& o) {
  impl_->run(ask(Kind::kReduce, in, out, o));
}
Work Communicator::reduce_async(ArrayView inout, const ReduceRootOptions& o) {
  return Work(impl_->start(ask(Kind::kReduce, inout, o)));
}
Work Communicator::reduce_async(BorrowedView in, ArrayView out, const ReduceRootOptions& o) {
  return Work(impl_->start(ask(Kind::kReduce, in, out, o)));
}
Prepared Communicator::prepare_reduce(ArrayView inout, const ReduceRootOptions& o) {
  return prepare(impl_, ask(Kind::kReduce, inout, o));
}
Prepared Communicator::prepare_reduce(BorrowedView in, ArrayView out, const ReduceRootOptions& o) {
  return prepare(impl_, ask(Kind::kReduce, in, out, o));
}

void Communicator::scan(ArrayView inout, const ReduceOptions& o) {
  impl_->run(ask(Kind::kScan, inout, o));
}
void Communicator::scan(ConstArrayView in, ArrayView out, const ReduceOptions& o) {
  impl_->run(ask(Kind::kScan, in, out, o));
}
Work Communicator::scan_async(ArrayView inout, const ReduceOptions& o) {
  return Work(impl_->start(ask(Kind::kScan, inout, o)));
}
Work Communicator::scan_async(BorrowedView in, ArrayView out, const ReduceOptions& o) {
  return Work(impl_->start(ask(Kind::kScan, in, out, o)));
}
Prepared Communicator::prepare_scan(ArrayView inout, const ReduceOptions& o) {
  return prepare(impl_, ask(Kind::kScan, inout, o));
}
Prepared Communicator::prepare_scan(BorrowedView in, ArrayView out, const ReduceOptions& o) {
  return prepare(impl_, ask(Kind::kScan, in, out, o));
}

void Communicator::exscan(ArrayView inout, const ReduceOptions& o) {
  impl_->run(ask(Kind::kExscan, inout, o));
}
void Communicator::exscan(ConstArrayView in, ArrayView out, const ReduceOptions& o) {
  impl_->run(ask(Kind::kExscan, in, out, o));
}
Work Communicator::exscan_async(ArrayView inout, const ReduceOptions& o) {
  return Work(impl_->start(ask(Kind::kExscan, inout, o)));
}
Work Communicator::exscan_async(BorrowedView in, ArrayView out, const ReduceOptions& o) {
  return Work(impl_->start(ask(Kind::kExscan, in, out, o)));
}
Prepared Communicator::prepare_exscan(ArrayView inout, const ReduceOptions& o) {
  return prepare(impl_, ask(Kind::kExscan, inout, o));
}
Prepared Communicator::prepare_exscan(BorrowedView in, ArrayView out, const ReduceOptions& o) {
  return prepare(impl_, ask(Kind::kExscan, in, out, o));
}

void Communicator::reduce_scatter(ArrayView inout, const ReduceOptions& o) {
  impl_->run(ask(Kind::kReduceScatter, inout, o));
}
void Communicator::reduce_scatter(ConstArrayView in, ArrayView out, const ReduceOptions& o) {
  impl_->run(ask(Kind::kReduceScatter, in, out, o));
}
Work Communicator::reduce_scatter_async(ArrayView inout, const ReduceOptions& o) {
  return Work(impl_->start(ask(Kind::kReduceScatter, inout, o)));
}
Work Communicator::reduce_scatter_async(BorrowedView in, ArrayView out, const ReduceOptions& o) {
  return Work(impl_->start(ask(Kind::kReduceScatter, in, out, o)));
}
Prepared Communicator::prepare_reduce_scatter(ArrayView inout, const ReduceOptions& o) {
  return prepare(impl_, ask(Kind::kReduceScatter, inout, o));
}
Prepared Communicator::prepare_reduce_scatter(BorrowedView in,
                                              ArrayView out,
                                              const ReduceOptions& o) {
  return prepare(impl_, ask(Kind::kReduceScatter, in, out, o));
}

void Communicator::broadcast(ArrayView inout, const RootOptions& o) {
  impl_->run(ask(Kind::kBroadcast, inout, o));
}
void Communicator::broadcast(ConstArrayView in, ArrayView out, const RootOptions& o) {
  impl_->run(ask(Kind::kBroadcast, in, out, o));
}
Work Communicator::broadcast_async(ArrayView inout, const RootOptions& o) {
  return Work(impl_->start(ask(Kind::kBroadcast, inout, o)));
}
Work Communicator::broadcast_async(BorrowedView in, ArrayView out, const RootOptions& o) {
  return Work(impl_->start(ask(Kind::kBroadcast, in, out, o)));
}
Prepared Communicator::prepare_broadcast(ArrayView inout, const RootOptions& o) {
  return prepare(impl_, ask(Kind::kBroadcast, inout, o));
}
Prepared Communicator::prepare_broadcast(BorrowedView in, ArrayView out, const RootOptions& o) {
  return prepare(impl_, ask(Kind::kBroadcast, in, out, o));
}

void Communicator::all_gather(ArrayView inout, const CallOptions& o) {
  impl_->run(ask(Kind::kAllGather, inout, o));
}
void Communicator::all_gather(ConstArrayView in, ArrayView out, const CallOptions& o) {
  impl_->run(ask(Kind::kAllGather, in, out, o));
}
Work Communicator::all_gather_async(ArrayView inout, const CallOptions& o) {
  return Work(impl_->start(ask(Kind::kAllGather, inout, o)));
}
Work Communicator::all_gather_async(BorrowedView in, ArrayView out, const CallOptions& o) {
  return Work(impl_->start(ask(Kind::kAllGather, in, out, o)));
}
Prepared Communicator::prepare_all_gather(ArrayView inout, const CallOptions& o) {
  return prepare(impl_, ask(Kind::kAllGather, inout, o));
}
Prepared Communicator::prepare_all_gather(BorrowedView in, ArrayView out, const CallOptions& o) {
  return prepare(impl_, ask(Kind::kAllGather, in, out, o));
}

void Communicator::gather(ArrayView inout, const RootOptions& o) {
  impl_->run(ask(Kind::kGather, inout, o));
}
void Communicator::gather(ConstArrayView in, ArrayView out, const RootOptions& o) {
  impl_->run(ask(Kind::kGather, in, out, o));
}
Work Communicator::gather_async(ArrayView inout, const RootOptions& o) {
  return Work(impl_->start(ask(Kind::kGather, inout, o)));
}
Work Communicator::gather_async(BorrowedView in, ArrayView out, const RootOptions& o) {
  return Work(impl_->start(ask(Kind::kGather, in, out, o)));
}
Prepared Communicator::prepare_gather(ArrayView inout, const RootOptions& o) {
  return prepare(impl_, ask(Kind::kGather, inout, o));
}
Prepared Communicator::prepare_gather(BorrowedView in, ArrayView out, const RootOptions& o) {
  return prepare(impl_, ask(Kind::kGather, in, out, o));
}

void Communicator::scatter(ArrayView inout, const RootOptions& o) {
  impl_->run(ask(Kind::kScatter, inout, o));
}
void Communicator::scatter(ConstArrayView in, ArrayView out, const RootOptions& o) {
  impl_->run(ask(Kind::kScatter, in, out, o));
}
Work Communicator::scatter_async(ArrayView inout, const RootOptions& o) {
  return Work(impl_->start(ask(Kind::kScatter, inout, o)));
}
Work Communicator::scatter_async(BorrowedView in, ArrayView out, const RootOptions& o) {
  return Work(impl_->start(ask(Kind::kScatter, in, out, o)));
}
Prepared Communicator::prepare_scatter(ArrayView inout, const RootOptions& o) {
  return prepare(impl_, ask(Kind::kScatter, inout, o));
}
Prepared Communicator::prepare_scatter(BorrowedView in, ArrayView out, const RootOptions& o) {
  return prepare(impl_, ask(Kind::kScatter, in, out, o));
}

void Communicator::all_to_all(ArrayView inout, const CallOptions& o) {
  impl_->run(ask(Kind::kAllToAll, inout, o));
}
void Communicator::all_to_all(ConstArrayView in, ArrayView out, const CallOptions& o) {
  impl_->run(ask(Kind::kAllToAll, in, out, o));
}
Work Communicator::all_to_all_async(ArrayView inout, const CallOptions& o) {
  return Work(impl_->start(ask(Kind::kAllToAll, inout, o)));
}
Work Communicator::all_to_all_async(BorrowedView in, ArrayView out, const CallOptions& o) {
  return Work(impl_->start(ask(Kind::kAllToAll, in, out, o)));
}
Prepared Communicator::prepare_all_to_all(ArrayView inout, const CallOptions& o) {
  return prepare(impl_, ask(Kind::kAllToAll, inout, o));
}
Prepared Communicator::prepare_all_to_all(BorrowedView in, ArrayView out, const CallOptions& o) {
  return prepare(impl_, ask(Kind::kAllToAll, in, out, o));
}

Work Communicator::stream_mark(StreamRef stream) { return Work(impl_->mark_stream(stream)); }

void Communicator::barrier(const CallOptions& o) {
  impl_->run({.kind = Kind::kBarrier, .deadline = o.deadline, .stream = o.stream});
}
Work Communicator::barrier_async(const CallOptions& o) {
  return Work(impl_->start({.kind = Kind::kBarrier, .deadline = o.deadline, .stream = o.stream}));
}

}  // namespace hocket
