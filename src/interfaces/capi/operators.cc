// Reductions by a function of the program's own; argmin and argmax.
#include <memory>
#include <new>
#include <string>

#include "hocket/extremes.h"
#include "hocket/operator.h"
#include "interfaces/capi/collective.h"

using hocket::capi::Collective;
using hocket::capi::guarded;

namespace {

// A function of C as one of C++.
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

int hocket_all_reduce_by(hocket_comm* comm,
                         const hocket_array* in,
                         const hocket_array* out,
                         const hocket_operator* op,
                         const hocket_call_options* options) {
  return guarded("hocket_all_reduce_by", [&] {
    const ByOperator call(comm, op, options);
    call.by(in, out, 0, [](auto&&... a) { return hocket::all_reduce(a...); });
  });
}
int hocket_all_reduce_by_async(hocket_comm* comm,
                               const hocket_array* in,
                               const hocket_array* out,
                               const hocket_operator* op,
                               const hocket_call_options* options,
                               hocket_work** work) {
  return guarded("hocket_all_reduce_by_async", [&] {
    const ByOperator call(comm, op, options);
    call.start(work, [&] {
      return call.by(in, out, 0, [](auto&&... a) { return hocket::all_reduce_async(a...); });
    });
  });
}

int hocket_reduce_by(hocket_comm* comm,
                     const hocket_array* in,
                     const hocket_array* out,
                     const hocket_operator* op,
                     int32_t root,
                     const hocket_call_options* options) {
  return guarded("hocket_reduce_by", [&] {
    const ByOperator call(comm, op, options);
    call.by(in, out, root, [](auto&&... a) { return hocket::reduce(a...); });
  });
}
int hocket_reduce_by_async(hocket_comm* comm,
                           const hocket_array* in,
                           const hocket_array* out,
                           const hocket_operator* op,
                           int32_t root,
                           const hocket_call_options* options,
                           hocket_work** work) {
  return guarded("hocket_reduce_by_async", [&] {
    const ByOperator call(comm, op, options);
    call.start(work, [&] {
      return call.by(in, out, root, [](auto&&... a) { return hocket::reduce_async(a...); });
    });
  });
}

int hocket_reduce_scatter_by(hocket_comm* comm,
                             const hocket_array* in,
                             const hocket_array* out,
                             const hocket_operator* op,
                             const hocket_call_options* options) {
  return guarded("hocket_reduce_scatter_by", [&] {
    const ByOperator call(comm, op, options);
    call.by(in, out, 0, [](auto&&... a) { return hocket::reduce_scatter(a...); });
  });
}
int hocket_reduce_scatter_by_async(hocket_comm* comm,
                                   const hocket_array* in,
                                   const hocket_array* out,
                                   const hocket_operator* op,
                                   const hocket_call_options* options,
                                   hocket_work** work) {
  return guarded("hocket_reduce_scatter_by_async", [&] {
    const ByOperator call(comm, op, options);
    call.start(work, [&] {
      return call.by(in, out, 0, [](auto&&... a) { return hocket::reduce_scatter_async(a...); });
    });
  });
}

int hocket_scan_by(hocket_comm* comm,
                   const hocket_array* in,
                   const hocket_array* out,
                   const hocket_operator* op,
                   const hocket_call_options* options) {
  return guarded("hocket_scan_by", [&] {
    const ByOperator call(comm, op, options);
    call.by(in, out, 0, [](auto&&... a) { return hocket::scan(a...); });
  });
}
int hocket_scan_by_async(hocket_comm* comm,
                         const hocket_array* in,
                         const hocket_array* out,
                         const hocket_operator* op,
                         const hocket_call_options* options,
                         hocket_work** work) {
  return guarded("hocket_scan_by_async", [&] {
    const ByOperator call(comm, op, options);
    call.start(work, [&] {
      return call.by(in, out, 0, [](auto&&... a) { return hocket::scan_async(a...); });
    });
  });
}

int hocket_exscan_by(hocket_comm* comm,
                     const hocket_array* in,
                     const hocket_array* out,
                     const hocket_operator* op,
                     const hocket_call_options* options) {
  return guarded("hocket_exscan_by", [&] {
    const ByOperator call(comm, op, options);
    call.by(in, out, 0, [](auto&&... a) { return hocket::exscan(a...); });
  });
}
int hocket_exscan_by_async(hocket_comm* comm,
                           const hocket_array* in,
                           const hocket_array* out,
                           const hocket_operator* op,
                           const hocket_call_options* options,
                           hocket_work** work) {
  return guarded("hocket_exscan_by_async", [&] {
    const ByOperator call(comm, op, options);
    call.start(work, [&] {
      return call.by(in, out, 0, [](auto&&... a) { return hocket::exscan_async(a...); });
    });
  });
}

int hocket_argmin(hocket_comm* comm,
                  const hocket_array* in,
                  const hocket_array* index,
                  const hocket_array* values,
                  const hocket_array* ranks,
                  const hocket_array* indices,
                  const hocket_call_options* options) {
  return guarded("hocket_argmin", [&] {
    const Collective call(comm, options);
    const auto o = extreme_options(call, in, index);
    const auto out = extremes(call, values, ranks, indices);
    hocket::argmin(call.comm(), call.input(in), out, o);
  });
}
int hocket_argmin_async(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_array* index,
                        const hocket_array* values,
                        const hocket_array* ranks,
                        const hocket_array* indices,
                        const hocket_call_options* options,
                        hocket_work** work) {
  return guarded("hocket_argmin_async", [&] {
    const Collective call(comm, options);
    const auto o = extreme_options(call, in, index);
    const auto out = extremes(call, values, ranks, indices);
    call.start(work, [&] { return hocket::argmin_async(call.comm(), call.input(in), out, o); });
  });
}
int hocket_argmax(hocket_comm* comm,
                  const hocket_array* in,
                  const hocket_array* index,
                  const hocket_array* values,
                  const hocket_array* ranks,
                  const hocket_array* indices,
                  const hocket_call_options* options) {
  return guarded("hocket_argmax", [&] {
    const Collective call(comm, options);
    const auto o = extreme_options(call, in, index);
    const auto out = extremes(call, values, ranks, indices);
    hocket::argmax(call.comm(), call.input(in), out, o);
  });
}
int hocket_argmax_async(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_array* index,
                        const hocket_array* values,
                        const hocket_array* ranks,
                        const hocket_array* indices,
                        const hocket_call_options* options,
                        hocket_work** work) {
  return guarded("hocket_argmax_async", [&] {
    const Collective call(comm, options);
    const auto o = extreme_options(call, in, index);
    const auto out = extremes(call, values, ranks, indices);
    call.start(work, [&] { return hocket::argmax_async(call.comm(), call.input(in), out, o); });
  });
}

int hocket_prepare_all_reduce_by(hocket_comm* comm,
                                 const hocket_array* in,
                                 const hocket_array* out,
                                 const hocket_operator* op,
                                 const hocket_call_options* options,
                                 hocket_prepared** prepared) {
  return guarded("hocket_prepare_all_reduce_by", [&] {
    const ByOperator call(comm, op, options);
    call.prepare(prepared, [&] {
      return call.by(in, out, 0, [](auto&&... a) { return hocket::prepare_all_reduce(a...); });
    });
  });
}

int hocket_prepare_reduce_by(hocket_comm* comm,
                             const hocket_array* in,
                             const hocket_array* out,
                             const hocket_operator* op,
                             int32_t root,
                             const hocket_call_options* options,
                             hocket_prepared** prepared) {
  return guarded("hocket_prepare_reduce_by", [&] {
    const ByOperator call(comm, op, options);
    call.prepare(prepared, [&] {
      return call.by(in, out, root, [](auto&&... a) { return hocket::prepare_reduce(a...); });
    });
  });
}

int hocket_prepare_reduce_scatter_by(hocket_comm* comm,
                                     const hocket_array* in,
                                     const hocket_array* out,
                                     const hocket_operator* op,
                                     const hocket_call_options* options,
                                     hocket_prepared** prepared) {
  return guarded("hocket_prepare_reduce_scatter_by", [&] {
    const ByOperator call(comm, op, options);
    call.prepare(prepared, [&] {
      return call.by(in, out, 0, [](auto&&... a) { return hocket::prepare_reduce_scatter(a...); });
    });
  });
}

int hocket_prepare_scan_by(hocket_comm* comm,
                           const hocket_array* in,
                           const hocket_array* out,
                           const hocket_operator* op,
                           const hocket_call_options* options,
                           hocket_prepared** prepared) {
  return guarded("hocket_prepare_scan_by", [&] {
    const ByOperator call(comm, op, options);
    call.prepare(prepared, [&] {
      return call.by(in, out, 0, [](auto&&... a) { return hocket::prepare_scan(a...); });
    });
  });
}

int hocket_prepare_exscan_by(hocket_comm* comm,
                             const hocket_array* in,
                             const hocket_array* out,
                             const hocket_operator* op,
                             const hocket_call_options* options,
                             hocket_prepared** prepared) {
  return guarded("hocket_prepare_exscan_by", [&] {
    const ByOperator call(comm, op, options);
    call.prepare(prepared, [&] {
      return call.by(in, out, 0, [](auto&&... a) { return hocket::prepare_exscan(a...); });
    });
  });
}

int hocket_prepare_argmin(hocket_comm* comm,
                          const hocket_array* in,
                          const hocket_array* index,
                          const hocket_array* values,
                          const hocket_array* ranks,
                          const hocket_array* indices,
                          const hocket_call_options* options,
                          hocket_prepared** prepared) {
  return guarded("hocket_prepare_argmin", [&] {
    const Collective call(comm, options);
    const auto o = extreme_options(call, in, index);
    const auto out = extremes(call, values, ranks, indices);
    call.prepare(prepared,
                 [&] { return hocket::prepare_argmin(call.comm(), call.input(in), out, o); });
  });
}

int hocket_prepare_argmax(hocket_comm* comm,
                          const hocket_array* in,
                          const hocket_array* index,
                          const hocket_array* values,
                          const hocket_array* ranks,
                          const hocket_array* indices,
                          const hocket_call_options* options,
                          hocket_prepared** prepared) {
  return guarded("hocket_prepare_argmax", [&] {
    const Collective call(comm, options);
    const auto o = extreme_options(call, in, index);
    const auto out = extremes(call, values, ranks, indices);
    call.prepare(prepared,
                 [&] { return hocket::prepare_argmax(call.comm(), call.input(in), out, o); });
  });
}
