// Reductions by an operator of the program.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "calls/call/membership.h"
#include "calls/call/request.h"
#include "calls/composed/by_function.h"
#include "calls/world/communicator_impl.h"
#include "engine/made_of_calls.h"
#include "foundation/base/hash.h"
#include "foundation/base/limit.h"
#include "hocket/error.h"
#include "hocket/operator.h"

namespace hocket {
namespace {

using engine::Kind;
using engine::Signature;

// A checked call of one rank.
class OwnReduction final : public composed::ByFunction {
 public:
  OwnReduction(world::CommunicatorImpl& impl,
               const Signature& signature,
               const algorithm::ByOperator::What& what,
               const Operator& op)
      : ByFunction(impl, signature, what), op_(op) {}

  bool runs_program() const noexcept override { return true; }

 private:
  Arrays begin(const engine::Call& call) override {
    return {static_cast<const std::byte*>(call.in), static_cast<std::byte*>(call.out)};
  }
  void combine(std::byte* left, const std::byte* right, std::size_t units) override {
    op_.combine(left, right, units * op_.unit, op_.context);
  }

  const Operator op_;
};

// The arguments of a call.
class AskedReduction {
 public:
  AskedReduction(Communicator& comm,
                 Kind kind,
                 ConstArrayView in,
                 ArrayView out,
                 const Operator& op,
                 const OperatorOptions& options)
      : impl_(comm.impl()),
        kind_(kind),
        in_(in),
        out_(out),
        op_(op),
        root_(kind == Kind::kReduce ? options.root : 0),
        deadline_(options.deadline),
        n_(static_cast<std::size_t>(std::max(comm.size(), 1))),
        rank_(static_cast<std::size_t>(std::max(comm.rank(), 0))) {}

  void run() const { composed::run(*impl_, made()); }
  Work start() const { return composed::start(*impl_, made()); }
  Prepared prepare() const { return composed::prepare(impl_, made()); }

 private:
  // Checks the arguments, and makes the engine of this call. An error is reported to the other
  // ranks.
  composed::Checked made() const {
    return impl_->before_call(kind_, [&] {
      require_sound();
      base::require_limit(deadline_, "deadline");
      return composed::Checked{
          .engine = std::make_shared<OwnReduction>(
              *impl_,
              signature(),
              algorithm::ByOperator::What{.kind = kind_,
                                          .root = root_,
                                          .units = length() / op_.unit,
                                          .unit_bytes = op_.unit * size_of(in_.dtype()),
                                          .rank = static_cast<int>(rank_),
                                          .size = static_cast<int>(n_)},
              op_),
          .in = in_.data(),
          .out = takes() ? out_.data() : nullptr,
          .deadline = deadline_};
    });
  }
  Signature signature() const {
    const auto order =
        in_.order() == MemoryOrder::kFortran ? MemoryOrder::kFortran : MemoryOrder::kC;
    const std::uint64_t agreed =
        base::mix(base::mix(engine::digest_of(order), op_.unit), op_.identity);
    return {.kind = kind_,
            .dtype = in_.dtype(),
            .root = root_,
            .count = length(),
            .digest = engine::digest_by_operator(kind_, agreed)};
  }
  bool is_scattered() const { return kind_ == Kind::kReduceScatter; }
  bool takes() const {
    if (kind_ == Kind::kReduce) return static_cast<std::size_t>(root_) == rank_;
    return kind_ != Kind::kExscan || rank_ != 0;
  }

  void require_sound() const {
    if (op_.combine == nullptr) throw InvalidArgument("the operator has no function");
    if (op_.unit == 0) throw InvalidArgument("the operator's unit is 0; 1 is one element");
    require_on_host(in_, "in");
    if (op_.dtype && *op_.dtype != in_.dtype()) {
      throw InvalidArgument(fmt::format(
          "in holds {}, and the operator is for {}", name_of(in_.dtype()), name_of(*op_.dtype)));
    }
    if (kind_ == Kind::kReduce) call::require_rank("root", root_, static_cast<int>(n_));
    if (is_scattered() && in_.count() % n_ != 0) {
      throw InvalidArgument(
          fmt::format("in has {} elements, which do not divide among {} ranks", in_.count(), n_));
    }
    if (length() % op_.unit != 0) {
      throw InvalidArgument(
          fmt::format("{} elements are no whole number of the operator's {}", length(), op_.unit));
    }
    if (takes()) require_fitting_out();
  }
  static void require_on_host(ConstArrayView array, const char* name) {
    call::require_array(array, name);
    if (array.memory() == MemoryKind::kHost) return;
    throw InvalidArgument(
        fmt::format("{} lies in a GPU's memory, where an operator of one's own cannot work; copy "
                    "it to the host's",
                    name));
  }
  void require_fitting_out() const {
    require_on_host(out_, "out");
    if (out_.dtype() != in_.dtype() || out_.count() != length()) {
      throw InvalidArgument(fmt::format("out is {}[{}], expected {}[{}]",
                                        name_of(out_.dtype()),
                                        out_.count(),
                                        name_of(in_.dtype()),
                                        length()));
    }
    const auto a = reinterpret_cast<std::uintptr_t>(in_.data());
    const auto b = reinterpret_cast<std::uintptr_t>(out_.data());
    if (a == b || out_.bytes() == 0 || a + in_.bytes() <= b || b + out_.bytes() <= a) return;
    throw InvalidArgument(
        "in and out overlap without being the same array; use one array for both, or two apart");
  }
  // Returns the number of elements of a result: for a reduce_scatter, of one rank's share.
  std::size_t length() const { return is_scattered() ? in_.count() / n_ : in_.count(); }

  const std::shared_ptr<world::CommunicatorImpl>& impl_;
  const Kind kind_;
  const ConstArrayView in_;
  const ArrayView out_;
  const Operator& op_;
  const int root_;
  const std::optional<Duration> deadline_;
  const std::size_t n_;
  const std::size_t rank_;
};

}  // namespace

// Defines the functions of a verb: the call, its start and its preparation.
#define VERB(verb, kind)                                               \
  void verb(Communicator& comm,                                        \
            ConstArrayView in,                                         \
            ArrayView out,                                             \
            const Operator& op,                                        \
            const OperatorOptions& options) {                          \
    AskedReduction(comm, kind, in, out, op, options).run();            \
  }                                                                    \
  Work verb##_async(Communicator& comm,                                \
                    BorrowedView in,                                   \
                    ArrayView out,                                     \
                    const Operator& op,                                \
                    const OperatorOptions& options) {                  \
    return AskedReduction(comm, kind, in, out, op, options).start();   \
  }                                                                    \
  Prepared prepare_##verb(Communicator& comm,                          \
                          BorrowedView in,                             \
                          ArrayView out,                               \
                          const Operator& op,                          \
                          const OperatorOptions& options) {            \
    return AskedReduction(comm, kind, in, out, op, options).prepare(); \
  }

VERB(all_reduce, Kind::kAllReduce)
VERB(reduce, Kind::kReduce)
VERB(reduce_scatter, Kind::kReduceScatter)
VERB(scan, Kind::kScan)
VERB(exscan, Kind::kExscan)

#undef VERB

}  // namespace hocket
