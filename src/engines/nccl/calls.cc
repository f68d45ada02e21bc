// Translates each collective into NCCL's calls.
#include <algorithm>
#include <optional>

#include "engines/nccl/nccl_engine.h"
#include "foundation/cuda/memory.h"

namespace hocket::engines::nccl {

using engine::Call;
using engine::Kind;
using engine::Part;
using engine::Signature;

namespace {

// The elements of a dtype as NCCL counts and combines them. For example, a complex number is two
// floats, and a bool is a byte.
struct Elements {
  NcclType type;
  std::size_t each;  // number of NCCL elements in one element of the dtype
};

Elements elements_of(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return {NcclType::kInt8, 1};
    case DType::kInt32:
      return {NcclType::kInt32, 1};
    case DType::kInt64:
      return {NcclType::kInt64, 1};
    case DType::kUInt32:
      return {NcclType::kUInt32, 1};
    case DType::kUInt64:
      return {NcclType::kUInt64, 1};
    case DType::kFloat16:
      return {NcclType::kFloat16, 1};
    case DType::kBFloat16:
      return {NcclType::kBFloat16, 1};
    case DType::kFloat32:
      return {NcclType::kFloat32, 1};
    case DType::kFloat64:
      return {NcclType::kFloat64, 1};
    case DType::kComplex64:
      return {NcclType::kFloat32, 2};
    case DType::kComplex128:
      return {NcclType::kFloat64, 2};
    case DType::kBool:
    case DType::kInt16:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      break;
  }
  return {NcclType::kUInt8, size_of(dtype)};
}

// Returns NCCL's operator. Operators on bools are minimum or maximum of the numbers 0 and 1.
RedOp op_of(const Signature& s) {
  const bool is_bool = s.dtype == DType::kBool;
  switch (s.op) {
    case ReduceOp::kProduct:
      return is_bool ? RedOp::kMin : RedOp::kProduct;
    case ReduceOp::kMin:
      return RedOp::kMin;
    case ReduceOp::kMax:
      return RedOp::kMax;
    case ReduceOp::kAvg:
      return RedOp::kAvg;
    case ReduceOp::kSum:
    case ReduceOp::kBitAnd:  // not reached, as kBitOr and kBitXor: see NcclEngine::score
    case ReduceOp::kBitOr:
    case ReduceOp::kBitXor:
      break;
  }
  return is_bool ? RedOp::kMax : RedOp::kSum;
}

const std::byte* in_at(const Call& call, std::size_t offset) {
  return static_cast<const std::byte*>(call.in) + offset;
}
std::byte* out_at(const Call& call, std::size_t offset) {
  return static_cast<std::byte*>(call.out) + offset;
}

}  // namespace

template <typename Calls>
void NcclEngine::group(const Calls& calls) {
  check(library_->group_start());
  try {
    calls();
  } catch (...) {
    library_->group_end();
    throw;
  }
  check(library_->group_end());
}

void NcclEngine::put(std::span<const engine::DeviceMessage> messages, cuda::Stream stream) {
  group([&] {
    for (const engine::DeviceMessage& m : messages) {
      if (m.way == engine::DeviceMessage::Way::kSend) {
        send(m.data, m.bytes, m.peer, stream);
      } else {
        receive(m.data, m.bytes, m.peer, stream);
      }
    }
  });
}

void NcclEngine::send(const void* data, std::size_t bytes, int peer, cuda::Stream stream) {
  if (bytes != 0) check(library_->send(data, bytes, NcclType::kUInt8, peer, comm_, stream));
}

void NcclEngine::receive(void* data, std::size_t bytes, int peer, cuda::Stream stream) {
  if (bytes != 0) check(library_->recv(data, bytes, NcclType::kUInt8, peer, comm_, stream));
}

void NcclEngine::put(const Call& call, cuda::Stream stream) {
  const Signature& s = call.signature;
  const auto [type, each] = elements_of(s.dtype);
  const std::size_t count = s.count * each;
  if (s.kind == Kind::kBarrier) {
    const cuda::ScratchMemory word(*device_, sizeof(std::uint32_t), stream);
    check(library_->all_reduce(
        word.data(), word.data(), 1, NcclType::kUInt32, RedOp::kSum, comm_, stream));
    return wait_for_call();  // before the word is released
  }
  if (is_reduction(s.kind)) {
    if (is_listed(s.kind)) return put_reduce_scatter_v(call, stream);
    const RedOp op = op_of(s);
    if (has_parts(s.kind)) {
      const auto reduce_scatter_to = [&](void* out) {
        check(library_->reduce_scatter(call.in, out, count, type, op, comm_, stream));
      };
      const bool is_nccls_own_form = call.in != call.out || facts_.rank == 0;
      if (is_nccls_own_form || count == 0) return reduce_scatter_to(call.out);
      // In place, NCCL wants the result in this rank's part of the input, not in the first part.
      const cuda::ScratchMemory result(*device_, bytes_of(s), stream);
      reduce_scatter_to(result.data());
      wait_for_call();  // NCCL starts it in its own thread, and the copy comes behind it
      return cuda::copy(device_->driver(), call.out, result.data(), bytes_of(s), stream);
    }
    if (is_rooted(s.kind)) {
      return check(library_->reduce(call.in, call.out, count, type, op, s.root, comm_, stream));
    }
    return check(library_->all_reduce(call.in, call.out, count, type, op, comm_, stream));
  }
  if (swaps_parts(s.kind)) return put_all_to_all(call, stream);
  if (!has_parts(s.kind)) {
    const void* in = call.in == nullptr ? call.out : call.in;
    return check(
        library_->broadcast(in, call.out, bytes_of(s), NcclType::kUInt8, s.root, comm_, stream));
  }
  if (is_rooted(s.kind) || is_listed(s.kind)) return put_movement(call, stream);
  return check(
      library_->all_gather(call.in, call.out, bytes_of(s), NcclType::kUInt8, comm_, stream));
}

// Carries gather, scatter, their v-forms, and all_gather_v. Each rank sends and receives parts. It
// copies its own part unless the call is in place.
void NcclEngine::put_movement(const Call& call, cuda::Stream stream) {
  const Signature& s = call.signature;
  const int rank = facts_.rank;
  const engine::Flow flow = engine::row_of(s.kind).flow;
  const bool gathers = flow == engine::Flow::kToRoot;
  const bool scatters = flow == engine::Flow::kFromRoot;
  const bool among_all = flow == engine::Flow::kAmongAll;
  const bool takes = among_all || (gathers && rank == s.root);
  group([&] {
    for (int peer = 0; peer < facts_.size; ++peer) {
      if (peer == rank) continue;
      if (takes) {
        const Part part = part_of(call, call.out_parts, peer);
        receive(out_at(call, part.offset), part.bytes, peer, stream);
      }
      if (scatters && rank == s.root) {
        const Part part = part_of(call, call.in_parts, peer);
        send(in_at(call, part.offset), part.bytes, peer, stream);
      }
      if (among_all || (gathers && peer == s.root)) {
        send(call.in, own_bytes(call), peer, stream);
      }
      if (scatters && peer == s.root) receive(call.out, own_bytes(call), peer, stream);
    }
  });
  const void* from = call.in;
  void* to = call.out;
  if (takes) {
    to = out_at(call, part_of(call, call.out_parts, rank).offset);
  } else if (scatters && rank == s.root) {
    from = in_at(call, part_of(call, call.in_parts, rank).offset);
  } else {
    return;
  }
  if (from != to) cuda::copy(device_->driver(), to, from, own_bytes(call), stream);
}

// In a call in place, received data would overwrite data that this rank has not sent yet. So the
// rank sends from a copy.
void NcclEngine::put_all_to_all(const Call& call, cuda::Stream stream) {
  const int last = facts_.size - 1;
  std::optional<cuda::ScratchMemory> copy;
  const std::byte* in = in_at(call, 0);
  if (call.in == call.out) {
    std::size_t bytes = 0;
    for (int peer = 0; peer <= last; ++peer) {
      const Part part = part_of(call, call.in_parts, peer);
      bytes = std::max(bytes, part.offset + part.bytes);
    }
    if (bytes == 0) return;
    copy.emplace(*device_, bytes, stream);
    cuda::copy(device_->driver(), copy->data(), call.in, bytes, stream);
    in = static_cast<const std::byte*>(copy->data());
  }
  group([&] {
    for (int peer = 0; peer <= last; ++peer) {
      if (peer == facts_.rank) continue;
      const Part to = part_of(call, call.in_parts, peer);
      const Part from = part_of(call, call.out_parts, peer);
      send(in + to.offset, to.bytes, peer, stream);
      receive(out_at(call, from.offset), from.bytes, peer, stream);
    }
  });
  if (call.in == call.out) return wait_for_call();  // before the copy is released
  const Part to = part_of(call, call.in_parts, facts_.rank);
  const Part from = part_of(call, call.out_parts, facts_.rank);
  cuda::copy(device_->driver(), out_at(call, from.offset), in + to.offset, to.bytes, stream);
}

// Makes one reduce for each part, with the owner of the part as the root.
void NcclEngine::put_reduce_scatter_v(const Call& call, cuda::Stream stream) {
  const Signature& s = call.signature;
  const auto [type, each] = elements_of(s.dtype);
  const std::size_t unit = size_of(s.dtype) / each;
  group([&] {
    for (int owner = 0; owner < facts_.size; ++owner) {
      const Part part = part_of(call, call.in_parts, owner);
      if (part.bytes == 0) continue;
      check(library_->reduce(in_at(call, part.offset),
                             call.out,
                             part.bytes / unit,
                             type,
                             op_of(s),
                             owner,
                             comm_,
                             stream));
    }
  });
}

}  // namespace hocket::engines::nccl
