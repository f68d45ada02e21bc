// Binds symmetric memory.
//
// C++ recognizes a symmetric array by its address. In host memory, Python sees it as an ordinary
// NumPy array whose base keeps the memory alive. On a GPU, Python sees a `GpuArray`, from which
// CuPy and PyTorch make an array.
#include "hocket/symmetric.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "docstrings.h"
#include "hocket/error.h"
#include "verbs.h"

namespace hocket::python {
namespace {

// The owner of a symmetric array's host memory. It is the base of the NumPy array.
struct Allocation {
  SymmetricArray array;
  std::vector<int> makers;  // world ranks of the members that have a part of the array
};

// Shares the ownership of GPUs' memory. When the last owner is destroyed, it waits until no GPU
// needs the memory. It waits without the GIL, because other ranks' threads may need the GIL to
// finish.
struct GpuOwner {
  explicit GpuOwner(std::shared_ptr<void> a_memory) : memory(std::move(a_memory)) {}
  GpuOwner(const GpuOwner&) = default;
  GpuOwner(GpuOwner&&) noexcept = default;
  ~GpuOwner() {
    if (memory) without_gil_or_signals([this] { memory.reset(); });
  }

  std::shared_ptr<void> memory;
};

// Symmetric memory of a GPU, this rank's or a peer's.
struct GpuArray {
  ArrayView view;
  Shape shape;
  GpuOwner owner;
  // The number of this rank's GPU, into which the memory is mapped even if it is a peer's.
  // Frameworks need this number.
  int device;
};

// Returns NumPy's name of the type, or an empty text if NumPy has none.
std::string typestr_of(DType dtype) {
  const std::string bytes = std::to_string(size_of(dtype));
  switch (dtype) {
    case DType::kBool:
      return "|b1";
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      return "<i" + bytes;
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      return "<u" + bytes;
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return "<f" + bytes;
    case DType::kComplex64:
    case DType::kComplex128:
      return "<c" + bytes;
    default:
      return "";
  }
}

nb::dict cuda_array_interface(const GpuArray& array) {
  const std::string typestr = typestr_of(array.view.dtype());
  if (typestr.empty()) {
    throw nb::attribute_error(
        "the CUDA array interface has no name for this dtype; take it by DLPack");
  }
  nb::dict interface;
  interface["shape"] = tuple_of(array.shape);
  interface["typestr"] = typestr;
  interface["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.view.data()), false);
  interface["strides"] = nb::none();
  interface["version"] = 3;
  return interface;
}

nb::dlpack::dtype dlpack_dtype(DType dtype) {
  using Code = nb::dlpack::dtype_code;
  const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  const auto of = [&](Code code) {
    return nb::dlpack::dtype{static_cast<std::uint8_t>(code), bits, 1};
  };
  switch (dtype) {
    case DType::kBool:
      return of(Code::Bool);
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      return of(Code::Int);
    case DType::kBFloat16:
      return of(Code::Bfloat);
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return of(Code::Float);
    case DType::kComplex64:
    case DType::kComplex128:
      return of(Code::Complex);
    default:  // 8-bit floats travel as bytes
      return of(Code::UInt);
  }
}

nb::object to_dlpack(const GpuArray& array, int device) {
  std::vector<std::size_t> shape(array.shape.begin(), array.shape.end());
  auto* held = new GpuOwner(array.owner);
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<GpuOwner*>(p); });
  const nb::ndarray<> tensor(array.view.data(),
                             shape.size(),
                             shape.data(),
                             owner,
                             nullptr,
                             dlpack_dtype(array.view.dtype()),
                             nb::device::cuda::value,
                             device);
  return nb::cast(tensor);
}

Shape shape_argument(nb::handle shape) {
  Shape result;
  if (PyIndex_Check(shape.ptr()) != 0 && PySequence_Check(shape.ptr()) == 0) {
    result.push_back(long_argument(shape, "shape"));
  } else {
    const auto extents = long_list_argument(shape, "shape");
    result.assign(extents.begin(), extents.end());
  }
  for (const std::ptrdiff_t extent : result) {
    if (extent < 0)
      throw InvalidArgument("shape is " + to_string(result) + "; no extent is negative");
  }
  return result;
}

std::size_t count_of(const Shape& shape) {
  std::size_t count = 1;
  for (const std::ptrdiff_t extent : shape) {
    if (__builtin_mul_overflow(count, static_cast<std::size_t>(extent), &count)) {
      throw InvalidArgument("shape is " + to_string(shape) +
                            "; no memory holds that many elements");
    }
  }
  return count;
}

std::optional<MemoryKind> memory_argument(nb::handle memory) {
  if (memory.is_none()) return std::nullopt;
  const std::string name = text_argument(memory, "memory");
  if (name == "host") return MemoryKind::kHost;
  if (name == "cuda") return MemoryKind::kCuda;
  throw InvalidArgument("memory is \"" + name + "\", expected \"host\" or \"cuda\"");
}

SymmetricHeap heap_argument(nb::handle heap) {
  if (heap.is_none()) return SymmetricHeap::kHocket;
  const std::string name = text_argument(heap, "heap");
  if (name == "hocket") return SymmetricHeap::kHocket;
  if (name == "nvshmem") return SymmetricHeap::kNvshmem;
  throw InvalidArgument("heap is \"" + name + "\", expected \"hocket\" or \"nvshmem\"");
}

nb::object empty(Symmetric& symmetric,
                 nb::handle shape,
                 nb::handle dtype,
                 nb::handle memory,
                 nb::handle deadline,
                 nb::handle heap) {
  CommunicatorObject& self = symmetric.self;
  Shape extents;
  DType type{};
  SymmetricOptions options;
  const std::size_t count = read_arguments(self, [&] {
    extents = shape_argument(shape);
    type = dtype_argument(dtype);
    options = {memory_argument(memory), heap_argument(heap), limit_argument(deadline, "deadline")};
    return count_of(extents);
  });
  SymmetricArray array =
      without_gil([&] { return self.comm.symmetric().empty(count, type, options); });
  if (array.memory() == MemoryKind::kCuda) {
    GpuOwner owner(array.owner());
    const ArrayView local = array.local();
    array.free();
    return nb::cast(GpuArray{local, extents, std::move(owner), local.device()});
  }
  void* data = array.local().data();
  const auto ranks = self.comm.world_ranks();
  std::vector<int> makers(ranks.begin(), ranks.end());
  const nb::object owner = nb::cast(Allocation{std::move(array), std::move(makers)});
  return numpy_view(data, type, extents, owner);
}

// Returns the allocation at the end of an array's chain of bases.
nb::object allocation_of(nb::handle array) {
  nb::object base = nb::borrow(array);
  while (!nb::isinstance<Allocation>(base)) {
    if (!nb::hasattr(base, "base") || base.attr("base").is_none()) {
      throw InvalidArgument(
          "array is not symmetric; peer wants one made by symmetric.empty, or a "
          "view of such");
    }
    base = base.attr("base");
  }
  return base;
}

// Returns the index in `makers` of rank `rank` of this communicator.
int maker_of(const Allocation& allocation, const Communicator& comm, int rank) {
  const auto ranks = comm.world_ranks();
  if (rank < 0 || rank >= comm.size()) {
    throw InvalidArgument("rank is " + std::to_string(rank) + ", expected a rank from 0 to " +
                          std::to_string(comm.size() - 1));
  }
  const auto found = std::ranges::find(allocation.makers, ranks[static_cast<std::size_t>(rank)]);
  if (found == allocation.makers.end()) {
    throw InvalidArgument("rank " + std::to_string(rank) + " has no part of the array");
  }
  return static_cast<int>(found - allocation.makers.begin());
}

nb::object peer(Symmetric& symmetric, nb::handle array, nb::handle of) {
  const int rank = integer_argument(of, "rank");
  const Array view = read_array(array, "array");
  require_c_order(view, "array");
  if (view.is_on_gpu()) {
    const SymmetricMemory memory = symmetric.self.comm.symmetric();
    const int here = memory.peer(view.input(), symmetric.self.comm.rank()).device();
    return nb::cast(GpuArray{memory.peer(view.input(), rank),
                             shape_of(view),
                             GpuOwner(memory.owner(view.input())),
                             here});
  }
  const nb::object owner = allocation_of(array);
  const Allocation& allocation = nb::cast<Allocation&>(owner);
  const SymmetricArray& memory = allocation.array;
  const auto offset =
      static_cast<std::byte*>(view.data) - static_cast<std::byte*>(memory.local().data());
  const auto local_bytes = static_cast<std::ptrdiff_t>(memory.local().bytes());
  const auto bytes = static_cast<std::ptrdiff_t>(view.count * size_of(view.dtype));
  if (offset < 0 || bytes > local_bytes - offset) {  // such as an array that `peer` returned
    throw InvalidArgument(
        "array does not lie in this rank's own memory; pass what symmetric.empty "
        "returned, or a view of it");
  }
  auto* data =
      static_cast<std::byte*>(memory.peer(maker_of(allocation, symmetric.self.comm, rank)).data()) +
      offset;
  return numpy_view(data, view.dtype, shape_of(view), owner);
}

void free_array(Symmetric& symmetric, nb::handle array, nb::handle deadline) {
  CallOptions options;
  const Array view = read_arguments(symmetric.self, [&] {
    Array read = read_array(array, "array");
    if (!read.is_on_gpu()) {
      throw InvalidArgument(
          "array lies in the host's memory, which is given back when its last view is dropped");
    }
    options = {limit_argument(deadline, "deadline")};
    return read;
  });
  without_gil([&] { symmetric.self.comm.symmetric().free(view.input(), options); });
}

std::int32_t nvshmem_team(Symmetric& symmetric, nb::handle deadline) {
  const CallOptions options = read_arguments(
      symmetric.self, [&] { return CallOptions{limit_argument(deadline, "deadline")}; });
  return without_gil([&] { return symmetric.self.comm.symmetric().nvshmem_team(options); });
}

int device_of(const GpuArray& array) { return std::max(0, array.device); }

}  // namespace

void bind_symmetric(nb::module_& module, CommunicatorClass& cls) {
  using nb::arg;
  nb::class_<Allocation>(module, "_Allocation", "Symmetric memory; the base of arrays in it.");
  nb::class_<GpuArray>(module, "GpuArray", docstring_of("GpuArray"))
      .def_prop_ro(
          "shape",
          [](const GpuArray& a) { return tuple_of(a.shape); },
          nb::sig("def shape(self) -> tuple[int, ...]"),
          "Extents of all axes.")
      .def_prop_ro(
          "dtype",
          [](const GpuArray& a) { return std::string(name_of(a.view.dtype())); },
          "Its name.")
      .def_prop_ro(
          "nbytes", [](const GpuArray& a) { return a.view.bytes(); }, "Number of bytes.")
      .def_prop_ro(
          "data_ptr",
          [](const GpuArray& a) { return reinterpret_cast<std::uintptr_t>(a.view.data()); },
          "Its address.")
      .def_prop_ro("__cuda_array_interface__",
                   &cuda_array_interface,
                   nb::sig("def __cuda_array_interface__(self) -> dict[str, Any]"))
      .def(
          "__dlpack_device__",
          [](const GpuArray& a) { return nb::make_tuple(2, device_of(a)); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def(
          "__dlpack__",
          [](const GpuArray& a, nb::kwargs) { return to_dlpack(a, device_of(a)); },
          nb::sig("def __dlpack__(self, **kwargs: Any) -> Any"));
  nb::class_<Symmetric>(module, "SymmetricMemory", docstring_of("SymmetricMemory"))
      .def("__repr__",
           [](const Symmetric& s) {
             return to_text("<hocket.SymmetricMemory of communicator \"" + s.self.comm.name() +
                            "\">");
           })
      .def("empty",
           &empty,
           arg("shape").none(),
           arg("dtype").none() = "float64",
           arg("memory") = nb::none(),
           arg("deadline") = nb::none(),
           arg("heap") = nb::none(),
           nb::sig("def empty(self, shape: Union[int, Sequence[int]], dtype: Any = 'float64', "
                   "memory: Optional[str] = None, deadline: Timeout = None, "
                   "heap: Optional[str] = None) -> Any"),
           docstring_of("SymmetricMemory.empty"))
      .def("peer",
           &peer,
           arg("array").none(),
           arg("rank").none(),
           nb::sig("def peer(self, array: Any, rank: int) -> Any"),
           docstring_of("SymmetricMemory.peer"))
      .def("free",
           &free_array,
           arg("array"),
           arg("deadline") = nb::none(),
           nb::sig("def free(self, array: Any, deadline: Timeout = None) -> None"),
           docstring_of("SymmetricMemory.free"))
      .def("nvshmem_team",
           &nvshmem_team,
           arg("deadline") = nb::none(),
           nb::sig("def nvshmem_team(self, deadline: Timeout = None) -> int"),
           docstring_of("SymmetricMemory.nvshmem_team"));
  cls.def_prop_ro(
      "symmetric",
      [](CommunicatorObject& s) { return Symmetric{{Communicator(s.comm.impl()), s.world}}; },
      nb::sig("def symmetric(self) -> SymmetricMemory"),
      "Makes arrays that peers can reach, so that collectives on them copy nothing.");
}

}  // namespace hocket::python
