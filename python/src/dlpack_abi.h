// DLPack's binary interface, version 1.3: the structs that array libraries hand to each other.
//
// The layout and the values are those of the standard. The names are hocket's own, because only the
// layout matters.
#pragma once

#include <cstdint>

namespace hocket::python::dlpack {

enum DeviceType : std::int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };

enum TypeCode : std::uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBFloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E5M2 = 12,
};

struct Device {
  std::int32_t type;
  std::int32_t id;
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: C order
  std::uint64_t byte_offset;
};

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

// The content of a capsule named "dltensor".
struct ManagedTensor {
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor*);
};

// The content of a capsule named "dltensor_versioned".
struct VersionedTensor {
  Version version;
  void* context;
  void (*deleter)(VersionedTensor*);
  std::uint64_t flags;
  Tensor tensor;
};
inline constexpr std::uint64_t kReadOnly = 1;

struct ExchangeHeader {
  Version version;
  ExchangeHeader* previous;
};

// The content of a type's `__dlpack_c_exchange_api__` capsule. Functions return 0, or -1 with a
// Python error set.
struct ExchangeApi {
  ExchangeHeader header;
  void* allocate;
  int (*export_tensor)(void* object, VersionedTensor** out);
  void* import_tensor;
  // Fills a tensor that is valid until the object changes. The pointer may be null.
  int (*view_tensor)(void* object, Tensor* out);
  // Returns the framework's current stream on a device.
  int (*current_stream)(std::int32_t device_type, std::int32_t device_id, void** out);
};

}  // namespace hocket::python::dlpack
