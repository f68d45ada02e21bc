#include "part_plans.h"

#include <cstdint>
#include <string>

#include "hocket/error.h"
#include "listed_arrays.h"

namespace hocket::python {
namespace {

// An array seen as rows along its first axis.
struct Rows {
  Shape row;                 // the shape of one row
  std::size_t elements = 1;  // in one row
  std::size_t count = 0;     // the number of rows
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
  for (const std::int64_t value : long_list_argument(counts, name)) {
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

// Returns the counts of all ranks, in the order of the ranks. A collective call.
Counts exchange_counts(CommunicatorObject& self,
                       std::size_t mine,
                       const CallOptions& options,
                       const char* whole) {
  const WholeCall call(self.comm, whole);
  std::uint64_t own = mine;
  std::vector<std::uint64_t> all(static_cast<std::size_t>(self.comm.size()));
  without_gil([&] { self.comm.all_gather(scalar(own), all, options); });
  return {all.begin(), all.end()};
}

// Sends each rank its count, and returns the counts received from all ranks. A collective call.
Counts transpose_counts(CommunicatorObject& self, const Counts& mine, const CallOptions& options) {
  const WholeCall call(self.comm, "all_to_all_v");
  std::vector<std::uint64_t> sent(mine.begin(), mine.end()), received(mine.size());
  without_gil([&] { self.comm.all_to_all(sent, received, options); });
  return {received.begin(), received.end()};
}

std::size_t total(const Counts& counts) {
  constexpr std::size_t kMost = std::size_t{1} << 60;  // low enough that no sum wraps around
  std::size_t sum = 0;
  for (const std::size_t count : counts) {
    if (count > kMost - sum) {
      throw InvalidArgument("the counts add up to more elements than any memory holds");
    }
    sum += count;
  }
  return sum;
}

Counts scaled(Counts counts, std::size_t factor) {
  for (std::size_t& count : counts) count *= factor;
  return counts;
}

Shape with_rows(std::size_t count, Shape row) {
  row.insert(row.begin(), static_cast<std::ptrdiff_t>(count));
  return row;
}

// Splits rows evenly. If the division leaves a remainder, the first ranks get one row more.
Counts even_counts(std::size_t rows, int size) {
  const auto n = static_cast<std::size_t>(size);
  Counts counts(n, rows / n);
  for (std::size_t i = 0; i < rows % n; ++i) ++counts[i];
  return counts;
}

template <typename Options>
void set_output(Plan<Options>& plan, nb::handle out, std::size_t rows, const Rows& like) {
  plan.result =
      out.is_none() ? new_array_like(plan.in, with_rows(rows, like.row)) : nb::borrow(out);
  plan.out = read_out<Options>(plan.result);
  require_c_order(plan.out, "out");
}

// Sets the output, into which each rank r sends `counts[r]` rows. `out` is one array, a list with
// one array for each rank, or None for a new array.
template <typename Options>
void set_parts(Plan<Options>& plan, nb::handle out, const Counts& counts, const Rows& like) {
  if (!is_list(out)) return set_output(plan, out, total(counts), like);
  ListedArrays listed = read_list(out, "out", writable_array);
  require_one_each(listed, counts.size(), "out");
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (listed.counts[i] != counts[i] * like.elements) {
      throw InvalidArgument(element_name("out", i) + " has " + std::to_string(listed.counts[i]) +
                            " elements, expected " + std::to_string(counts[i] * like.elements));
    }
  }
  plan.result = nb::borrow(out);
  plan.out = std::move(listed.hull);
  plan.out_places = std::move(listed.places);
}

// Reads `x` and sets the input. Returns how much of `x` each of `size` ranks gets, in rows, or in
// elements if `x` is a list.
template <typename Options>
Counts read_sent(Plan<Options>& plan, nb::handle x, nb::handle counts, int size, Rows& rows) {
  const bool lists = is_list(x);
  if (!lists) {
    plan.in = read_array(x, "x");
    rows = rows_of(plan.in, "x");
    return counts.is_none() ? even_counts(rows.count, size)
                            : counts_argument(counts, size, "counts");
  }
  ListedArrays listed = read_list(x, "x", read_array);
  require_one_each(listed, static_cast<std::size_t>(size), "x");
  if (!counts.is_none() && counts_argument(counts, size, "counts") != listed.counts) {
    throw InvalidArgument("counts are not what the arrays of x have; leave them away");
  }
  plan.in = std::move(listed.hull);
  plan.in_places = std::move(listed.places);
  return listed.counts;
}

}  // namespace

Plan<CallOptions> plan_all_gather_v(CommunicatorObject& self,
                                    nb::handle x,
                                    nb::handle out,
                                    nb::handle counts,
                                    nb::handle deadline) {
  Plan<CallOptions> plan;
  Rows rows;
  Counts all = read_arguments(self, [&] {
    plan.options = {limit_argument(deadline, "deadline")};
    plan.in = read_array(x, "x");
    rows = rows_of(plan.in, "x");
    return counts.is_none() ? Counts{} : counts_argument(counts, self.comm.size(), "counts");
  });
  if (counts.is_none()) all = exchange_counts(self, rows.count, plan.options, "all_gather_v");
  read_arguments(self, [&] { set_parts(plan, out, all, rows); });
  plan.out_counts = scaled(std::move(all), rows.elements);
  return plan;
}

Plan<RootOptions> plan_gather_v(CommunicatorObject& self,
                                nb::handle x,
                                nb::handle out,
                                nb::handle counts,
                                nb::handle root,
                                nb::handle deadline) {
  Plan<RootOptions> plan;
  Rows rows;
  Counts all = read_arguments(self, [&] {
    plan.options = root_options(root, deadline);
    plan.in = read_array(x, "x");
    rows = rows_of(plan.in, "x");
    return counts.is_none() ? Counts{} : counts_argument(counts, self.comm.size(), "counts");
  });
  if (counts.is_none())
    all = exchange_counts(self, rows.count, {plan.options.deadline}, "gather_v");
  if (self.comm.rank() == plan.options.root) {
    read_arguments(self, [&] { set_parts(plan, out, all, rows); });
  }
  plan.out_counts = scaled(std::move(all), rows.elements);
  return plan;
}

Plan<RootOptions> plan_scatter_v(CommunicatorObject& self,
                                 nb::handle x,
                                 nb::handle out,
                                 nb::handle counts,
                                 nb::handle root,
                                 nb::handle deadline) {
  return read_arguments(self, [&] {
    Plan<RootOptions> plan{.options = root_options(root, deadline)};
    if (self.comm.rank() != plan.options.root) {
      if (out.is_none()) {
        refuse_without_out("scatter_v", plan.options.root, self.comm.size());
      }
      plan.out = read_out<RootOptions>(out);
      require_c_order(plan.out, "out");
      plan.result = nb::borrow(out);
      return plan;
    }
    Rows rows;
    const Counts all = read_sent(plan, x, counts, self.comm.size(), rows);
    set_output(plan, out, all[static_cast<std::size_t>(plan.options.root)], rows);
    plan.in_counts = scaled(all, rows.elements);
    return plan;
  });
}

Plan<CallOptions> plan_all_to_all_v(CommunicatorObject& self,
                                    nb::handle x,
                                    nb::handle counts,
                                    nb::handle out,
                                    nb::handle out_counts,
                                    nb::handle deadline) {
  Plan<CallOptions> plan;
  Rows rows;
  Counts received;
  const Counts sent = read_arguments(self, [&] {
    plan.options = {limit_argument(deadline, "deadline")};
    if (!out_counts.is_none()) {
      received = counts_argument(out_counts, self.comm.size(), "out_counts");
    }
    if (counts.is_none() && !is_list(x)) {
      throw InvalidArgument("all_to_all_v wants counts: how many rows of x each rank gets");
    }
    return read_sent(plan, x, counts, self.comm.size(), rows);
  });
  if (out_counts.is_none()) received = transpose_counts(self, sent, plan.options);
  read_arguments(self, [&] { set_parts(plan, out, received, rows); });
  plan.in_counts = scaled(sent, rows.elements);
  plan.out_counts = scaled(std::move(received), rows.elements);
  return plan;
}

Plan<ReduceOptions> plan_reduce_scatter_v(CommunicatorObject& self,
                                          nb::handle x,
                                          nb::handle out,
                                          nb::handle counts,
                                          nb::handle op,
                                          nb::handle deadline) {
  Plan<ReduceOptions> plan;
  Rows rows;
  std::size_t own_rows = 0;
  const bool infers = counts.is_none() && !out.is_none();
  Counts all = read_arguments(self, [&] {
    plan.options = {op_argument(op), limit_argument(deadline, "deadline")};
    plan.in = read_array(x, "x");
    rows = rows_of(plan.in, "x");
    if (infers) own_rows = rows_of(writable_array(out, "out"), "out").count;
    return counts.is_none() ? even_counts(rows.count, self.comm.size())
                            : counts_argument(counts, self.comm.size(), "counts");
  });
  if (infers) all = exchange_counts(self, own_rows, {plan.options.deadline}, "reduce_scatter_v");
  read_arguments(self, [&] {
    const int rank = self.comm.rank();
    set_output(plan, out, rank < 0 ? 0 : all[static_cast<std::size_t>(rank)], rows);
  });
  plan.in_counts = scaled(std::move(all), rows.elements);
  return plan;
}

}  // namespace hocket::python
