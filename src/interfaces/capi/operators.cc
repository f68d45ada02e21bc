// Reductions by a function of the program's own; argmin and argmax.
#include <memory>
#include <new>
#include <string>

#include "hocket/extremes.h"
#include "hocket/operator.h"
#include "interfaces/capi/forms.h"

using hocket::capi::Collective;

namespace {

// Adapts C's function to C++: calls the function of the hocket_operator that `context` points to.
void combined(void* left, const void* right, std::size_t count, void* context) {
  const auto* const op = static_cast<const hocket_operator*>(context);
  const int code = op->combine(left, right, count, op->context);
  if (code != 0) throw hocket::InvalidArgument("it returned " + std::to_string(code));
}

class ByOperator : public Collective {
 public:
  ByOperator(hocket_comm* comm, const hocket_operator* op, const hocket_call_options* options)
      : Collective(comm, options) {
    if (op == nullptr) refuse()("op is null; it has the function");
    const hocket_operator known = hocket::capi::read(refuse(), op, "hocket_operator", "op");
    if (known.combine == nullptr) refuse()("op->combine is null; it is the function");
    try {
      kept_ = std::make_shared<hocket_operator>(known);
    } catch (const std::bad_alloc&) {
      refuse()("this rank got no memory for the operator");
    }
    op_ = {.combine = &combined, .context = kept_.get(), .unit = known.unit == 0 ? 1 : known.unit};
  }

  template <typename Start>
  void start(hocket_work** work, const Start& start) const {
    Collective::start(work, start);
    (*work)->keep = kept_;
  }
  template <typename Make>
  void prepare(hocket_prepared** prepared, const Make& make) const {
    Collective::prepare(prepared, make, kept_);
  }

  // `verb` takes a communicator, two arrays, the operator and options.
  template <typename Verb>
  auto by(const hocket_array* in, const hocket_array* out, int root, const Verb& verb) const {
    const hocket_array* const given = in == nullptr ? out : in;
    if (given == nullptr) refuse()("in and out are both null");
    const hocket::OperatorOptions options{.root = root, .deadline = plain().deadline};
    const hocket::ArrayView to =
        out == nullptr ? hocket::ArrayView(nullptr, 0, input(given).dtype()) : output(out);
    return verb(comm(), in == nullptr ? hocket::ConstArrayView(to) : input(in), to, op_, options);
  }

 private:
  std::shared_ptr<hocket_operator> kept_;
  hocket::Operator op_;
};

hocket::Extremes extremes(const Collective& call,
                          const hocket_array* values,
                          const hocket_array* ranks,
                          const hocket_array* indices) {
  if (values == nullptr) call.refuse()("values is null; it takes the extremes");
  if (ranks == nullptr) call.refuse()("ranks is null; it takes who brings them");
  hocket::Extremes out{.values = view(call.refuse(), values, "values"),
                       .ranks = view(call.refuse(), ranks, "ranks")};
  if (indices != nullptr) out.indices = view(call.refuse(), indices, "indices");
  return out;
}

hocket::ExtremeOptions extreme_options(const Collective& call,
                                       const hocket_array* in,
                                       const hocket_array* index) {
  if (in == nullptr) call.refuse()("in is null");
  hocket::ExtremeOptions options{.deadline = call.plain().deadline, .stream = call.plain().stream};
  if (index != nullptr) options.index = view(call.refuse(), index, "index");
  return options;
}

}  // namespace

// A row is a verb, the rank that gets the result, and the parameters in C after the arrays.
#define BY_OPERATOR(verb, root) \
  call.by(in, out, root, [](auto&&... a) { return hocket::verb(a...); })
#define READ const ByOperator call(comm, op, options)
#define ROW(verb, root, ...)                                                                       \
  HOCKET_C_CALL(hocket_##verb##_by, (HOCKET_C_ARRAYS, __VA_ARGS__), READ, BY_OPERATOR(verb, root)) \
  HOCKET_C_START(hocket_##verb##_by_async,                                                         \
                 (HOCKET_C_ARRAYS, __VA_ARGS__),                                                   \
                 READ,                                                                             \
                 BY_OPERATOR(verb##_async, root))                                                  \
  HOCKET_C_PREPARE(hocket_prepare_##verb##_by,                                                     \
                   (HOCKET_C_ARRAYS, __VA_ARGS__),                                                 \
                   READ,                                                                           \
                   BY_OPERATOR(prepare_##verb, root))

ROW(all_reduce, 0, const hocket_operator* op)
ROW(reduce, root, const hocket_operator* op, int32_t root)
ROW(reduce_scatter, 0, const hocket_operator* op)
ROW(scan, 0, const hocket_operator* op)
ROW(exscan, 0, const hocket_operator* op)

#undef ROW
#undef READ
#undef BY_OPERATOR

#define EXTREME(verb) hocket::verb(call.comm(), call.input(in), result, o)
#define READ                                       \
  const Collective call(comm, options);            \
  const auto o = extreme_options(call, in, index); \
  const auto result = extremes(call, values, ranks, indices)
#define PARAMETERS             \
  (const hocket_array* in,     \
   const hocket_array* index,  \
   const hocket_array* values, \
   const hocket_array* ranks,  \
   const hocket_array* indices)
#define ROW(verb)                                                                \
  HOCKET_C_CALL(hocket_##verb, PARAMETERS, READ, EXTREME(verb))                  \
  HOCKET_C_START(hocket_##verb##_async, PARAMETERS, READ, EXTREME(verb##_async)) \
  HOCKET_C_PREPARE(hocket_prepare_##verb, PARAMETERS, READ, EXTREME(prepare_##verb))

ROW(argmin)
ROW(argmax)

#undef ROW
#undef PARAMETERS
#undef READ
#undef EXTREME
