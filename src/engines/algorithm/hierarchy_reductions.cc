// Reductions in two levels; see hierarchy_engine.h. The ranks of each host reduce their arrays, and
// the lanes reduce the results of the hosts.
#include "engines/algorithm/hierarchy_engine.h"
#include "engines/algorithm/levels.h"
#include "engines/algorithm/partial.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {

using engine::Call;
using engine::Kind;
using engine::Signature;
using engine::Task;

Task HierarchyEngine::add_up_within(Call call,
                                    DType dtype,
                                    ReduceOp op,
                                    const std::byte* in,
                                    std::byte* out,
                                    std::span<const std::size_t> bytes) {
  const PartList parts({bytes.begin(), bytes.end()});
  const Call sub{.signature = {.kind = Kind::kReduceScatterV,
                               .dtype = dtype,
                               .op = op,
                               .count = parts.total() / size_of(dtype)},
                 .in = in,
                 .out = out,
                 .in_parts = parts.view(),
                 .own_bytes = parts.bytes(within_.rank)};
  co_await on(within_, call, sub);
}

Task HierarchyEngine::all_reduce(Call call) {
  const Signature& s = call.signature;
  const Partial partial(s.dtype, s.op, map_->ranks());
  const int lanes = lanes_for(bytes_of(s));
  const auto* in = static_cast<const std::byte*>(call.in);
  auto* out = static_cast<std::byte*>(call.out);

  const Scratch wide(partial.is_plain() ? 0 : s.count * partial.element());
  if (!partial.is_plain()) {
    partial.load(wide.get(), in, s.count);
    in = wide.get();
  }
  const auto partly = lane_bytes(s.count, partial.element(), lanes, within_.size);
  const std::size_t own = partly[static_cast<std::size_t>(within_.rank)];
  const Scratch sum(own);
  co_await add_up_within(call, partial.dtype(), partial.op(), in, sum.get(), partly);
  if (within_.rank < lanes) {
    const std::size_t count = own / partial.element();
    co_await on_lane(lanes,
                     call,
                     {.signature = {.kind = Kind::kAllReduce,
                                    .dtype = partial.dtype(),
                                    .op = partial.op(),
                                    .count = count},
                      .in = sum.get(),
                      .out = sum.get()});
  }
  const PartList parts(lane_bytes(s.count, size_of(s.dtype), lanes, within_.size));
  std::byte* result = out + parts.offset(within_.rank);
  partial.finish(result, sum.get(), own / partial.element());
  co_await on(within_,
              call,
              {.signature = {.kind = Kind::kAllGatherV, .dtype = s.dtype, .count = s.count},
               .in = result,
               .out = out,
               .out_parts = parts.view(),
               .own_bytes = parts.bytes(within_.rank)});
}

Task HierarchyEngine::reduce(Call call) {
  const Signature& s = call.signature;
  const Partial partial(s.dtype, s.op, map_->ranks());
  const int lanes = lanes_for(bytes_of(s));
  const auto* in = static_cast<const std::byte*>(call.in);
  const Scratch wide(partial.is_plain() ? 0 : s.count * partial.element());
  if (!partial.is_plain()) {
    partial.load(wide.get(), in, s.count);
    in = wide.get();
  }
  const auto partly = lane_bytes(s.count, partial.element(), lanes, within_.size);
  const std::size_t own = partly[static_cast<std::size_t>(within_.rank)];
  const std::size_t own_count = own / partial.element();
  const Scratch sum(own);
  co_await add_up_within(call, partial.dtype(), partial.op(), in, sum.get(), partly);
  const int root_host = map_->host_of(s.root);
  if (within_.rank < lanes) {
    co_await on_lane(lanes,
                     call,
                     {.signature = {.kind = Kind::kReduce,
                                    .dtype = partial.dtype(),
                                    .op = partial.op(),
                                    .root = root_host,
                                    .count = own_count},
                      .in = sum.get(),
                      .out = host() == root_host ? sum.get() : nullptr});
  }
  if (host() != root_host) co_return;
  const PartList parts(lane_bytes(s.count, size_of(s.dtype), lanes, within_.size));
  const Scratch result(parts.bytes(within_.rank));
  partial.finish(result.get(), sum.get(), own_count);
  co_await on(within_,
              call,
              {.signature = {.kind = Kind::kGatherV, .dtype = s.dtype, .root = map_->local(s.root)},
               .in = result.get(),
               .out = call.out,
               .out_parts = parts.view(),
               .own_bytes = parts.bytes(within_.rank)});
}

// The ranks of each host compute prefixes among themselves. Then they reduce the arrays of their
// host, and the lanes compute the sum of all hosts before this host by an exscan. Each rank
// combines this sum with its prefix within the host.
Task HierarchyEngine::scan(Call call) {
  const Signature& s = call.signature;
  const Partial partial(s.dtype, s.op, engine::combined(s.kind, rank_, map_->ranks()));
  const std::size_t element = partial.element();
  const bool is_first = s.kind == Kind::kExscan && local() == 0;  // no prefix within the host
  const int lanes = lanes_for(bytes_of(s));
  const auto* in = static_cast<const std::byte*>(call.in);
  const Scratch wide(partial.is_plain() ? 0 : s.count * element);
  if (!partial.is_plain()) {
    partial.load(wide.get(), in, s.count);
    in = wide.get();
  }
  const Scratch inside(s.count * element);
  co_await on(within_,
              call,
              {.signature =
                   {.kind = s.kind, .dtype = partial.dtype(), .op = partial.op(), .count = s.count},
               .in = in,
               .out = is_first ? nullptr : inside.get()});
  const PartList parts(lane_bytes(s.count, element, lanes, within_.size));
  const std::size_t own = parts.bytes(within_.rank);
  const Scratch before(s.count * element);  // the sum of the hosts before this one
  std::byte* const piece = before.get() + parts.offset(within_.rank);
  const Scratch sum(own);
  co_await add_up_within(call,
                         partial.dtype(),
                         partial.op(),
                         in,
                         sum.get(),
                         {parts.view().bytes, static_cast<std::size_t>(within_.size)});
  if (within_.rank < lanes) {
    co_await on_lane(lanes,
                     call,
                     {.signature = {.kind = Kind::kExscan,
                                    .dtype = partial.dtype(),
                                    .op = partial.op(),
                                    .count = own / element},
                      .in = sum.get(),
                      .out = host() == 0 ? nullptr : piece});
  }
  const std::byte* result = inside.get();
  if (host() > 0) {
    co_await on(
        within_,
        call,
        {.signature = {.kind = Kind::kAllGatherV, .dtype = partial.dtype(), .count = s.count},
         .in = piece,
         .out = before.get(),
         .out_parts = parts.view(),
         .own_bytes = own});
    if (is_first) {
      result = before.get();
    } else {
      partial.fold(inside.get(), before.get(), inside.get(), s.count);
    }
  }
  if (call.out != nullptr) {
    partial.finish(static_cast<std::byte*>(call.out), result, s.count);
  }
}

// Each rank first orders its array by lane, and each lane's pieces by host; see HostBlocks. The
// ranks of a host reduce these arrays by a reduce_scatter among the lanes. Each lane reduces its
// pieces by a reduce_scatter among the hosts. Then the ranks of a host gather the block of their
// host, and each rank copies its part.
Task HierarchyEngine::reduce_scatter(Call call) {
  const Signature& s = call.signature;
  const Partial partial(s.dtype, s.op, map_->ranks());
  const std::size_t element = size_of(s.dtype);
  const std::size_t wide = partial.element();
  const std::size_t total = total_of(call);
  const int lanes = lanes_for(total * element);
  const HostBlocks blocks(*map_, elements_of_ranks(call, call.in_parts, map_->ranks()), lanes);

  std::vector<std::size_t> lane_parts(static_cast<std::size_t>(within_.size));
  for (int lane = 0; lane < lanes; ++lane) {
    lane_parts[static_cast<std::size_t>(lane)] = blocks.lane_length(lane) * wide;
  }
  const PartList by_lane(lane_parts);
  const Scratch packed(total * wide);
  const auto* in = static_cast<const std::byte*>(call.in);
  const Parts in_parts = s.kind == Kind::kReduceScatter ? Parts::equal(s.count * element)
                                                        : Parts::listed(call.in_parts);
  blocks.for_each_overlap(
      [&](int rank, std::size_t at, int lane, std::size_t place, std::size_t length) {
        partial.load(packed.get() + by_lane.offset(lane) + place * wide,
                     in + in_parts.of(rank).first + at * element,
                     length);
      });
  const Scratch sum(by_lane.bytes(within_.rank));
  co_await add_up_within(call, partial.dtype(), partial.op(), packed.get(), sum.get(), lane_parts);

  // The lengths of the pieces of this host's block, by lane.
  std::vector<std::size_t> pieces_of_block(static_cast<std::size_t>(within_.size));
  for (int lane = 0; lane < lanes; ++lane) {
    pieces_of_block[static_cast<std::size_t>(lane)] =
        blocks.piece_of(host(), lane).length * element;
  }
  const PartList in_block(pieces_of_block);
  const Scratch block(in_block.total());
  std::byte* own_piece = block.get() + in_block.offset(within_.rank);
  if (within_.rank < lanes) {
    std::vector<std::size_t> host_parts;
    for (int h = 0; h < map_->hosts(); ++h) {
      host_parts.push_back(blocks.piece_of(h, within_.rank).length * wide);
    }
    const PartList by_host(host_parts);
    const Scratch piece(by_host.bytes(host()));
    co_await on_lane(lanes,
                     call,
                     {.signature = {.kind = Kind::kReduceScatterV,
                                    .dtype = partial.dtype(),
                                    .op = partial.op(),
                                    .count = by_host.total() / wide},
                      .in = sum.get(),
                      .out = piece.get(),
                      .in_parts = by_host.view(),
                      .own_bytes = by_host.bytes(host())});
    partial.finish(own_piece, piece.get(), by_host.bytes(host()) / wide);
  }
  co_await on(within_,
              call,
              {.signature = {.kind = Kind::kAllGatherV,
                             .dtype = s.dtype,
                             .count = in_block.total() / element},
               .in = own_piece,
               .out = block.get(),
               .out_parts = in_block.view(),
               .own_bytes = in_block.bytes(within_.rank)});
  place({static_cast<std::byte*>(call.out), blocks.part(rank_) * element},
        {block.get() + blocks.in_block(rank_) * element, blocks.part(rank_) * element});
}

}  // namespace hocket::algorithm
