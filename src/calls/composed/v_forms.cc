// The v-forms. If counts are not given, one small call gathers them first.

#include "calls/call/operation.h"
#include "calls/composed/counts.h"
#include "calls/world/communicator_impl.h"

namespace hocket {

using call::Request;
using engine::Kind;
using engine::Signature;
using world::CommunicatorImpl;

call::Request composed::exchange_of_counts(const std::vector<std::size_t>& mine,
                                           std::vector<std::size_t>& theirs,
                                           std::optional<Duration> deadline) {
  return {.kind = engine::regular_of(Kind::kAllToAllV),
          .in = {mine.data(), mine.size(), DType::kUInt64},
          .out = {theirs.data(), theirs.size(), DType::kUInt64},
          .deadline = deadline};
}

namespace {

using Counts = std::vector<std::size_t>;

ArrayView as_array(Counts& counts) { return {counts.data(), counts.size(), DType::kUInt64}; }

Counts counts_for_all(world::CommunicatorImpl& impl, Kind kind) {
  return impl.before_call(kind, [&] { return Counts(static_cast<std::size_t>(impl.size())); });
}

// Gathers every rank's count. The record names the call that needs the counts.
Counts ask_all(world::CommunicatorImpl& impl,
               Kind kind,
               std::size_t mine,
               std::optional<Duration> deadline) {
  Counts all = counts_for_all(impl, kind);
  impl.run_as({.kind = kind, .digest = engine::kMeetsAll},
              {.kind = Kind::kAllGather,
               .in = {&mine, 1, DType::kUInt64},
               .out = as_array(all),
               .deadline = deadline});
  return all;
}

// A request with its gathered counts, which it owns.
struct Complete {
  call::Request request;
  Counts counts;
};

Complete all_gather_v(world::CommunicatorImpl& impl,
                      ConstArrayView in,
                      ArrayView out,
                      Parts parts,
                      const CallOptions& o) {
  Complete made{
      {.kind = Kind::kAllGatherV, .in = in, .out = out, .deadline = o.deadline, .stream = o.stream},
      {}};
  if (parts.counts.empty()) {
    made.counts = ask_all(impl, Kind::kAllGatherV, in.count(), o.deadline);
    parts.counts = made.counts;
  }
  made.request.out_parts = parts;
  return made;
}

Complete gather_v(world::CommunicatorImpl& impl,
                  ConstArrayView in,
                  ArrayView out,
                  Parts parts,
                  const RootOptions& o) {
  Complete made{{.kind = Kind::kGatherV,
                 .in = in,
                 .out = out,
                 .root = o.root,
                 .deadline = o.deadline,
                 .stream = o.stream},
                {}};
  if (parts.counts.empty()) {
    made.counts = ask_all(impl, Kind::kGatherV, in.count(), o.deadline);
    parts.counts = made.counts;
  }
  made.request.out_parts = parts;
  return made;
}

Complete reduce_scatter_v(world::CommunicatorImpl& impl,
                          ConstArrayView in,
                          ArrayView out,
                          std::span<const std::size_t> counts,
                          const ReduceOptions& o) {
  Complete made{{.kind = Kind::kReduceScatterV,
                 .in = in,
                 .out = out,
                 .op = o.op,
                 .deadline = o.deadline,
                 .stream = o.stream},
                {}};
  if (counts.empty()) {
    made.counts = ask_all(impl, Kind::kReduceScatterV, out.count(), o.deadline);
    counts = made.counts;
  }
  made.request.in_parts = {.counts = counts};
  return made;
}

Complete all_to_all_v(world::CommunicatorImpl& impl,
                      ConstArrayView in,
                      Parts in_parts,
                      ArrayView out,
                      Parts out_parts,
                      const CallOptions& o) {
  Complete made{{.kind = Kind::kAllToAllV,
                 .in = in,
                 .out = out,
                 .in_parts = in_parts,
                 .deadline = o.deadline,
                 .stream = o.stream},
                {}};
  if (out_parts.counts.empty()) {
    made.counts = counts_for_all(impl, Kind::kAllToAllV);
    impl.run_as({.kind = Kind::kAllToAllV, .digest = engine::kMeetsAll},
                {.kind = engine::regular_of(Kind::kAllToAllV),
                 .in = {in_parts.counts.data(), in_parts.counts.size(), DType::kUInt64},
                 .out = as_array(made.counts),
                 .deadline = o.deadline});
    out_parts.counts = made.counts;
  }
  made.request.out_parts = out_parts;
  return made;
}

call::Request scatter_v(ConstArrayView in, Parts parts, ArrayView out, const RootOptions& o) {
  return {.kind = Kind::kScatterV,
          .in = in,
          .out = out,
          .root = o.root,
          .in_parts = parts,
          .deadline = o.deadline,
          .stream = o.stream};
}

}  // namespace

void Communicator::all_gather_v(ConstArrayView in,
                                ArrayView out,
                                Parts parts,
                                const CallOptions& o) {
  impl_->run(::hocket::all_gather_v(*impl_, in, out, parts, o).request);
}
Work Communicator::all_gather_v_async(BorrowedView in,
                                      ArrayView out,
                                      Parts parts,
                                      const CallOptions& o) {
  return Work(impl_->start(::hocket::all_gather_v(*impl_, in, out, parts, o).request));
}
void Communicator::gather_v(ConstArrayView in, ArrayView out, Parts parts, const RootOptions& o) {
  impl_->run(::hocket::gather_v(*impl_, in, out, parts, o).request);
}
Work Communicator::gather_v_async(BorrowedView in,
                                  ArrayView out,
                                  Parts parts,
                                  const RootOptions& o) {
  return Work(impl_->start(::hocket::gather_v(*impl_, in, out, parts, o).request));
}
void Communicator::scatter_v(ConstArrayView in, Parts parts, ArrayView out, const RootOptions& o) {
  impl_->run(::hocket::scatter_v(in, parts, out, o));
}
Work Communicator::scatter_v_async(BorrowedView in,
                                   Parts parts,
                                   ArrayView out,
                                   const RootOptions& o) {
  return Work(impl_->start(::hocket::scatter_v(in, parts, out, o)));
}
void Communicator::reduce_scatter_v(ConstArrayView in,
                                    ArrayView out,
                                    std::span<const std::size_t> counts,
                                    const ReduceOptions& o) {
  impl_->run(::hocket::reduce_scatter_v(*impl_, in, out, counts, o).request);
}
Work Communicator::reduce_scatter_v_async(BorrowedView in,
                                          ArrayView out,
                                          std::span<const std::size_t> counts,
                                          const ReduceOptions& o) {
  return Work(impl_->start(::hocket::reduce_scatter_v(*impl_, in, out, counts, o).request));
}
void Communicator::all_to_all_v(
    ConstArrayView in, Parts in_parts, ArrayView out, Parts out_parts, const CallOptions& o) {
  impl_->run(::hocket::all_to_all_v(*impl_, in, in_parts, out, out_parts, o).request);
}
Work Communicator::all_to_all_v_async(
    BorrowedView in, Parts in_parts, ArrayView out, Parts out_parts, const CallOptions& o) {
  return Work(
      impl_->start(::hocket::all_to_all_v(*impl_, in, in_parts, out, out_parts, o).request));
}

}  // namespace hocket
