// Movement in two levels; see hierarchy_engine.h. Data leaves a host only once.

#include "engines/algorithm/hierarchy_engine.h"
#include "engines/algorithm/levels.h"
#include "engines/algorithm/messages.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {

using engine::Call;
using engine::Kind;
using engine::Signature;
using engine::Task;

// The root's host scatters the array among its lanes. Each lane broadcasts its share to the other
// hosts. Then the ranks of each host gather the shares.
Task HierarchyEngine::broadcast(Call call) {
  const Signature& s = call.signature;
  const int lanes = lanes_for(bytes_of(s));
  const int root_host = map_->host_of(s.root);
  const PartList parts(lane_bytes(s.count, size_of(s.dtype), lanes, within_.size));
  auto* out = static_cast<std::byte*>(call.out);
  std::byte* own = out + parts.offset(within_.rank);
  if (rank_ == s.root) {
    place({out, bytes_of(s)}, {static_cast<const std::byte*>(call.in), bytes_of(s)});
  }
  if (host() == root_host) {
    co_await on(
        within_,
        call,
        {.signature = {.kind = Kind::kScatterV, .dtype = s.dtype, .root = map_->local(s.root)},
         .in = rank_ == s.root ? out : nullptr,
         .out = own,
         .in_parts = parts.view(),
         .own_bytes = parts.bytes(within_.rank)});
  }
  if (within_.rank < lanes) {
    co_await on_lane(lanes,
                     call,
                     {.signature = {.kind = Kind::kBroadcast,
                                    .dtype = s.dtype,
                                    .root = root_host,
                                    .count = parts.bytes(within_.rank) / size_of(s.dtype)},
                      .in = host() == root_host ? own : nullptr,
                      .out = own});
  }
  co_await on(within_,
              call,
              {.signature = {.kind = Kind::kAllGatherV, .dtype = s.dtype, .count = s.count},
               .in = own,
               .out = out,
               .out_parts = parts.view(),
               .own_bytes = parts.bytes(within_.rank)});
}

// The ranks of each host gather the block of their host; see HostBlocks. Each lane gathers its
// pieces of all hosts' blocks. Then the ranks of each host gather the pieces of all lanes, and copy
// them to their positions in the output.
Task HierarchyEngine::all_gather(Call call) {
  const Signature& s = call.signature;
  const std::size_t element = size_of(s.dtype);
  const std::size_t total = total_of(call);
  const int lanes = lanes_for(total * element);
  const HostBlocks blocks(*map_, elements_of_ranks(call, call.out_parts, map_->ranks()), lanes);

  std::vector<std::size_t> neighbours;
  for (const int rank : map_->members(host())) neighbours.push_back(blocks.part(rank) * element);
  const PartList in_block(neighbours);
  const Scratch block(in_block.total());
  co_await on(within_,
              call,
              {.signature = {.kind = Kind::kAllGatherV,
                             .dtype = s.dtype,
                             .count = in_block.total() / element},
               .in = call.in,
               .out = block.get(),
               .out_parts = in_block.view(),
               .own_bytes = in_block.bytes(within_.rank)});

  std::vector<std::size_t> lane_parts(static_cast<std::size_t>(within_.size));
  for (int lane = 0; lane < lanes; ++lane) {
    lane_parts[static_cast<std::size_t>(lane)] = blocks.lane_length(lane) * element;
  }
  const PartList by_lane(lane_parts);
  const Scratch packed(by_lane.total());
  std::byte* own = packed.get() + by_lane.offset(within_.rank);
  if (within_.rank < lanes) {
    std::vector<std::size_t> pieces_of_hosts;
    for (int h = 0; h < map_->hosts(); ++h) {
      pieces_of_hosts.push_back(blocks.piece_of(h, within_.rank).length * element);
    }
    const PartList by_host(pieces_of_hosts);
    const bool alike = s.kind == Kind::kAllGather && map_->is_even();
    co_await on_lane(
        lanes,
        call,
        {.signature = {.kind = alike ? Kind::kAllGather : Kind::kAllGatherV,
                       .dtype = s.dtype,
                       .count = (alike ? by_host.bytes(0) : by_host.total()) / element},
         .in = block.get() + blocks.piece_of(host(), within_.rank).first * element,
         .out = own,
         .out_parts = by_host.view(),
         .own_bytes = by_host.bytes(host())});
  }
  co_await on(within_,
              call,
              {.signature = {.kind = Kind::kAllGatherV, .dtype = s.dtype, .count = total},
               .in = own,
               .out = packed.get(),
               .out_parts = by_lane.view(),
               .own_bytes = by_lane.bytes(within_.rank)});
  auto* out = static_cast<std::byte*>(call.out);
  const Parts out_parts =
      s.kind == Kind::kAllGather ? Parts::equal(s.count * element) : Parts::listed(call.out_parts);
  blocks.for_each_overlap(
      [&](int rank, std::size_t at, int lane, std::size_t from, std::size_t length) {
        place({out + out_parts.of(rank).first + at * element, length * element},
              {packed.get() + by_lane.offset(lane) + from * element, length * element});
      });
}

// The first rank of each host gathers all data of its host, exchanges it with the other hosts, and
// scatters the result. This is for short parts: it saves messages between hosts, but moves more
// bytes within a host. If all hosts have equally many ranks, all parts are equal. Then the exchange
// is an all_to_all and not a v-form, for which algorithms with fewer messages exist.
Task HierarchyEngine::all_to_all(Call call) {
  const Signature& s = call.signature;
  const std::size_t share = bytes_of(s);
  const auto ranks = static_cast<std::size_t>(map_->ranks());
  const auto neighbours = static_cast<std::size_t>(within_.size);
  const std::size_t row = ranks * share;
  const bool leads = within_.rank == 0;
  const auto bytes = leads ? neighbours * row : 0;
  const Scratch rows(bytes);
  const Scratch packed(bytes);
  co_await on(within_,
              call,
              {.signature = {.kind = Kind::kGather, .dtype = s.dtype, .count = s.count * ranks},
               .in = call.in,
               .out = leads ? rows.get() : nullptr});
  if (leads) {
    std::vector<std::size_t> host_parts;
    for (int h = 0; h < map_->hosts(); ++h) {
      host_parts.push_back(neighbours * map_->members(h).size() * share);
    }
    const PartList by_host(host_parts);
    // Packs the data for each host, ordered by sender and then by receiver.
    std::byte* next = packed.get();
    for (int h = 0; h < map_->hosts(); ++h) {
      for (std::size_t from = 0; from < neighbours; ++from) {
        for (const int to : map_->members(h)) {
          place({next, share},
                {rows.get() + from * row + static_cast<std::size_t>(to) * share, share});
          next += share;
        }
      }
    }
    const std::size_t each = map_->is_even() ? by_host.bytes(0) / size_of(s.dtype) : 0;
    co_await on_lane(1,
                     call,
                     {.signature = {.kind = map_->is_even() ? s.kind : engine::listed_of(s.kind),
                                    .dtype = s.dtype,
                                    .count = each},
                      .in = packed.get(),
                      .out = rows.get(),
                      .in_parts = by_host.view(),
                      .out_parts = by_host.view()});
    // Unpacks the data for each rank of this host.
    const std::byte* arrived = rows.get();
    for (int h = 0; h < map_->hosts(); ++h) {
      for (const int from : map_->members(h)) {
        for (std::size_t to = 0; to < neighbours; ++to) {
          place({packed.get() + to * row + static_cast<std::size_t>(from) * share, share},
                {arrived, share});
          arrived += share;
        }
      }
    }
  }
  co_await on(within_,
              call,
              {.signature = {.kind = Kind::kScatter, .dtype = s.dtype, .count = s.count * ranks},
               .in = leads ? packed.get() : nullptr,
               .out = call.out});
}

}  // namespace hocket::algorithm
