// Several arrays in one call, and sums of other kinds.
#include <string>
#include <vector>

#include "hocket/compression.h"
#include "interfaces/capi/collective.h"

using hocket::ArrayView;
using hocket::capi::call_options;
using hocket::capi::Collective;
using hocket::capi::guarded;

namespace {

template <typename View>
std::vector<View> read_arrays(const Collective& call,
                              const hocket_array* arrays,
                              std::size_t count,
                              const std::string& name) {
  check_list(call.refuse(), arrays, count, sizeof *arrays, name, "count");
  std::vector<View> read;
  read.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    read.push_back(view(call.refuse(), &arrays[i], (name + "[" + std::to_string(i) + "]").c_str()));
  }
  return read;
}

}  // namespace

int hocket_all_reduce_coalesced(hocket_comm* comm,
                                const hocket_array* arrays,
                                size_t count,
                                int32_t op,
                                const hocket_call_options* options) {
  return guarded("hocket_all_reduce_coalesced", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op);
    call.comm().all_reduce_coalesced(read_arrays<ArrayView>(call, arrays, count, "arrays"), o);
  });
}
int hocket_broadcast_coalesced(hocket_comm* comm,
                               const hocket_array* arrays,
                               size_t count,
                               int32_t root,
                               const hocket_call_options* options) {
  return guarded("hocket_broadcast_coalesced", [&] {
    const Collective call(comm, options);
    const auto o = call.root(root);
    call.comm().broadcast_coalesced(read_arrays<ArrayView>(call, arrays, count, "arrays"), o);
  });
}
int hocket_all_gather_coalesced(hocket_comm* comm,
                                const hocket_array* in,
                                const hocket_array* out,
                                size_t count,
                                const hocket_call_options* options) {
  return guarded("hocket_all_gather_coalesced", [&] {
    const Collective call(comm, options);
    const auto from = read_arrays<hocket::ConstArrayView>(call, in, count, "in");
    const auto to = read_arrays<ArrayView>(call, out, count, "out");
    call.comm().all_gather_coalesced(from, to, call.plain());
  });
}
int hocket_reduce_scatter_coalesced(hocket_comm* comm,
                                    const hocket_array* in,
                                    const hocket_array* out,
                                    size_t count,
                                    int32_t op,
                                    const hocket_call_options* options) {
  return guarded("hocket_reduce_scatter_coalesced", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op);
    const auto from = read_arrays<hocket::ConstArrayView>(call, in, count, "in");
    const auto to = read_arrays<ArrayView>(call, out, count, "out");
    call.comm().reduce_scatter_coalesced(from, to, o);
  });
}

int hocket_reproducible_sum(hocket_comm* comm,
                            const hocket_array* shards,
                            const hocket_array* out,
                            int32_t op,
                            const hocket_call_options* options) {
  return guarded("hocket_reproducible_sum", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op);
    call.comm().reproducible_sum(
        required(call.refuse(), shards, "shards"), required(call.refuse(), out, "out"), o);
  });
}
int hocket_compressed_all_reduce(hocket_comm* comm,
                                 const hocket_array* inout,
                                 int32_t op,
                                 const hocket_call_options* options) {
  return guarded("hocket_compressed_all_reduce", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op);
    compressed_all_reduce(call.comm(), required(call.refuse(), inout, "inout"), o);
  });
}
int hocket_hierarchical_all_reduce(hocket_comm* comm,
                                   const hocket_array* inout,
                                   int32_t op,
                                   int32_t compressed,
                                   const hocket_call_options* options) {
  return guarded("hocket_hierarchical_all_reduce", [&] {
    hocket::Communicator& c = hocket::capi::of(comm, "comm").comm;
    hocket::HierarchicalOptions o;
    ArrayView array;
    try {
      const hocket::capi::Refusal refuse;
      const hocket::CallOptions given = call_options(refuse, options);
      o = {.op = hocket::capi::op(refuse, op),
           .between =
               compressed != 0 ? hocket::BetweenNodes::kCompressed : hocket::BetweenNodes::kExact,
           .deadline = given.deadline,
           .stream = given.stream};
      array = required(refuse, inout, "inout");
    } catch (const hocket::InvalidArgument& reason) {
      refuse_hierarchical_all_reduce(c, reason.what());
    }
    hierarchical_all_reduce(c, array, o);
  });
}
