// Fourier transforms; see hocket/fft.py.
#include "hocket/fft.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "device.h"
#include "verbs.h"

namespace hocket::python {

void bind_fft(nb::module_& module) {
  using nb::arg;
  nb::class_<Fft> cls(module, "_Fft", "Use it through `hocket.fft`.");
  cls.def(
      "__init__",
      [](Fft* self,
         CommunicatorObject& owner,
         const Extents& shape,
         const std::vector<Extents>& corners,
         int kind,
         bool is_double,
         std::size_t axes,
         int norm,
         bool measured,
         std::optional<int> gpu,
         nb::handle deadline) {
        const FftOptions options = read_arguments(owner, [&] {
          return FftOptions{.kind = static_cast<FftKind>(kind),
                            .precision = is_double ? DType::kFloat64 : DType::kFloat32,
                            .axes = axes,
                            .norm = static_cast<FftNorm>(norm),
                            .planning = measured ? FftPlanning::kMeasured : FftPlanning::kEstimated,
                            .gpu = gpu,
                            .library_folders = gpu ? library_folders() : std::vector<std::string>(),
                            .deadline = limit_argument(deadline, "deadline")};
        });
        without_gil([&] {
          new (self) Fft(owner.comm,
                         shape,
                         Box(corners.at(0), corners.at(1)),
                         Box(corners.at(2), corners.at(3)),
                         options);
        });
      },
      nb::keep_alive<1, 2>(),
      arg("comm"),
      arg("shape"),
      arg("corners"),
      arg("kind"),
      arg("is_double"),
      arg("axes"),
      arg("norm"),
      arg("measured"),
      arg("gpu").none() = nb::none(),
      arg("deadline").none() = nb::none(),
      nb::sig("def __init__(self, comm: Communicator, shape: Sequence[int], "
              "corners: Sequence[Sequence[int]], kind: int, is_double: bool, axes: int, norm: int, "
              "measured: bool, gpu: Optional[int] = None, deadline: Timeout = None) -> None"));
  cls.def(
      "execute",
      [](Fft& self,
         CommunicatorObject& owner,
         nb::handle x,
         nb::handle out,
         bool inverse,
         nb::handle asked) {
        Array in, result;
        std::optional<StreamRef> stream;
        read_arguments(owner, [&] {
          in = read_array(x, "x");
          require_c_order(in, "x");
          result = writable_array(out, "out");
          require_c_order(result, "out");
          stream = stream_of(asked, in, result);
        });
        without_gil([&] {
          self(in.input(),
               result.output(),
               inverse ? FftDirection::kInverse : FftDirection::kForward,
               stream);
        });
        retain(owner, {&in, &result}, stream);
      },
      arg("comm"),
      arg("x"),
      arg("out"),
      arg("inverse"),
      arg("stream") = nb::none(),
      nb::sig("def execute(self, comm: Communicator, x: Array, out: Array, inverse: bool, "
              "stream: Stream = None) -> None"));
  cls.def_prop_ro(
      "library",
      [](const Fft& self) { return self.library(); },
      nb::sig("def library(self) -> str"));
  cls.def_prop_ro(
      "transposes",
      [](const Fft& self) { return self.transposes(); },
      nb::sig("def transposes(self) -> int"));
}

}  // namespace hocket::python
