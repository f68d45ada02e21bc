// Products of distributed matrices; see hocket/linalg.py.
#include "hocket/matmul.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "device.h"
#include "verbs.h"

namespace hocket::python {
namespace {

// Reads a distribution as Python encodes it. The number of words tells its kind:
//  0 words  Replicated
//  1 word   Slab: the axis that is split
//  more     BlockCyclic: grid's shape (2), block's shape (2), first place (2), rank at each place
MatrixSpread spread_of(const Extents& words) {
  if (words.empty()) return Replicated{};
  if (words.size() == 1) return Slab{words[0]};
  std::vector<int> ranks(words.begin() + 6, words.end());
  return BlockCyclic(ProcessGrid({words.at(0), words.at(1)}, std::move(ranks)),
                     {words.at(2), words.at(3)},
                     {words.at(4), words.at(5)});
}

}  // namespace

void bind_matmul(nb::module_& module) {
  using nb::arg;
  nb::class_<Matmul> cls(module, "_Matmul", "Use it through `hocket.linalg`.");
  cls.def(
      "__init__",
      [](Matmul* self,
         CommunicatorObject& owner,
         const std::array<std::size_t, 3>& size,
         const std::vector<Extents>& spreads,
         const std::vector<int>& ops,
         const std::vector<bool>& by_columns,
         const std::string& dtype,
         const std::string& dtype_b,
         const std::string& result,
         int form,
         std::optional<int> gpu,
         nb::handle deadline) {
        std::array<MatmulOperand, 3> operands;
        const MatmulOptions options = read_arguments(owner, [&] {
          for (std::size_t i = 0; i < 3; ++i) {
            operands[i] = {.spread = spread_of(spreads.at(i)),
                           .op = static_cast<MatrixOp>(ops.at(i)),
                           .order = by_columns.at(i) ? MemoryOrder::kFortran : MemoryOrder::kC};
          }
          return MatmulOptions{
              .dtype = dtype_from_name(dtype),
              .dtype_b = dtype_from_name(dtype_b),
              .result = dtype_from_name(result),
              .form = static_cast<MatmulForm>(form),
              .gpu = gpu,
              .library_folders = gpu ? library_folders() : std::vector<std::string>(),
              .deadline = limit_argument(deadline, "deadline")};
        });
        without_gil([&] {
          new (self) Matmul(owner.comm,
                            {.m = size[0], .n = size[1], .k = size[2]},
                            operands[0],
                            operands[1],
                            operands[2],
                            options);
        });
      },
      nb::keep_alive<1, 2>(),
      arg("comm"),
      arg("size"),
      arg("spreads"),
      arg("ops"),
      arg("by_columns"),
      arg("dtype"),
      arg("dtype_b"),
      arg("result"),
      arg("form"),
      arg("gpu").none() = nb::none(),
      arg("deadline").none() = nb::none(),
      nb::sig("def __init__(self, comm: Communicator, size: Sequence[int], "
              "spreads: Sequence[Sequence[int]], ops: Sequence[int], by_columns: Sequence[bool], "
              "dtype: str, dtype_b: str, result: str, form: int, gpu: Optional[int] = None, "
              "deadline: Timeout = None) -> None"));
  cls.def(
      "execute",
      [](Matmul& self,
         CommunicatorObject& owner,
         nb::handle a,
         nb::handle b,
         nb::handle c,
         nb::handle out,
         std::complex<double> alpha,
         std::complex<double> beta,
         nb::handle asked) {
        std::optional<StreamRef> stream;
        Array left, right, added, result;
        read_arguments(owner, [&] {
          left = read_array(a, "a");
          require_c_order(left, "a");
          right = read_array(b, "b");
          require_c_order(right, "b");
          if (!c.is_none()) {
            added = read_array(c, "c");
            require_c_order(added, "c");
          }
          result = writable_array(out, "out");
          require_c_order(result, "out");
          stream = stream_of(asked, left, result);
          follow(right, stream);
          follow(added, stream);
        });
        const bool adds = !c.is_none();
        without_gil([&] {
          if (adds) {
            self(
                left.input(), right.input(), added.input(), result.output(), {alpha, beta}, stream);
          } else {
            self(left.input(), right.input(), result.output(), alpha, stream);
          }
        });
        retain(owner, {&left, &right, &added, &result}, stream);
      },
      arg("comm"),
      arg("a"),
      arg("b"),
      arg("c").none(),
      arg("out"),
      arg("alpha"),
      arg("beta"),
      arg("stream") = nb::none(),
      nb::sig("def execute(self, comm: Communicator, a: Array, b: Array, c: Optional[Array], "
              "out: Array, alpha: complex, beta: complex, stream: Stream = None) -> None"));
  cls.def_prop_ro(
      "library",
      [](const Matmul& self) { return self.library(); },
      nb::sig("def library(self) -> str"));
  cls.def_prop_ro(
      "form",
      [](const Matmul& self) { return static_cast<int>(self.form()); },
      nb::sig("def form(self) -> int"));
}

}  // namespace hocket::python
