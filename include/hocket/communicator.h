// The communicator: a set of ranks, numbered from 0, and everything they can do together.
//
// All ranks of a communicator make the same calls in the same order. If they differ in kind, dtype,
// op, count, root or order, all ranks throw `Mismatch`. Every call has a deadline. Counts are
// numbers of elements. A call works in place when in and out are the same array. Arrays that
// overlap in another way are refused.
//
// Each collective has three verbs. `name` blocks. `name_async` starts the call and returns a
// `Work`. `prepare_name` checks the call and chooses its engine once, and returns a `Prepared` for
// repeated calls.
//
// Every call throws InvalidArgument for an argument that it refuses, which leaves the communicator
// usable. It throws PeerDied, DeadlineExceeded, Mismatch, Aborted or DeviceError if it fails, which
// ends the communicator. An asynchronous call throws its failure from Work::wait.
//
// Sizes for n ranks. "share" is the number of elements of one rank. "own" is the place of this
// rank's share in an array that is used in place.
//
//   call             in           out             in place
//
//   all_reduce       count        count           count
//
//   reduce           count        count at root   count; root's holds the result
//
//   scan             count        count           count
//
//   exscan           count        count but at 0  count; rank 0's stays
//
//   broadcast        -            -               count
//
//   all_gather       share        n * share       n * share; own at rank * share
//
//   gather           share        n * share       root: as all_gather; else share
//
//   scatter          n * share    share           root: n * share, own stays; else share
//
//   reduce_scatter   n * share    share           n * share; result in [0, share). Or out is in's
//                                                 own part, as in NCCL
//
//   all_to_all       n * share    n * share       n * share
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/array_view.h"
#include "hocket/error.h"
#include "hocket/held.h"
#include "hocket/stream.h"
#include "hocket/types.h"
#include "hocket/work.h"

namespace hocket {

namespace world {
class CommunicatorImpl;
class PreparedCall;
}  // namespace world
class SymmetricMemory;

// `deadline` limits the time of the call. Absent: the communicator's default.
//
// `stream` is for arrays in a GPU's memory. The call is enqueued on it and returns at once. Absent:
// the legacy default stream. A barrier with a stream orders the streams, not the threads of the
// ranks. The deadline of a call on a GPU runs from its start on the GPU.
struct CallOptions {
  std::optional<Duration> deadline = {};
  std::optional<StreamRef> stream = {};
};
struct ReduceOptions {
  ReduceOp op = ReduceOp::kSum;
  std::optional<Duration> deadline = {};
  std::optional<StreamRef> stream = {};
};
struct RootOptions {
  int root = 0;
  std::optional<Duration> deadline = {};
  std::optional<StreamRef> stream = {};
};
struct ReduceRootOptions {
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  std::optional<Duration> deadline = {};
  std::optional<StreamRef> stream = {};
};
// Messages between two ranks are matched by peer, tag and order. A tag is at least 0; recv,
// recv_async and probe also take kAnyTag.
//
// `allow_shorter` and `allow_longer` apply to recv, recv_async and send_recv of arrays on the host.
// With `allow_shorter` the message may have fewer elements than `out` and fills its beginning. With
// `allow_longer` it may have more: the first ones are stored and the others are dropped.
// Received::count is the number of elements that were sent.
//
// `synchronous` applies to send and send_async of arrays on the host: they end only when the
// receive has begun.
struct MessageOptions {
  int tag = 0;
  std::optional<Duration> deadline = {};
  std::optional<StreamRef> stream = {};
  bool allow_shorter = false;
  bool allow_longer = false;
  bool synchronous = false;
};
// One message of Communicator::exchange.
struct Outgoing {
  BorrowedView in;
  int destination = 0;
};
struct Incoming {
  ArrayView out;
  int source = 0;
};
// A `source` that matches a message from any rank.
inline constexpr int kAnySource = -1;
// A `tag` that matches a message with any tag, for arrays on the host.
inline constexpr int kAnyTag = -1;
// A peer that does not exist, such as the neighbour beyond the end of a row of ranks. A message to
// or from it completes at once and moves nothing. Its Received has this source and count 0.
inline constexpr int kNullRank = -2;

struct SplitOptions {
  int color = 0;  // ranks of equal color form a communicator; negative: none
  int key = 0;    // order within it; equal keys are ordered by the old rank
};

// Options for continuing with the ranks that are left; see Communicator::rebuild.
struct RebuildOptions {
  // Limit for ranks that are alive but do not call rebuild. Absent: the communicator's default.
  std::optional<Duration> deadline = {};
  // True: go on without such ranks. False: throw DeadlineExceeded, which names them.
  bool exclude_missing = false;
  // Across hosts: go on even if this side is not the majority. The other side may then go on, too,
  // without these ranks.
  bool allow_minority = false;
};

// The parts of an array that the v-forms use. `counts` has the elements of each rank's part, and
// `displacements` the element at which each part begins. Both have one entry for each rank. Without
// displacements the parts follow each other and fill the array. In `out` parts must not overlap.
struct Parts {
  std::span<const std::size_t> counts = {};
  std::span<const std::size_t> displacements = {};
};

// A checked call that can be repeated on the same arrays: `op()`. A resource that belongs to one
// communicator and keeps it alive. Threads may use it as they may use that communicator. All ranks
// must prepare and make the same calls.
class [[nodiscard("it is gone, and has called nothing: keep it and call it")]] Prepared {
 public:
  explicit Prepared(std::shared_ptr<world::PreparedCall> call) noexcept;
  Prepared(Prepared&&) noexcept;
  Prepared& operator=(Prepared&&) noexcept;
  ~Prepared();

  void operator()();  // blocks; throws as the blocking verb does
  Work start();       // starts the call, as the _async verbs do

 private:
  Held<"Prepared", std::shared_ptr<world::PreparedCall>> call_;
};

// A resource: this process's membership in a set of ranks. It can be moved but not copied.
// Different threads may use different communicators at the same time. They may use one communicator
// in turn; simultaneous use is detected and refused. After PeerDied, DeadlineExceeded, Mismatch,
// Aborted or DeviceError every later call throws the same error. After InvalidArgument the
// communicator stays usable.
class [[nodiscard("dropped, it is destroyed at once: the others call it in vain")]] Communicator {
 public:
  explicit Communicator(std::shared_ptr<world::CommunicatorImpl> impl) noexcept;
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  int rank() const;  // this process's rank; -1 if it is not a member
  int size() const;  // number of ranks
  bool is_member() const { return rank() >= 0; }
  // Returns the name that messages use for the communicator.
  const std::string& name() const;
  // Returns the rank in the world of each member, in order.
  std::span<const int> world_ranks() const;
  // Returns the number of each member's host, in order. Hosts are numbered from 0.
  std::span<const int> hosts() const;

  // --- Reductions ---------------------------------------------------------------------------

  // Combines the arrays of all ranks, element by element, and gives the result to all ranks. `in`
  // and `out` are arrays of equal size, and `inout` is both. A call on arrays in a GPU's memory
  // uses the stream of the options. Their `op` must support the dtype; see is_defined.
  void all_reduce(ArrayView inout, const ReduceOptions& = {});
  void all_reduce(ConstArrayView in, ArrayView out, const ReduceOptions& = {});
  Work all_reduce_async(ArrayView inout, const ReduceOptions& = {});
  Work all_reduce_async(BorrowedView in, ArrayView out, const ReduceOptions& = {});
  Prepared prepare_all_reduce(ArrayView inout, const ReduceOptions& = {});
  Prepared prepare_all_reduce(BorrowedView in, ArrayView out, const ReduceOptions& = {});

  // Combines the arrays of all ranks and gives the result to the root. Other ranks may pass an
  // absent `out`. Parameters are those of all_reduce.
  void reduce(ArrayView inout, const ReduceRootOptions& = {});
  void reduce(ConstArrayView in, ArrayView out, const ReduceRootOptions& = {});
  Work reduce_async(ArrayView inout, const ReduceRootOptions& = {});
  Work reduce_async(BorrowedView in, ArrayView out, const ReduceRootOptions& = {});
  Prepared prepare_reduce(ArrayView inout, const ReduceRootOptions& = {});
  Prepared prepare_reduce(BorrowedView in, ArrayView out, const ReduceRootOptions& = {});

  // Make prefix reductions. Rank r gets ((x0 op x1) op x2) ... op xr.
  //
  // exscan leaves out xr. So its rank 0 has no result: `out` is ignored, and an array in place
  // stays unchanged. kAvg divides by the number of arrays that are combined: r + 1 for scan, r for
  // exscan. Parameters are those of all_reduce.
  void scan(ArrayView inout, const ReduceOptions& = {});
  void scan(ConstArrayView in, ArrayView out, const ReduceOptions& = {});
  Work scan_async(ArrayView inout, const ReduceOptions& = {});
  Work scan_async(BorrowedView in, ArrayView out, const ReduceOptions& = {});
  Prepared prepare_scan(ArrayView inout, const ReduceOptions& = {});
  Prepared prepare_scan(BorrowedView in, ArrayView out, const ReduceOptions& = {});

  void exscan(ArrayView inout, const ReduceOptions& = {});
  void exscan(ConstArrayView in, ArrayView out, const ReduceOptions& = {});
  Work exscan_async(ArrayView inout, const ReduceOptions& = {});
  Work exscan_async(BorrowedView in, ArrayView out, const ReduceOptions& = {});
  Prepared prepare_exscan(ArrayView inout, const ReduceOptions& = {});
  Prepared prepare_exscan(BorrowedView in, ArrayView out, const ReduceOptions& = {});

  // Combines the arrays of all ranks and gives each rank its share of the result. Parameters are
  // those of all_reduce, with the sizes in the table above.
  void reduce_scatter(ArrayView inout, const ReduceOptions& = {});
  void reduce_scatter(ConstArrayView in, ArrayView out, const ReduceOptions& = {});
  Work reduce_scatter_async(ArrayView inout, const ReduceOptions& = {});
  Work reduce_scatter_async(BorrowedView in, ArrayView out, const ReduceOptions& = {});
  Prepared prepare_reduce_scatter(ArrayView inout, const ReduceOptions& = {});
  Prepared prepare_reduce_scatter(BorrowedView in, ArrayView out, const ReduceOptions& = {});

  // Does the same with shares of different sizes: rank r receives counts[r] elements. `counts` also
  // describes the layout of every `in`. Without counts the call first gathers every rank's
  // out.count(), which costs one small call.
  void reduce_scatter_v(ConstArrayView in,
                        ArrayView out,
                        std::span<const std::size_t> counts = {},
                        const ReduceOptions& = {});
  Work reduce_scatter_v_async(BorrowedView in,
                              ArrayView out,
                              std::span<const std::size_t> counts = {},
                              const ReduceOptions& = {});

  // Computes a sum whose bits depend only on the shards. The ranks hold consecutive shards of one
  // globally numbered list. A fixed binary tree over the shard numbers adds them, in the
  // accumulation type. So the result has the same bits for any number of ranks, any engine and any
  // timing.
  // @param shards This rank's shards, one after the other. Each has out.count() elements. A rank
  //   may hold any number of shards, also none.
  // @param out The sum, or the mean over the shards.
  // The `op` of the options is kSum or kAvg.
  void reproducible_sum(ConstArrayView shards, ArrayView out, const ReduceOptions& = {});

  // --- Movement -----------------------------------------------------------------------------

  // Copies the root's array to all ranks. All arrays have equal size. Only the root's `in` is read,
  // and `inout` is both. The `root` of the options is the rank whose array is copied.
  void broadcast(ArrayView inout, const RootOptions& = {});
  void broadcast(ConstArrayView in, ArrayView out, const RootOptions& = {});
  Work broadcast_async(ArrayView inout, const RootOptions& = {});
  Work broadcast_async(BorrowedView in, ArrayView out, const RootOptions& = {});
  Prepared prepare_broadcast(ArrayView inout, const RootOptions& = {});
  Prepared prepare_broadcast(BorrowedView in, ArrayView out, const RootOptions& = {});

  // Gives all ranks the arrays of all ranks, one after the other in rank order. The table above has
  // the sizes, for this call and for the next ones.
  void all_gather(ArrayView inout, const CallOptions& = {});
  void all_gather(ConstArrayView in, ArrayView out, const CallOptions& = {});
  Work all_gather_async(ArrayView inout, const CallOptions& = {});
  Work all_gather_async(BorrowedView in, ArrayView out, const CallOptions& = {});
  Prepared prepare_all_gather(ArrayView inout, const CallOptions& = {});
  Prepared prepare_all_gather(BorrowedView in, ArrayView out, const CallOptions& = {});

  // Gives the root the arrays of all ranks, one after the other in rank order. Other ranks may pass
  // an absent `out`.
  void gather(ArrayView inout, const RootOptions& = {});
  void gather(ConstArrayView in, ArrayView out, const RootOptions& = {});
  Work gather_async(ArrayView inout, const RootOptions& = {});
  Work gather_async(BorrowedView in, ArrayView out, const RootOptions& = {});
  Prepared prepare_gather(ArrayView inout, const RootOptions& = {});
  Prepared prepare_gather(BorrowedView in, ArrayView out, const RootOptions& = {});

  // Gives each rank its share of the root's array. Other ranks may pass an absent `in`.
  void scatter(ArrayView inout, const RootOptions& = {});
  void scatter(ConstArrayView in, ArrayView out, const RootOptions& = {});
  Work scatter_async(ArrayView inout, const RootOptions& = {});
  Work scatter_async(BorrowedView in, ArrayView out, const RootOptions& = {});
  Prepared prepare_scatter(ArrayView inout, const RootOptions& = {});
  Prepared prepare_scatter(BorrowedView in, ArrayView out, const RootOptions& = {});

  // Sends share r of this rank's array to rank r, for all r. Share r of the result is what rank r
  // sent.
  void all_to_all(ArrayView inout, const CallOptions& = {});
  void all_to_all(ConstArrayView in, ArrayView out, const CallOptions& = {});
  Work all_to_all_async(ArrayView inout, const CallOptions& = {});
  Work all_to_all_async(BorrowedView in, ArrayView out, const CallOptions& = {});
  Prepared prepare_all_to_all(ArrayView inout, const CallOptions& = {});
  Prepared prepare_all_to_all(BorrowedView in, ArrayView out, const CallOptions& = {});

  // --- The same with `{}` -------------------------------------------------------------------

  // The overloads below accept `{}`. `comm.all_reduce(x, {})` works in place with the default
  // options. If `x` is read-only, `{}` is an absent output.
  using Defaults = detail::Defaults;
  void all_reduce(detail::WritableArray auto&& x, Defaults) { all_reduce(x); }
  Work all_reduce_async(detail::WritableArray auto&& x, Defaults) { return all_reduce_async(x); }
  Prepared prepare_all_reduce(detail::WritableArray auto&& x, Defaults) {
    return prepare_all_reduce(x);
  }
  void reduce(detail::WritableArray auto&& x, Defaults) { reduce(x); }
  Work reduce_async(detail::WritableArray auto&& x, Defaults) { return reduce_async(x); }
  Prepared prepare_reduce(detail::WritableArray auto&& x, Defaults) { return prepare_reduce(x); }
  void scan(detail::WritableArray auto&& x, Defaults) { scan(x); }
  Work scan_async(detail::WritableArray auto&& x, Defaults) { return scan_async(x); }
  Prepared prepare_scan(detail::WritableArray auto&& x, Defaults) { return prepare_scan(x); }
  void exscan(detail::WritableArray auto&& x, Defaults) { exscan(x); }
  Work exscan_async(detail::WritableArray auto&& x, Defaults) { return exscan_async(x); }
  Prepared prepare_exscan(detail::WritableArray auto&& x, Defaults) { return prepare_exscan(x); }
  void reduce_scatter(detail::WritableArray auto&& x, Defaults) { reduce_scatter(x); }
  Work reduce_scatter_async(detail::WritableArray auto&& x, Defaults) {
    return reduce_scatter_async(x);
  }
  Prepared prepare_reduce_scatter(detail::WritableArray auto&& x, Defaults) {
    return prepare_reduce_scatter(x);
  }
  void broadcast(detail::WritableArray auto&& x, Defaults) { broadcast(x); }
  Work broadcast_async(detail::WritableArray auto&& x, Defaults) { return broadcast_async(x); }
  Prepared prepare_broadcast(detail::WritableArray auto&& x, Defaults) {
    return prepare_broadcast(x);
  }
  void all_gather(detail::WritableArray auto&& x, Defaults) { all_gather(x); }
  Work all_gather_async(detail::WritableArray auto&& x, Defaults) { return all_gather_async(x); }
  Prepared prepare_all_gather(detail::WritableArray auto&& x, Defaults) {
    return prepare_all_gather(x);
  }
  void gather(detail::WritableArray auto&& x, Defaults) { gather(x); }
  Work gather_async(detail::WritableArray auto&& x, Defaults) { return gather_async(x); }
  Prepared prepare_gather(detail::WritableArray auto&& x, Defaults) { return prepare_gather(x); }
  void scatter(detail::WritableArray auto&& x, Defaults) { scatter(x); }
  Work scatter_async(detail::WritableArray auto&& x, Defaults) { return scatter_async(x); }
  Prepared prepare_scatter(detail::WritableArray auto&& x, Defaults) { return prepare_scatter(x); }
  void all_to_all(detail::WritableArray auto&& x, Defaults) { all_to_all(x); }
  Work all_to_all_async(detail::WritableArray auto&& x, Defaults) { return all_to_all_async(x); }
  Prepared prepare_all_to_all(detail::WritableArray auto&& x, Defaults) {
    return prepare_all_to_all(x);
  }
  void reduce(detail::ReadOnlyArray auto&& x, Defaults) { reduce(x, ArrayView()); }
  Work reduce_async(detail::ReadOnlyArray auto&& x, Defaults) {
    return reduce_async(x, ArrayView());
  }
  Prepared prepare_reduce(detail::ReadOnlyArray auto&& x, Defaults) {
    return prepare_reduce(x, ArrayView());
  }
  void exscan(detail::ReadOnlyArray auto&& x, Defaults) { exscan(x, ArrayView()); }
  Work exscan_async(detail::ReadOnlyArray auto&& x, Defaults) {
    return exscan_async(x, ArrayView());
  }
  Prepared prepare_exscan(detail::ReadOnlyArray auto&& x, Defaults) {
    return prepare_exscan(x, ArrayView());
  }
  void gather(detail::ReadOnlyArray auto&& x, Defaults) { gather(x, ArrayView()); }
  Work gather_async(detail::ReadOnlyArray auto&& x, Defaults) {
    return gather_async(x, ArrayView());
  }
  Prepared prepare_gather(detail::ReadOnlyArray auto&& x, Defaults) {
    return prepare_gather(x, ArrayView());
  }

  // The v-forms move parts of different sizes. `out` must hold the sum of the counts. If counts are
  // absent, the ranks first gather them with one small call, so all ranks must leave them out. For
  // gather_v and scatter_v `parts` matters at the root, and scatter_v requires it there.
  void all_gather_v(ConstArrayView in, ArrayView out, Parts parts = {}, const CallOptions& = {});
  void gather_v(ConstArrayView in, ArrayView out, Parts parts = {}, const RootOptions& = {});
  void scatter_v(ConstArrayView in, Parts parts, ArrayView out, const RootOptions& = {});
  void all_to_all_v(ConstArrayView in,
                    Parts in_parts,
                    ArrayView out,
                    Parts out_parts = {},
                    const CallOptions& = {});
  Work all_gather_v_async(BorrowedView in,
                          ArrayView out,
                          Parts parts = {},
                          const CallOptions& = {});
  Work gather_v_async(BorrowedView in, ArrayView out, Parts parts = {}, const RootOptions& = {});
  Work scatter_v_async(BorrowedView in, Parts parts, ArrayView out, const RootOptions& = {});
  Work all_to_all_v_async(BorrowedView in,
                          Parts in_parts,
                          ArrayView out,
                          Parts out_parts = {},
                          const CallOptions& = {});

  // --- Many arrays in one call --------------------------------------------------------------

  // Work in place. The arrays may differ in dtype and size. All ranks pass the same list.
  void all_reduce_coalesced(std::span<const ArrayView> arrays, const ReduceOptions& = {});
  void broadcast_coalesced(std::span<const ArrayView> arrays, const RootOptions& = {});
  // all_gather gathers each in[i] into out[i]. reduce_scatter reduces each in[i] and scatters it
  // into out[i].
  void all_gather_coalesced(std::span<const ConstArrayView> in,
                            std::span<const ArrayView> out,
                            const CallOptions& = {});
  void reduce_scatter_coalesced(std::span<const ConstArrayView> in,
                                std::span<const ArrayView> out,
                                const ReduceOptions& = {});

  // --- Between two ranks --------------------------------------------------------------------

  // Messages are not part of the order of collectives: any number may be in progress beside one.
  // Size and dtype must agree on both sides, except with allow_shorter and allow_longer.
  // `in` is the array to send, and `out` the array to receive into. `destination` and `source` are
  // the peer: kNullRank completes at once, and `source` may be kAnySource. `recv` returns the
  // sender, tag and size of the message.
  void send(ConstArrayView in, int destination, const MessageOptions& = {});
  Received recv(ArrayView out, int source, const MessageOptions& = {});
  Work send_async(BorrowedView in, int destination, const MessageOptions& = {});
  Work recv_async(ArrayView out, int source, const MessageOptions& = {});
  // Waits until a message for the host has arrived, and returns its description. The message stays:
  // the next recv from that source with that tag takes it. `source` and the tag may match any
  // message. The message of an object (see hocket/object.h) appears as its first part, of bytes. A
  // message disappears if its sender gives up the send.
  Received probe(int source, const MessageOptions& = {});
  // Does the same without waiting. Returns nothing if no message has arrived.
  [[nodiscard("whether a message is there")]] std::optional<Received> probe_now(
      int source, const MessageOptions& = {});
  // Sends to `peer` and receives from it at the same time. in and out may be the same array.
  // Returns the description of the message that was received.
  Received send_recv(ConstArrayView in, ArrayView out, int peer, const MessageOptions& = {});
  // Sends to one rank and receives from another, as in a ring or a shift.
  Received send_recv(
      ConstArrayView in, int destination, ArrayView out, int source, const MessageOptions& = {});

  // The same for plain data of other types: char, long double, structs without pointers. It travels
  // as bytes, so both ranks must lay the type out alike. The Received that recv returns counts
  // elements of the received type. Any other Received, such as that of a Work, counts bytes.
  template <detail::PlainRange R>
  void send(const R& in, int destination, const MessageOptions& options = {}) {
    send(detail::as_bytes(in), destination, options);
  }
  template <detail::PlainRange R>
  Work send_async(R&& in, int destination, const MessageOptions& options = {}) {
    return send_async(detail::as_lasting_bytes<R>(in), destination, options);
  }
  template <detail::PlainRange R>
  Received recv(R&& out, int source, const MessageOptions& options = {}) {
    return in_elements<R>(recv(detail::as_writable_bytes<R>(out), source, options));
  }
  template <detail::PlainRange R>
  Work recv_async(R&& out, int source, const MessageOptions& options = {}) {
    return recv_async(detail::as_writable_bytes<R>(out), source, options);
  }
  template <detail::PlainRange In, detail::PlainRange Out>
  Received send_recv(const In& in, Out&& out, int peer, const MessageOptions& options = {}) {
    return send_recv(in, peer, out, peer, options);
  }
  template <detail::PlainRange In, detail::PlainRange Out>
  Received send_recv(
      const In& in, int destination, Out&& out, int source, const MessageOptions& options = {}) {
    return in_elements<Out>(send_recv(
        detail::as_bytes(in), destination, detail::as_writable_bytes<Out>(out), source, options));
  }

  // Sends and receives any number of messages at the same time. They make progress together,
  // whatever their order in the lists. Messages between two ranks are matched in the order of the
  // lists. The call returns when all have completed, or on GPUs when all are enqueued. An array
  // that is sent may also be received into.
  void exchange(std::span<const Outgoing> outgoing,
                std::span<const Incoming> incoming,
                const MessageOptions& = {});

  // Returns when all ranks have made the call.
  void barrier(const CallOptions& = {});
  Work barrier_async(const CallOptions& = {});

  // Returns a Work that ends when the current work of `stream` has ended on the GPU. It is only for
  // waiting. Local. The communicator must have made a call on GPUs.
  Work stream_mark(StreamRef stream);

  // --- Groups -------------------------------------------------------------------------------

  // The calls below make new communicators. Each is a collective call of this communicator. Every
  // rank makes it and gets a communicator, of which it may or may not be a member.
  // @param ranks The members, in order, by their rank in this communicator.
  Communicator new_group(std::span<const int> ranks, const CallOptions& = {});
  Communicator new_group(std::initializer_list<int> ranks, const CallOptions& options = {}) {
    return new_group(std::span(ranks.begin(), ranks.size()), options);
  }
  Communicator split(const SplitOptions&, const CallOptions& = {});
  Communicator duplicate(const CallOptions& = {});
  // intra_node returns the communicator of the members on this rank's host. inter_node returns the
  // communicator of the members, one on each host, that have the same rank in their intra_node()
  // as this rank. The first call makes the communicator and is collective. It exists as long as
  // this one, closed or not.
  Communicator& intra_node();
  Communicator& inter_node();

  // --- Memory that peers can reach ------------------------------------------------------------

  // Returns the allocator of symmetric arrays for this communicator. Local.
  SymmetricMemory symmetric();

  // --- Failure and life -----------------------------------------------------------------------

  // Ends the pending and later calls of all ranks with Aborted. The other ranks need not take part.
  // Any thread may call it.
  void abort(const std::string& reason = "");
  // Refuses the next call for `reason`, instead of making it: this rank and, without delay, the
  // other ranks get InvalidArgument. It is for layers above that check arguments of their own, such
  // as Python's.
  [[noreturn]] void refuse(const std::string& reason);
  // Mark the beginning and end of a task. They are for programs that give the ranks of one host one
  // task after another. All ranks of a job use the same numbers, which are not 0. A rank without
  // work in a task calls both as well. Within a task, a call fails with PeerDied if it waits for a
  // rank that has ended the task without making the call. The error names that rank. If this rank
  // has calls in progress, `end_task` returns false and does not tell the others. It can then be
  // called again.
  void begin_task(std::uint32_t number);
  [[nodiscard("false: the task has not ended, as calls are under way")]] bool end_task();
  // Makes the communicator of the next epoch. Its members are the ranks that are left, in their old
  // order, with new numbers. All of them must call it, after an error that ended this communicator
  // or at any time. Calls of other ranks that wait for this rank then end with Aborted. The call
  // returns the same members on all ranks, and needs no store. It ends this communicator and its
  // pending work. Groups that were made of it stay usable if they have lost no rank, and are
  // rebuilt on their own.
  //
  // A rank that ends meanwhile is left out, or its loss appears in the first call.
  // @throws DeadlineExceeded if ranks are alive but did not call it; the error names them. It can
  //   be called again.
  // @throws RendezvousError if the others have gone on without this rank, or may have because they
  //   are unreachable.
  // @throws SystemError if there is no memory left for it.
  // @throws InvalidArgument on all ranks if one has refused it. All may call it again.
  Communicator rebuild(const RebuildOptions& = {});
  // Refuses the next rebuild for `reason`, instead of making it: this rank and the other ranks that
  // rebuild get InvalidArgument. See `refuse`. Ranks that wait in another call are not affected.
  [[noreturn]] void refuse_rebuild(const std::string& reason);
  // Returns how often the communicator has been rebuilt: 0 for the first one, and for new groups.
  int epoch() const;
  // Returns the error that ended this communicator. Absent while it works.
  [[nodiscard("it throws nothing")]] std::optional<Status> status() const;
  // The default deadline of calls on this rank.
  void set_deadline(Duration deadline);
  Duration deadline() const;
  // `last_calls` returns the last call of each rank, as far as this rank can see. `recent_calls`
  // returns the flight recorder: this rank's last calls, oldest first. Any thread may call them.
  std::vector<RankCall> last_calls() const;
  std::vector<RankCall> recent_calls() const;
  // Writes both lists, and the error if there is one, to a file. Any thread may call it at any
  // time.
  // @param directory The folder of the file. By default the one that HOCKET_DUMP_DIR names.
  // @return The name of the file.
  // @throws InvalidArgument if no folder is known.
  // @throws SystemError if the file cannot be written.
  std::string dump(const std::string& directory = "") const;
  // Releases the resources of the communicator. Later calls are refused. It waits until calls on
  // GPUs have ended or reached their deadlines. It also waits for a moment for a thread inside a
  // call, and for other hosts. Pending work on the host is cancelled, which ends the communicator
  // on all ranks. The communicator is closed even if this throws. The destructor writes the failure
  // to standard error instead: see finish_calls.
  // @throws Mismatch if the ranks' last calls differ.
  // @throws Error The failure of a call on a GPU that the program does not know yet.
  void close();

  using Impl = Held<"Communicator", std::shared_ptr<world::CommunicatorImpl>>;
  const Impl& impl() const noexcept { return impl_; }

 private:
  template <typename R>
  static Received in_elements(Received received) noexcept {
    received.count /= sizeof(std::ranges::range_value_t<R>);
    return received;
  }

  Impl impl_;
};

// Makes several calls count as one. During this object's life, errors, warnings and records name
// this rank's calls of `comm` as `whole`. A resource of one thread.
class WholeCall {
 public:
  // @param whole The name of a call of hocket that consists of others, such as "sparse.gather".
  // @throws InvalidArgument if there is no such call.
  WholeCall(Communicator& comm, std::string_view whole);
  ~WholeCall();
  WholeCall(const WholeCall&) = delete;
  WholeCall& operator=(const WholeCall&) = delete;

 private:
  struct Scope;
  std::unique_ptr<Scope> scope_;
};

}  // namespace hocket
