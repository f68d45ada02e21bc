#include "interfaces/capi/options.h"

namespace hocket::capi {

void Refusal::operator()(const std::string& reason) const {
  if (comm_) (comm_->*refuse_)(reason);
  throw InvalidArgument(reason);
}

std::optional<Duration> duration(const Refusal& refuse,
                                 std::int64_t nanoseconds,
                                 const char* name) {
  if (nanoseconds == 0) return {};
  if (nanoseconds < 0) {
    refuse(std::string(name) + " is " + std::to_string(nanoseconds) +
           ", expected nanoseconds, 0 for the default, or HOCKET_FOREVER");
  }
  return Duration(nanoseconds);
}

Duration timeout(std::int64_t nanoseconds) {
  if (nanoseconds < 0) {
    throw InvalidArgument("timeout_ns is " + std::to_string(nanoseconds) +
                          ", expected nanoseconds, or HOCKET_FOREVER");
  }
  return Duration(nanoseconds);
}

namespace {

// Values of `memory` by which hocket.f90's hocket_view marks arrays that no call can use.
enum : std::int32_t { kNotContiguous = -1, kNotAllocated = -2 };

void refuse_fortran_view(const Refusal& refuse, std::int32_t memory, const std::string& name) {
  if (memory == kNotContiguous) {
    refuse(name +
           " is a part of an array whose elements do not follow each other in memory; copy it " +
           "into an array of its own, and pass that one");
  }
  if (memory == kNotAllocated) {
    refuse(name +
           " is not allocated, or a pointer to nothing; leave the argument out where this rank " +
           "has no array");
  }
}

void refuse_received(const Refusal& refuse, const hocket_call_options& o) {
  if (o.received == nullptr) return;
  refuse("options->received is set; it is for hocket_send_recv");
}

CallOptions call_options(const Refusal& refuse, const hocket_call_options& o) {
  CallOptions made{.deadline = duration(refuse, o.deadline_ns, "options->deadline_ns")};
  if (o.stream != nullptr || o.on_stream != 0) {
    made.stream = StreamRef(static_cast<CUstream_st*>(o.stream));
  }
  return made;
}

}  // namespace

CallOptions call_options(const Refusal& refuse, const hocket_call_options* options) {
  if (options == nullptr) return {};
  const hocket_call_options o = read(refuse, options, "hocket_call_options");
  if (o.allow_shorter != 0) {
    refuse("options->allow_shorter is set; it is for hocket_recv, hocket_recv_async and " +
           std::string("hocket_send_recv"));
  }
  refuse_received(refuse, o);
  return call_options(refuse, o);
}

MessageOptions receive_options(const Refusal& refuse,
                               const hocket_call_options* options,
                               int tag,
                               hocket_received** told) {
  if (options == nullptr) return {.tag = tag};
  const hocket_call_options o = read(refuse, options, "hocket_call_options");
  if (told == nullptr) {
    refuse_received(refuse, o);
  } else {
    *told = o.received;
  }
  MessageOptions made = with_tag(call_options(refuse, o), tag);
  made.allow_shorter = o.allow_shorter != 0;
  return made;
}

hocket_received as_c(const Received& received) noexcept {
  return {received.source, received.tag, received.count, static_cast<std::int32_t>(received.dtype)};
}

DType dtype(const Refusal& refuse, std::int32_t dtype, const char* name, const char* field) {
  if (dtype < 0 || dtype >= kDTypeCount) {
    refuse(std::string(name) + field + " is " + std::to_string(dtype) +
           ", expected HOCKET_BOOL (0) to " + "HOCKET_FLOAT8_E5M2 (" +
           std::to_string(kDTypeCount - 1) + ")");
  }
  return static_cast<DType>(dtype);
}

ReduceOp op(const Refusal& refuse, std::int32_t op) {
  if (op < 0 || op >= kReduceOpCount) {
    refuse("op is " + std::to_string(op) + ", expected HOCKET_SUM (0) to HOCKET_BIT_XOR (" +
           std::to_string(kReduceOpCount - 1) + ")");
  }
  return static_cast<ReduceOp>(op);
}

ArrayView view(const Refusal& refuse, const hocket_array* array, const char* name) {
  if (array == nullptr) return {};
  refuse_fortran_view(refuse, array->memory, name);
  if (array->memory < HOCKET_MEMORY_DEFAULT || array->memory > HOCKET_MEMORY_CUDA) {
    refuse(std::string(name) + "->memory is " + std::to_string(array->memory) +
           ", expected HOCKET_MEMORY_HOST (1) or HOCKET_MEMORY_CUDA (2)");
  }
  const DType elements = dtype(refuse, array->dtype, name, "->dtype");
  if (array->data == nullptr && array->count != 0) {
    refuse(std::string(name) + "->data is null, and its count is " + std::to_string(array->count));
  }
  const bool is_cuda = array->memory == HOCKET_MEMORY_CUDA;
  return {array->data, array->count, elements, is_cuda ? MemoryKind::kCuda : MemoryKind::kHost};
}

ArrayView required(const Refusal& refuse, const hocket_array* array, const char* name) {
  if (array == nullptr) refuse(std::string(name) + " is null");
  return view(refuse, array, name);
}

void check_list(const Refusal& refuse,
                const void* list,
                std::size_t length,
                std::size_t bytes,
                const std::string& name,
                const std::string& length_name) {
  const std::string given = length_name + " is " + std::to_string(length);
  if (list == nullptr && length != 0) refuse(name + " is null, and " + given);
  if (length > PTRDIFF_MAX / bytes) refuse(given + ", more than any memory holds");
}

hocket_array to_c(ArrayView view) noexcept {
  const bool is_cuda = view.memory() == MemoryKind::kCuda;
  return {view.data(),
          view.count(),
          static_cast<std::int32_t>(view.dtype()),
          is_cuda ? HOCKET_MEMORY_CUDA : HOCKET_MEMORY_HOST};
}

}  // namespace hocket::capi
