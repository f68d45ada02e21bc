// Converts C's arguments to C++'s: handles, arrays, options. A refusal names the wrong argument.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "hocket/communicator.h"
#include "hocket/error.h"
#include "hocket/grid.h"
#include "hocket/group.h"
#include "hocket/object.h"
#include "hocket/symmetric.h"
#include "interfaces/capi/errors.h"

namespace hocket::capi {

// The first word of each handle, which shows a handle of a wrong type. C, Fortran and ctypes can
// pass any handle for any other without a compiler error.
enum class Handle : std::uint32_t {
  kComm = 0x686b6301,
  kWork = 0x686b6302,
  kSymmetric = 0x686b6303,
  kObject = 0x686b6304,
  kPrepared = 0x686b6305,
  kGrid = 0x686b6306,
};

}  // namespace hocket::capi

// Resources, each behind its handle.
struct hocket_comm {
  static constexpr auto kHandle = hocket::capi::Handle::kComm;
  static constexpr const char* kName = "hocket_comm";

  hocket::capi::Handle handle = kHandle;
  hocket::Communicator comm;
  // Keeps this process in the job until the last communicator is freed.
  std::shared_ptr<hocket::World> world;
};

namespace hocket::capi {

// The results of a call of objects, and the sender if it was a receive. A value.
struct ObjectResults {
  std::vector<Object> objects;
  std::optional<std::int32_t> from = {};
};

}  // namespace hocket::capi

struct hocket_work {
  static constexpr auto kHandle = hocket::capi::Handle::kWork;
  static constexpr const char* kName = "hocket_work";

  hocket::capi::Handle handle = kHandle;
  std::shared_ptr<const void> keep = {};  // objects that the call needs; destroyed after it
  hocket::Work work;
  // Returns the results of a call of objects that has ended well. Empty for other calls.
  std::function<hocket::capi::ObjectResults()> objects = {};
};

struct hocket_symmetric {
  static constexpr auto kHandle = hocket::capi::Handle::kSymmetric;
  static constexpr const char* kName = "hocket_symmetric";

  hocket::capi::Handle handle = kHandle;
  hocket::SymmetricArray array;
  std::shared_ptr<hocket::World> world;
};

struct hocket_object {
  static constexpr auto kHandle = hocket::capi::Handle::kObject;
  static constexpr const char* kName = "hocket_object";

  hocket::capi::Handle handle = kHandle;
  hocket::Object object;
  std::vector<std::byte> encoding = {};  // made when it is asked for
};

struct hocket_prepared {
  static constexpr auto kHandle = hocket::capi::Handle::kPrepared;
  static constexpr const char* kName = "hocket_prepared";

  hocket::capi::Handle handle = kHandle;
  hocket::Communicator comm;              // tells its other ranks of refused arguments
  std::shared_ptr<const void> keep = {};  // objects that the call needs; destroyed after it
  hocket::Prepared prepared;
};

struct hocket_grid {
  static constexpr auto kHandle = hocket::capi::Handle::kGrid;
  static constexpr const char* kName = "hocket_grid";

  hocket::capi::Handle handle = kHandle;
  hocket::Grid grid;
  std::shared_ptr<hocket::World> world;
};

namespace hocket::capi {

// Returns a second handle of the same communicator, which keeps it alive.
inline Communicator another_handle(const Communicator& comm) {
  return Communicator(static_cast<const std::shared_ptr<world::CommunicatorImpl>&>(comm.impl()));
}

// Returns the object behind `handle`. Throws if the handle is null, or belongs to another type.
template <typename T>
T& of(T* handle, const char* name) {
  if (handle == nullptr) throw InvalidArgument(std::string(name) + " is null");
  if (handle->handle != std::remove_const_t<T>::kHandle) {
    throw InvalidArgument(std::string(name) + " is no " + std::remove_const_t<T>::kName +
                          ": it is another handle, or has been freed");
  }
  return *handle;
}

// Returns the place for a result. Throws if it is null.
template <typename T>
T& place(T* pointer, const char* name) {
  if (pointer == nullptr)
    throw InvalidArgument(std::string(name) + " is null; it takes the result");
  return *pointer;
}

// Releases the object of `*handle` and sets that to null. Does nothing if either is null.
template <typename T>
void release(T** handle) noexcept {
  if (handle == nullptr || *handle == nullptr) return;
  T* const owned = *handle;
  *handle = nullptr;
  if (owned->handle != T::kHandle) return;  // another kind's, or freed already
  delete owned;
}

// Refuses an argument. If other ranks take part in the call, the refusal reaches them at once.
class Refusal {
 public:
  // Makes a refusal for a call of this rank alone.
  Refusal() noexcept = default;
  // Makes a refusal for a collective call of `comm`.
  explicit Refusal(Communicator& comm) noexcept : comm_(&comm) {}
  // Makes a refusal for a rebuild of `comm`.
  static Refusal of_rebuild(Communicator& comm) noexcept {
    Refusal refusal(comm);
    refusal.refuse_ = &Communicator::refuse_rebuild;
    return refusal;
  }

  [[noreturn]] void operator()(const std::string& reason) const;

 private:
  Communicator* comm_ = nullptr;
  void (Communicator::*refuse_)(const std::string&) = &Communicator::refuse;
};

// The size of the first version of each struct, which is the least that a program passes. A field
// added later begins at a multiple of 8, so it never lies in the padding of an older version.
template <typename T>
inline constexpr std::size_t kFirstSize = 0;
template <>
inline constexpr std::size_t kFirstSize<hocket_init_options> = 16 + 6 * 8;
template <>
inline constexpr std::size_t kFirstSize<hocket_call_options> = 32;
template <>
inline constexpr std::size_t kFirstSize<hocket_rebuild_options> = 24;
template <>
inline constexpr std::size_t kFirstSize<hocket_admit_options> = 40;
template <>
inline constexpr std::size_t kFirstSize<hocket_symmetric_options> = 24;
template <>
inline constexpr std::size_t kFirstSize<hocket_operator> = 32;

// Returns the caller's options. The caller's struct may be of an older version, or of a newer one
// if its added fields are zero.
template <typename T>
T read(const Refusal& refuse,
       const T* options,
       const char* type,
       const std::string& name = "options") {
  static_assert(kFirstSize<T> != 0 && sizeof(T) >= kFirstSize<T>);
  T known{};
  if (options == nullptr) return known;
  constexpr std::size_t kMost = 4096;
  const std::size_t size = options->size;
  if (size < kFirstSize<T> || size > kMost) {
    refuse(name + "->size is " + std::to_string(size) + ", expected sizeof(" + type + "), " +
           std::to_string(sizeof(T)));
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(options);
  for (std::size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] == 0) continue;
    refuse(name + " has a field that this version of hocket does not know, at byte " +
           std::to_string(i) + " of " + type + "; this is " + hocket_version());
  }
  std::memcpy(&known, options, std::min(size, sizeof(T)));
  return known;
}

// Converts a duration; 0 means absent.
std::optional<Duration> duration(const Refusal& refuse, std::int64_t nanoseconds, const char* name);
// Converts the time limit of a wait: 0 or more nanoseconds, or HOCKET_FOREVER.
Duration timeout(std::int64_t nanoseconds);
CallOptions call_options(const Refusal& refuse, const hocket_call_options* options);

// `name` and `field`: the argument's name in the C interface.
DType dtype(const Refusal& refuse, std::int32_t dtype, const char* name, const char* field = "");
ReduceOp op(const Refusal& refuse, std::int32_t op);
// Converts an array; null means absent.
ArrayView view(const Refusal& refuse, const hocket_array* array, const char* name);
// Converts an array, and refuses null.
ArrayView required(const Refusal& refuse, const hocket_array* array, const char* name);

// Refuses a list that cannot exist: null, or too long for memory. It has `length` elements of
// `bytes` bytes each. `name` and `length_name` are the arguments' names.
void check_list(const Refusal& refuse,
                const void* list,
                std::size_t length,
                std::size_t bytes,
                const std::string& name,
                const std::string& length_name = "length");
hocket_array to_c(ArrayView view) noexcept;

// Convert the options of a call to the options of its family of calls.
inline ReduceOptions with_op(const CallOptions& o, ReduceOp op) {
  return {.op = op, .deadline = o.deadline, .stream = o.stream};
}
inline RootOptions with_root(const CallOptions& o, int root) {
  return {.root = root, .deadline = o.deadline, .stream = o.stream};
}
inline MessageOptions with_tag(const CallOptions& o, int tag) {
  return {.tag = tag, .deadline = o.deadline, .stream = o.stream};
}
// Converts the options of a receive, the only calls that take allow_shorter. `told` gets the
// pointer options->received. If `told` is null, options->received must be null, too.
MessageOptions receive_options(const Refusal& refuse,
                               const hocket_call_options* options,
                               int tag,
                               hocket_received** told = nullptr);
hocket_received as_c(const Received& received) noexcept;

// Makes a handle of the result of `start`. A null `work` is refused before the call starts.
template <typename Start>
void start_work(const Refusal& refuse, hocket_work** work, const Start& start) {
  if (work == nullptr) refuse("work is null; it takes the handle of the call");
  std::unique_ptr<hocket_work> made(new (std::nothrow) hocket_work);
  if (!made) refuse("this rank got no memory for the handle of the call");
  made->work = start();
  *work = made.release();
}

}  // namespace hocket::capi
