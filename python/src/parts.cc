// The v-forms: a part of its own size for each rank.
//
// Python counts rows, the first axis: for one-dimensional arrays that is elements. Counts that are
// not given are exchanged here, by one small call, as the size of a new array follows from them.
#include <cstdint>
#include <numeric>
#include <string>

#include "hocket/error.h"
#include "verbs.h"

namespace hocket::python {
namespace {

using Counts = std::vector<std::size_t>;

// An array seen as rows.
struct Rows {
  Shape row;                 // the shape of one
  std::size_t elements = 1;  // of one
  std::size_t count = 0;
};

Rows rows_of(const Array& array, const char* name) {
  require_c_order(array, name);
  const Shape shape = shape_of(array);
  if (shape.empty()) {
    throw InvalidArgument(std::string(name) +
                          " has no axis to be cut along; pass it as an array "
                          "of one element");
  }
  Rows rows{.row = {shape.begin() + 1, shape.end()}, .count = static_cast<std::size_t>(shape[0])};
  for (const std::ptrdiff_t extent : rows.row) rows.elements *= static_cast<std::size_t>(extent);
  return rows;
}

Counts counts_argument(nb::handle counts, int size, const char* name) {
  Counts result;
  for (nb::handle count : counts) {
    const auto value = nb::cast<std::int64_t>(nb::int_(count));
    if (value < 0) throw InvalidArgument(std::string(name) + " holds a negative number");
    result.push_back(static_cast<std::size_t>(value));
  }
  if (result.size() != static_cast<std::size_t>(size)) {
    throw InvalidArgument(std::string(name) + " has " + std::to_string(result.size()) +
                          " entries, expected one for each of the " + std::to_string(size) +
                          " ranks");
  }
  return result;
}

// Every rank's number.
Counts exchange_counts(Seat& seat, std::size_t mine, const CallOptions& options) {
  std::uint64_t own = mine;
  std::vector<std::uint64_t> all(static_cast<std::size_t>(seat.comm.size()));
  without_gil([&] { seat.comm.all_gather(scalar(own), all, options); });
  return {all.begin(), all.end()};
}

Counts transpose_counts(Seat& seat, const Counts& mine, const CallOptions& options) {
  std::vector<std::uint64_t> sent(mine.begin(), mine.end()), received(mine.size());
  without_gil([&] { seat.comm.all_to_all(sent, received, options); });
  return {received.begin(), received.end()};
}

std::size_t total(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

Counts scaled(Counts counts, std::size_t factor) {
  for (std::size_t& count : counts) count *= factor;
  return counts;
}

Shape with_rows(std::size_t count, Shape row) {
  row.insert(row.begin(), static_cast<std::ptrdiff_t>(count));
  return row;
}

// As even as it gets: the first ranks have one row more.
Counts even_counts(std::size_t rows, int size) {
  const auto n = static_cast<std::size_t>(size);
  Counts counts(n, rows / n);
  for (std::size_t i = 0; i < rows % n; ++i) ++counts[i];
  return counts;
}

// A v-form whose arguments have been read; counts in elements.
template <typename Options>
struct PartsPlan {
  Array in;
  Array out;
  Counts in_counts;
  Counts out_counts;
  Options options;
  nb::object result = nb::none();
};

template <typename Options>
void set_output(PartsPlan<Options>& plan, nb::handle out, std::size_t rows, const Rows& like) {
  plan.result =
      out.is_none() ? new_array_like(plan.in, with_rows(rows, like.row)) : nb::borrow(out);
  plan.out = writable_array(plan.result, "out");
  require_c_order(plan.out, "out");
}

PartsPlan<CallOptions> plan_all_gather_v(
    Seat& seat, nb::handle x, nb::handle out, nb::handle counts, nb::handle timeout) {
  PartsPlan<CallOptions> plan;
  Rows rows;
  Counts all = read_arguments(seat, [&] {
    plan.options = {duration_argument(timeout, "timeout")};
    plan.in = read_array(x, "x");
    rows = rows_of(plan.in, "x");
    return counts.is_none() ? Counts{} : counts_argument(counts, seat.comm.size(), "counts");
  });
  if (counts.is_none()) all = exchange_counts(seat, rows.count, plan.options);
  read_arguments(seat, [&] {
    set_output(plan, out, total(all), rows);
    return true;
  });
  plan.out_counts = scaled(std::move(all), rows.elements);
  return plan;
}

PartsPlan<RootOptions> plan_gather_v(
    Seat& seat, nb::handle x, nb::handle out, nb::handle counts, int root, nb::handle timeout) {
  PartsPlan<RootOptions> plan;
  Rows rows;
  Counts all = read_arguments(seat, [&] {
    plan.options = {root, duration_argument(timeout, "timeout")};
    plan.in = read_array(x, "x");
    rows = rows_of(plan.in, "x");
    return counts.is_none() ? Counts{} : counts_argument(counts, seat.comm.size(), "counts");
  });
  if (counts.is_none()) all = exchange_counts(seat, rows.count, {plan.options.deadline});
  if (seat.comm.rank() == root) {
    read_arguments(seat, [&] {
      set_output(plan, out, total(all), rows);
      return true;
    });
  }
  plan.out_counts = scaled(std::move(all), rows.elements);
  return plan;
}

PartsPlan<RootOptions> plan_scatter_v(
    Seat& seat, nb::handle x, nb::handle counts, nb::handle out, int root, nb::handle timeout) {
  return read_arguments(seat, [&] {
    PartsPlan<RootOptions> plan{.options = {root, duration_argument(timeout, "timeout")}};
    if (seat.comm.rank() != root) {
      if (out.is_none()) {
        throw InvalidArgument(
            "scatter_v wants out= at the ranks other than the root: how large "
            "their part is, and of which dtype, they cannot know");
      }
      plan.out = writable_array(out, "out");
      require_c_order(plan.out, "out");
      plan.result = nb::borrow(out);
      return plan;
    }
    plan.in = read_array(x, "x");
    const Rows rows = rows_of(plan.in, "x");
    const Counts all = counts.is_none() ? even_counts(rows.count, seat.comm.size())
                                        : counts_argument(counts, seat.comm.size(), "counts");
    set_output(plan, out, all[static_cast<std::size_t>(root)], rows);
    plan.in_counts = scaled(all, rows.elements);
    return plan;
  });
}

PartsPlan<CallOptions> plan_all_to_all_v(Seat& seat,
                                         nb::handle x,
                                         nb::handle counts,
                                         nb::handle out,
                                         nb::handle out_counts,
                                         nb::handle timeout) {
  PartsPlan<CallOptions> plan;
  Rows rows;
  Counts received;
  const Counts sent = read_arguments(seat, [&] {
    plan.options = {duration_argument(timeout, "timeout")};
    plan.in = read_array(x, "x");
    rows = rows_of(plan.in, "x");
    if (!out_counts.is_none()) {
      received = counts_argument(out_counts, seat.comm.size(), "out_counts");
    }
    return counts_argument(counts, seat.comm.size(), "counts");
  });
  if (out_counts.is_none()) received = transpose_counts(seat, sent, plan.options);
  read_arguments(seat, [&] {
    set_output(plan, out, total(received), rows);
    return true;
  });
  plan.in_counts = scaled(sent, rows.elements);
  plan.out_counts = scaled(std::move(received), rows.elements);
  return plan;
}

PartsPlan<ReduceOptions> plan_reduce_scatter_v(Seat& seat,
                                               nb::handle x,
                                               nb::handle out,
                                               nb::handle counts,
                                               nb::handle op,
                                               nb::handle timeout) {
  PartsPlan<ReduceOptions> plan;
  Rows rows;
  std::size_t own_rows = 0;
  const bool infers = counts.is_none() && !out.is_none();
  Counts all = read_arguments(seat, [&] {
    plan.options = {op_argument(op), duration_argument(timeout, "timeout")};
    plan.in = read_array(x, "x");
    rows = rows_of(plan.in, "x");
    if (infers) own_rows = rows_of(writable_array(out, "out"), "out").count;
    return counts.is_none() ? even_counts(rows.count, seat.comm.size())
                            : counts_argument(counts, seat.comm.size(), "counts");
  });
  if (infers) all = exchange_counts(seat, own_rows, {plan.options.deadline});
  read_arguments(seat, [&] {
    const int rank = seat.comm.rank();
    set_output(plan, out, rank < 0 ? 0 : all[static_cast<std::size_t>(rank)], rows);
    return true;
  });
  plan.in_counts = scaled(std::move(all), rows.elements);
  return plan;
}

template <typename Options>
WorkHandle started(PartsPlan<Options>& plan, Work work) {
  WorkHandle handle;
  keep(handle, plan.in, plan.out);
  handle.result = std::move(plan.result);
  handle.work = std::move(work);
  return handle;
}

void bind_gathers(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "all_gather_v",
      [](Seat& s, nb::handle x, nb::handle out, nb::handle counts, nb::handle timeout) {
        auto p = plan_all_gather_v(s, x, out, counts, timeout);
        without_gil([&] {
          s.comm.all_gather_v(p.in.input(), p.out.output(), {.counts = p.out_counts}, p.options);
        });
        return p.result;
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("counts") = nb::none(),
      arg("timeout") = nb::none(),
      nb::sig("def all_gather_v(self, x: Array, out: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, timeout: Timeout = None) -> Array"),
      R"(Collect every rank's rows, as many as it has, on every rank.

Parameters
----------
x : array
    This rank's rows; beyond the first axis the shape is the same on every rank.
out : array, optional
    Where all rows go, rank after rank.
counts : sequence of int, optional
    Rows of each rank. Without them they are asked for first, by one small call more; all ranks
    give them or none does.

Returns
-------
array
    `out`, or a new array of shape (sum(counts), \*x.shape[1:]).
)");
  cls.def(
      "all_gather_v_async",
      [](Seat& s, nb::handle x, nb::handle out, nb::handle counts, nb::handle timeout) {
        auto p = plan_all_gather_v(s, x, out, counts, timeout);
        return started(p, without_gil([&] {
                         return s.comm.all_gather_v_async(
                             p.in.input(), p.out.output(), {.counts = p.out_counts}, p.options);
                       }));
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("counts") = nb::none(),
      arg("timeout") = nb::none(),
      nb::sig("def all_gather_v_async(self, x: Array, out: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, timeout: Timeout = None) -> Work"),
      "Start an `all_gather_v`; counts that are not given are still asked for at once.");
  cls.def(
      "gather_v",
      [](Seat& s, nb::handle x, nb::handle out, nb::handle counts, int root, nb::handle timeout) {
        auto p = plan_gather_v(s, x, out, counts, root, timeout);
        without_gil([&] {
          s.comm.gather_v(p.in.input(), p.out.output(), {.counts = p.out_counts}, p.options);
        });
        return p.result;
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("counts") = nb::none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      nb::sig("def gather_v(self, x: Array, out: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, root: int = 0, timeout: Timeout = None) "
              "-> Optional[Array]"),
      R"(Collect every rank's rows, as many as it has, at the root.

Parameters are those of `all_gather_v`; returns None at ranks other than the root.
)");
  cls.def(
      "gather_v_async",
      [](Seat& s, nb::handle x, nb::handle out, nb::handle counts, int root, nb::handle timeout) {
        auto p = plan_gather_v(s, x, out, counts, root, timeout);
        return started(p, without_gil([&] {
                         return s.comm.gather_v_async(
                             p.in.input(), p.out.output(), {.counts = p.out_counts}, p.options);
                       }));
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("counts") = nb::none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      nb::sig("def gather_v_async(self, x: Array, out: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, root: int = 0, timeout: Timeout = None) "
              "-> Work"),
      "Start a `gather_v`; counts that are not given are still asked for at once.");
}

void bind_scatters(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "scatter_v",
      [](Seat& s, nb::handle x, nb::handle counts, nb::handle out, int root, nb::handle timeout) {
        auto p = plan_scatter_v(s, x, counts, out, root, timeout);
        without_gil([&] {
          s.comm.scatter_v(p.in.input(), {.counts = p.in_counts}, p.out.output(), p.options);
        });
        return p.result;
      },
      arg("x").none() = nb::none(),
      arg("counts") = nb::none(),
      arg("out") = nb::none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      nb::sig("def scatter_v(self, x: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, out: Optional[Array] = None, "
              "root: int = 0, timeout: Timeout = None) -> Array"),
      R"(Hand the rows of the root's array out, counts[r] of them to rank r.

Parameters
----------
x : array, optional
    At the root: all rows, rank after rank. Elsewhere ignored.
counts : sequence of int, optional
    At the root: rows of each rank; by default as even as it gets, the first ranks having one more.
out : array
    This rank's rows; required at ranks other than the root.

Returns
-------
array
    `out`, or at the root a new array of its rows.
)");
  cls.def(
      "scatter_v_async",
      [](Seat& s, nb::handle x, nb::handle counts, nb::handle out, int root, nb::handle timeout) {
        auto p = plan_scatter_v(s, x, counts, out, root, timeout);
        return started(p, without_gil([&] {
                         return s.comm.scatter_v_async(
                             p.in.input(), {.counts = p.in_counts}, p.out.output(), p.options);
                       }));
      },
      arg("x").none() = nb::none(),
      arg("counts") = nb::none(),
      arg("out") = nb::none(),
      arg("root") = 0,
      arg("timeout") = nb::none(),
      nb::sig("def scatter_v_async(self, x: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, out: Optional[Array] = None, "
              "root: int = 0, timeout: Timeout = None) -> Work"),
      "Start a `scatter_v`; the arrays must be left alone until the Work is done.");
}

void bind_exchanges(CommunicatorClass& cls) {
  using nb::arg;
  cls.def(
      "all_to_all_v",
      [](Seat& s,
         nb::handle x,
         nb::handle counts,
         nb::handle out,
         nb::handle out_counts,
         nb::handle timeout) {
        auto p = plan_all_to_all_v(s, x, counts, out, out_counts, timeout);
        without_gil([&] {
          s.comm.all_to_all_v(p.in.input(),
                              {.counts = p.in_counts},
                              p.out.output(),
                              {.counts = p.out_counts},
                              p.options);
        });
        return p.result;
      },
      arg("x").none(),
      arg("counts"),
      arg("out") = nb::none(),
      arg("out_counts") = nb::none(),
      arg("timeout") = nb::none(),
      nb::sig("def all_to_all_v(self, x: Array, counts: Sequence[int], "
              "out: Optional[Array] = None, out_counts: Optional[Sequence[int]] = None, "
              "timeout: Timeout = None) -> Array"),
      R"(Send counts[r] rows of `x` to rank r and get rows from each rank.

Parameters
----------
x : array
    The rows for all ranks, rank after rank.
counts : sequence of int
    Rows for each rank.
out : array, optional
    Where the received rows go, rank after rank.
out_counts : sequence of int, optional
    Rows from each rank. Without them they are asked for first; all ranks give them or none does.

Returns
-------
array
    `out`, or a new array of shape (sum(out_counts), \*x.shape[1:]).
)");
  cls.def(
      "all_to_all_v_async",
      [](Seat& s,
         nb::handle x,
         nb::handle counts,
         nb::handle out,
         nb::handle out_counts,
         nb::handle timeout) {
        auto p = plan_all_to_all_v(s, x, counts, out, out_counts, timeout);
        return started(p, without_gil([&] {
                         return s.comm.all_to_all_v_async(p.in.input(),
                                                          {.counts = p.in_counts},
                                                          p.out.output(),
                                                          {.counts = p.out_counts},
                                                          p.options);
                       }));
      },
      arg("x").none(),
      arg("counts"),
      arg("out") = nb::none(),
      arg("out_counts") = nb::none(),
      arg("timeout") = nb::none(),
      nb::sig("def all_to_all_v_async(self, x: Array, counts: Sequence[int], "
              "out: Optional[Array] = None, out_counts: Optional[Sequence[int]] = None, "
              "timeout: Timeout = None) -> Work"),
      "Start an `all_to_all_v`; counts that are not given are still asked for at once.");
  cls.def(
      "reduce_scatter_v",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         nb::handle counts,
         nb::handle op,
         nb::handle timeout) {
        auto p = plan_reduce_scatter_v(s, x, out, counts, op, timeout);
        without_gil(
            [&] { s.comm.reduce_scatter_v(p.in.input(), p.out.output(), p.in_counts, p.options); });
        return p.result;
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("counts") = nb::none(),
      arg("op") = "sum",
      arg("timeout") = nb::none(),
      nb::sig("def reduce_scatter_v(self, x: Array, out: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, op: Op = 'sum', timeout: Timeout = None) "
              "-> Array"),
      R"(Reduce arrays over all ranks; rank r gets counts[r] rows of the result.

Parameters
----------
x : array
    The rows of all ranks, rank after rank; of one shape on every rank.
out : array, optional
    This rank's rows.
counts : sequence of int, optional
    Rows of each rank. Without them: the rows of every rank's `out`, asked for by one small call
    more; without `out` too, as even as it gets, the first ranks having one more.

Returns
-------
array
    `out`, or a new array of shape (counts[rank], \*x.shape[1:]).
)");
  cls.def(
      "reduce_scatter_v_async",
      [](Seat& s,
         nb::handle x,
         nb::handle out,
         nb::handle counts,
         nb::handle op,
         nb::handle timeout) {
        auto p = plan_reduce_scatter_v(s, x, out, counts, op, timeout);
        return started(p, without_gil([&] {
                         return s.comm.reduce_scatter_v_async(
                             p.in.input(), p.out.output(), p.in_counts, p.options);
                       }));
      },
      arg("x").none(),
      arg("out") = nb::none(),
      arg("counts") = nb::none(),
      arg("op") = "sum",
      arg("timeout") = nb::none(),
      nb::sig("def reduce_scatter_v_async(self, x: Array, out: Optional[Array] = None, "
              "counts: Optional[Sequence[int]] = None, op: Op = 'sum', timeout: Timeout = None) "
              "-> Work"),
      "Start a `reduce_scatter_v`; counts that are not given are still asked for at once.");
}

}  // namespace

void bind_parts(CommunicatorClass& cls) {
  bind_gathers(cls);
  bind_scatters(cls);
  bind_exchanges(cls);
}

}  // namespace hocket::python
