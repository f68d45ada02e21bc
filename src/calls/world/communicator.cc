// The public verbs: each converts its arguments to a Request; CommunicatorImpl does the rest.
#include "hocket/communicator.h"

#include <fmt/format.h>

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

void Communicator::abort(const std::string& reason) { impl_->failures.abort(reason); }
struct WholeCall::Scope {
  std::shared_ptr<world::CommunicatorImpl> owner;
  call::Core::Whole whole;
};

WholeCall::WholeCall(Communicator& comm, std::string_view whole) {
  const Kind kind = engine::kind_named(whole);
  if (kind == Kind::kNone) {
    throw InvalidArgument(fmt::format("WholeCall: hocket has no call \"{}\"", whole));
  }
  scope_.reset(new Scope{comm.impl(), {*comm.impl(), kind}});
}
WholeCall::~WholeCall() = default;

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
std::optional<Status> Communicator::status() const { return impl_->failures.status(); }
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
  impl_->world()->host().tasks.begin(number);
}
bool Communicator::end_task() {
  if (!impl_->world()->is_idle()) return false;
  impl_->world()->host().tasks.end();
  return true;
}
std::vector<RankCall> Communicator::last_calls() const { return impl_->failures.last_calls(); }
std::vector<RankCall> Communicator::recent_calls() const { return impl_->failures.recent_calls(); }
std::string Communicator::dump(const std::string& directory) const {
  return impl_->failures.dump(directory);
}
void Communicator::close() { impl_->close(); }

namespace {

// Adds the options of a family to a request.
template <typename Options>
call::Request with(call::Request request, const Options& o) {
  if constexpr (requires { o.op; }) request.op = o.op;
  if constexpr (requires { o.root; }) request.root = o.root;
  request.deadline = o.deadline;
  request.stream = o.stream;
  return request;
}
template <typename Options>
call::Request ask(Kind kind, ArrayView inout, const Options& o) {
  return with({.kind = kind, .out = inout, .in_place = true}, o);
}
template <typename Options>
call::Request ask(Kind kind, ConstArrayView in, ArrayView out, const Options& o) {
  return with({.kind = kind, .in = in, .out = out}, o);
}

Prepared prepare(const std::shared_ptr<world::CommunicatorImpl>& impl,
                 const call::Request& request) {
  auto call = impl->before_call(
      request.kind, [&] { return std::make_shared<world::PreparedCall>(impl, request); });
  call->prepare();
  return Prepared(std::move(call));
}

}  // namespace

// Defines the functions of a verb: the call, its start and its preparation, each in place and from
// one array to another.
#define VERB(verb, kind, Options)                                                                 \
  void Communicator::verb(ArrayView inout, const Options& o) { impl_->run(ask(kind, inout, o)); } \
  void Communicator::verb(ConstArrayView in, ArrayView out, const Options& o) {                   \
    impl_->run(ask(kind, in, out, o));                                                            \
  }                                                                                               \
  Work Communicator::verb##_async(ArrayView inout, const Options& o) {                            \
    return Work(impl_->start(ask(kind, inout, o)));                                               \
  }                                                                                               \
  Work Communicator::verb##_async(BorrowedView in, ArrayView out, const Options& o) {             \
    return Work(impl_->start(ask(kind, in, out, o)));                                             \
  }                                                                                               \
  Prepared Communicator::prepare_##verb(ArrayView inout, const Options& o) {                      \
    return prepare(impl_, ask(kind, inout, o));                                                   \
  }                                                                                               \
  Prepared Communicator::prepare_##verb(BorrowedView in, ArrayView out, const Options& o) {       \
    return prepare(impl_, ask(kind, in, out, o));                                                 \
  }

VERB(all_reduce, Kind::kAllReduce, ReduceOptions)
VERB(reduce, Kind::kReduce, ReduceRootOptions)
VERB(scan, Kind::kScan, ReduceOptions)
VERB(exscan, Kind::kExscan, ReduceOptions)
VERB(reduce_scatter, Kind::kReduceScatter, ReduceOptions)
VERB(broadcast, Kind::kBroadcast, RootOptions)
VERB(all_gather, Kind::kAllGather, CallOptions)
VERB(gather, Kind::kGather, RootOptions)
VERB(scatter, Kind::kScatter, RootOptions)
VERB(all_to_all, Kind::kAllToAll, CallOptions)

#undef VERB

Work Communicator::stream_mark(StreamRef stream) { return Work(impl_->mark_stream(stream)); }

void Communicator::barrier(const CallOptions& o) {
  impl_->run({.kind = Kind::kBarrier, .deadline = o.deadline, .stream = o.stream});
}
Work Communicator::barrier_async(const CallOptions& o) {
  return Work(impl_->start({.kind = Kind::kBarrier, .deadline = o.deadline, .stream = o.stream}));
}

}  // namespace hocket
