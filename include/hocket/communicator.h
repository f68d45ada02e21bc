// The communicator: a set of ranks, numbered from 0, and everything they can do together.
//
// All ranks of a communicator make the same calls in the same order; what they disagree in (kind,
// dtype, op, count, root, order) is found and raised as `Mismatch` on all of them. Every call has a
// deadline. Counts are elements. A call works in place when in and out are the same array; arrays
// that overlap otherwise are refused.
//
// Each collective has three verbs: `name` blocks, `name_async` returns a `Work`, `prepare_name`
// checks and chooses once and returns a `Prepared` to be called again and again.
//
// Sizes, for n ranks (share: a rank's part; "own" its place in the one array of the in-place form):
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

// `deadline` is how long the call may take; absent: the communicator's default.
//
// `stream` is for arrays in a GPU's memory: the call is put on it, behind what is there, and
// returns at once; absent: the legacy default stream. A barrier with a stream is one of the
// streams, not of the ranks' threads. The deadline of such a call runs from its start on the GPU.
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
// Messages between two ranks pair by peer, tag and order. Tags are at least 0; recv, recv_async and
// probe take kAnyTag, too. `allow_shorter`, of recv and recv_async alone and for arrays on the
// host: what comes may have fewer elements than `out`, and fills its beginning; Received::count
// says how many.
struct MessageOptions {
  int tag = 0;
  std::optional<Duration> deadline = {};
  std::optional<StreamRef> stream = {};
  bool allow_shorter = false;
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
// `source` of a receive from whoever sends first.
inline constexpr int kAnySource = -1;
// `tag` of a receive of whatever comes first, onto the host.
inline constexpr int kAnyTag = -1;
// Nobody, as beyond the end of a row of ranks. A message to or from it is through at once, and
// nothing moves: its Received has this source and count 0.
inline constexpr int kNullRank = -2;

struct SplitOptions {
  int color = 0;  // ranks of equal color form a communicator; negative: none
  int key = 0;    // order within it; ties by the old rank
};

// How the ranks that are left go on; see Communicator::rebuild.
struct RebuildOptions {
  // How long to wait for ranks that live but do not call rebuild; absent: the communicator's
  // default deadline.
  std::optional<Duration> deadline = {};
  // What to do about them then: throw DeadlineExceeded, which names them, or go on without them.
  bool exclude_missing = false;
  // Across hosts: go on though ranks that cannot be heard may be as many, and do the same.
  bool allow_minority = false;
};

// Elements a rank, and where each rank's part begins; without displacements the parts lie one after
// the other, and are the whole array. In `out` they lie apart. Both are as long as there are ranks.
struct Parts {
  std::span<const std::size_t> counts = {};
  std::span<const std::size_t> displacements = {};
};

// A checked call, to be made again and again on the same arrays: `op()`. A resource; belongs to one
// communicator, which it keeps alive. Every rank must prepare and make the same calls.
class [[nodiscard("it is gone, and has called nothing: keep it and call it")]] Prepared {
 public:
  explicit Prepared(std::shared_ptr<world::PreparedCall> call) noexcept;
  Prepared(Prepared&&) noexcept;
  Prepared& operator=(Prepared&&) noexcept;
  ~Prepared();

  void operator()();  // blocks
  Work start();       // as the _async verbs

 private:
  Held<"Prepared", std::shared_ptr<world::PreparedCall>> call_;
};

// A resource: this process's seat in a set of ranks. Movable, not copyable. Threads may use
// different communicators at once, and one communicator in turns; two threads in one communicator
// at once is detected and refused. After PeerDied, DeadlineExceeded, Mismatch, Aborted or
// DeviceError every later call raises the same; after InvalidArgument it can be used further.
class [[nodiscard("dropped, it is destroyed at once: the others call it in vain")]] Communicator {
 public:
  explicit Communicator(std::shared_ptr<world::CommunicatorImpl> impl) noexcept;
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  int rank() const;  // -1 where this process is not a member
  int size() const;
  bool is_member() const { return rank() >= 0; }
  const std::string& name() const;
  // The rank in the world of each member, in order.
  std::span<const int> world_ranks() const;
  // The number, from 0, of the host of each member, in order.
  std::span<const int> hosts() const;

  // --- Reductions ---------------------------------------------------------------------------
  void all_reduce(ArrayView inout, const ReduceOptions& = {});
  void all_reduce(ConstArrayView in, ArrayView out, const ReduceOptions& = {});
  Work all_reduce_async(ArrayView inout, const ReduceOptions& = {});
  Work all_reduce_async(BorrowedView in, ArrayView out, const ReduceOptions& = {});
  Prepared prepare_all_reduce(ArrayView inout, const ReduceOptions& = {});
  Prepared prepare_all_reduce(BorrowedView in, ArrayView out, const ReduceOptions& = {});

  void reduce(ArrayView inout, const ReduceRootOptions& = {});
  void reduce(ConstArrayView in, ArrayView out, const ReduceRootOptions& = {});
  Work reduce_async(ArrayView inout, const ReduceRootOptions& = {});
  Work reduce_async(BorrowedView in, ArrayView out, const ReduceRootOptions& = {});
  Prepared prepare_reduce(ArrayView inout, const ReduceRootOptions& = {});
  Prepared prepare_reduce(BorrowedView in, ArrayView out, const ReduceRootOptions& = {});

  // Prefix reductions. Rank r gets ((x0 op x1) op x2) ... op xr, of exscan without xr: rank 0 has
  // nobody before it, so that its `out` is not looked at, and an array that is in place stays as it
  // is. kAvg divides by how many ranks are combined: r + 1, of exscan r.
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

  void reduce_scatter(ArrayView inout, const ReduceOptions& = {});
  void reduce_scatter(ConstArrayView in, ArrayView out, const ReduceOptions& = {});
  Work reduce_scatter_async(ArrayView inout, const ReduceOptions& = {});
  Work reduce_scatter_async(BorrowedView in, ArrayView out, const ReduceOptions& = {});
  Prepared prepare_reduce_scatter(ArrayView inout, const ReduceOptions& = {});
  Prepared prepare_reduce_scatter(BorrowedView in, ArrayView out, const ReduceOptions& = {});

  // Rank r receives counts[r] elements of the sum of all `in`s, which are laid out by counts.
  // Without counts every rank's out.count() is asked for first (one small call more).
  void reduce_scatter_v(ConstArrayView in,
                        ArrayView out,
                        std::span<const std::size_t> counts = {},
                        const ReduceOptions& = {});
  Work reduce_scatter_v_async(BorrowedView in,
                              ArrayView out,
                              std::span<const std::size_t> counts = {},
                              const ReduceOptions& = {});

  // The sum whose bits depend on the shards alone. The ranks bring consecutive shards of one
  // globally numbered list: `shards` holds this rank's, one after the other, each out.count()
  // elements (one by default; none is fine). They are added by a fixed binary tree over the shard
  // numbers, in the accumulation type, so that the result is the same to the last bit however many
  // ranks hold them, whatever the engine and the timing. `op` is kSum or kAvg (over the shards).
  void reproducible_sum(ConstArrayView shards, ArrayView out, const ReduceOptions& = {});

  // --- Movement -----------------------------------------------------------------------------
  void broadcast(ArrayView inout, const RootOptions& = {});
  void broadcast(ConstArrayView in, ArrayView out, const RootOptions& = {});
  Work broadcast_async(ArrayView inout, const RootOptions& = {});
  Work broadcast_async(BorrowedView in, ArrayView out, const RootOptions& = {});
  Prepared prepare_broadcast(ArrayView inout, const RootOptions& = {});
  Prepared prepare_broadcast(BorrowedView in, ArrayView out, const RootOptions& = {});

  void all_gather(ArrayView inout, const CallOptions& = {});
  void all_gather(ConstArrayView in, ArrayView out, const CallOptions& = {});
  Work all_gather_async(ArrayView inout, const CallOptions& = {});
  Work all_gather_async(BorrowedView in, ArrayView out, const CallOptions& = {});
  Prepared prepare_all_gather(ArrayView inout, const CallOptions& = {});
  Prepared prepare_all_gather(BorrowedView in, ArrayView out, const CallOptions& = {});

  void gather(ArrayView inout, const RootOptions& = {});
  void gather(ConstArrayView in, ArrayView out, const RootOptions& = {});
  Work gather_async(ArrayView inout, const RootOptions& = {});
  Work gather_async(BorrowedView in, ArrayView out, const RootOptions& = {});
  Prepared prepare_gather(ArrayView inout, const RootOptions& = {});
  Prepared prepare_gather(BorrowedView in, ArrayView out, const RootOptions& = {});

  void scatter(ArrayView inout, const RootOptions& = {});
  void scatter(ConstArrayView in, ArrayView out, const RootOptions& = {});
  Work scatter_async(ArrayView inout, const RootOptions& = {});
  Work scatter_async(BorrowedView in, ArrayView out, const RootOptions& = {});
  Prepared prepare_scatter(ArrayView inout, const RootOptions& = {});
  Prepared prepare_scatter(BorrowedView in, ArrayView out, const RootOptions& = {});

  void all_to_all(ArrayView inout, const CallOptions& = {});
  void all_to_all(ConstArrayView in, ArrayView out, const CallOptions& = {});
  Work all_to_all_async(ArrayView inout, const CallOptions& = {});
  Work all_to_all_async(BorrowedView in, ArrayView out, const CallOptions& = {});
  Prepared prepare_all_to_all(ArrayView inout, const CallOptions& = {});
  Prepared prepare_all_to_all(BorrowedView in, ArrayView out, const CallOptions& = {});

  // --- The same with `{}` -------------------------------------------------------------------
  // `comm.all_reduce(x, {})` is in place, with the default options. Of an array that is const, `{}`
  // is the output, which may be absent.
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

  // The v-forms: a part of its own size for each rank. Counts that are not given are asked for
  // first (one small call more, which all ranks must then leave out alike). `out` must hold the
  // sum. For gather_v `parts` matters at the root, for scatter_v likewise (there it is required).
  void all_gather_v(ConstArrayView in, ArrayView out, Parts parts = {}, const CallOptions& = {});
  void gather_v(ConstArrayView in, ArrayView out, Parts parts = {}, const RootOptions& = {});
  void scatter_v(ConstArrayView in, Parts parts, ArrayView out, const RootOptions& = {});
  void all_to_all_v(ConstArrayView in,
                    Parts in_parts,
                    ArrayView out,
                    Parts out_parts = {},
                    const CallOptions& = {});
  Work all_gather_v_async(
      BorrowedView in, ArrayView out, Parts parts = {}, const CallOptions& = {});
  Work gather_v_async(BorrowedView in, ArrayView out, Parts parts = {}, const RootOptions& = {});
  Work scatter_v_async(BorrowedView in, Parts parts, ArrayView out, const RootOptions& = {});
  Work all_to_all_v_async(BorrowedView in,
                          Parts in_parts,
                          ArrayView out,
                          Parts out_parts = {},
                          const CallOptions& = {});

  // --- Many arrays in one call --------------------------------------------------------------
  // In place. The arrays may differ in dtype and size; all ranks bring the same list.
  void all_reduce_coalesced(std::span<const ArrayView> arrays, const ReduceOptions& = {});
  void broadcast_coalesced(std::span<const ArrayView> arrays, const RootOptions& = {});
  // in[i] is gathered into out[i]; in[i] is reduced and scattered into out[i].
  void all_gather_coalesced(std::span<const ConstArrayView> in,
                            std::span<const ArrayView> out,
                            const CallOptions& = {});
  void reduce_scatter_coalesced(std::span<const ConstArrayView> in,
                                std::span<const ArrayView> out,
                                const ReduceOptions& = {});

  // --- Between two ranks --------------------------------------------------------------------
  // Outside the order of collectives: any number may be under way beside one. Size and dtype must
  // agree on both sides; see allow_shorter.
  void send(ConstArrayView in, int destination, const MessageOptions& = {});
  Received recv(ArrayView out, int source, const MessageOptions& = {});
  Work send_async(BorrowedView in, int destination, const MessageOptions& = {});
  Work recv_async(ArrayView out, int source, const MessageOptions& = {});
  // Waits until a message onto the host is there, and tells of it without taking it: the next recv
  // from that source with that tag does. `source` and the tag may be any. An object's message (see
  // hocket/object.h) shows as its first part, of bytes. A message whose send is given up is gone.
  Received probe(int source, const MessageOptions& = {});
  // The same without waiting; absent: nothing is there yet.
  [[nodiscard("whether a message is there")]] std::optional<Received> probe_now(
      int source, const MessageOptions& = {});
  // Sends to and receives from `peer` at once; in and out may be the same array.
  void send_recv(ConstArrayView in, ArrayView out, int peer, const MessageOptions& = {});
  // Sends to one and receives from another: a ring, a shift.
  void send_recv(
      ConstArrayView in, int destination, ArrayView out, int source, const MessageOptions& = {});

  // Any number of messages at once, to and from any ranks: they progress together, in whatever
  // order the lists have them; those between two ranks pair in their order. Returns when all are
  // through, on GPUs when they are on the stream. An array that is sent may be received into.
  void exchange(std::span<const Outgoing> outgoing,
                std::span<const Incoming> incoming,
                const MessageOptions& = {});

  void barrier(const CallOptions& = {});
  Work barrier_async(const CallOptions& = {});

  // What ends when all that is on the stream now has ended on the GPU; for nothing but waiting.
  // Local. The communicator must have had a call on GPUs.
  Work stream_mark(StreamRef stream);

  // --- Groups -------------------------------------------------------------------------------
  // Each is a collective call of this communicator: every rank makes it, members or not, and gets
  // a communicator, of which it is perhaps no member.
  Communicator new_group(std::span<const int> ranks, const CallOptions& = {});
  Communicator new_group(std::initializer_list<int> ranks, const CallOptions& options = {}) {
    return new_group(std::span(ranks.begin(), ranks.size()), options);
  }
  Communicator split(const SplitOptions&, const CallOptions& = {});
  Communicator duplicate(const CallOptions& = {});
  // The members on this rank's host; the members with the host-local rank of this one, one a host.
  // Made at the first call, which is collective, and kept as long as this communicator is there,
  // closed or not.
  Communicator& intra_node();
  Communicator& inter_node();

  // --- Memory that peers can reach ------------------------------------------------------------
  SymmetricMemory symmetric();

  // --- Failure and life -----------------------------------------------------------------------
  // Fails the pending and later calls of all ranks with Aborted, now, without their cooperation.
  void abort(const std::string& reason = "");
  // Takes part in the next call by refusing it, for `reason`: throws InvalidArgument, and so do the
  // others, at once. For layers above that check arguments of their own (Python's).
  [[noreturn]] void refuse(const std::string& reason);
  // For programs that give ranks of one host one task after another, and know when each has ended
  // its own: all of a job get the same numbers, not 0, those too that have nothing to do in one.
  // Within a task, calls that wait for a rank that has ended it, and has not come to them, end with
  // PeerDied, which names it. `end_task` returns false, and tells the others nothing, while this
  // rank has calls under way: it may be asked again.
  void begin_task(std::uint32_t number);
  [[nodiscard("false: the task has not ended, as calls are under way")]] bool end_task();
  // The communicator of the next epoch: those ranks that are left, in their old order, numbered
  // anew. To be called by all of them, after an error that ended this communicator or at any time;
  // calls of the others that wait for this rank then end with Aborted. All that it returns on have
  // the same members; it needs no store. This communicator has ended with it, and its pending work
  // too; groups made of it stand, where they have lost nobody, and are rebuilt by themselves.
  //
  // A rank that ends meanwhile is left out, or its loss shows in the first call. Throws
  // DeadlineExceeded, which names the ranks that live and did not come (it can be called again);
  // RendezvousError where the others have gone on without this rank, or may have, as they cannot be
  // heard; SystemError where there is no memory left for it; InvalidArgument where a rank has
  // refused it, on all at once: all may call it again.
  Communicator rebuild(const RebuildOptions& = {});
  // Comes to the next rebuild by refusing it, for `reason`: throws InvalidArgument, and so do the
  // others there. See `refuse`; those who are in another call go on waiting in it.
  [[noreturn]] void refuse_rebuild(const std::string& reason);
  // How often it has been rebuilt: 0 for the first, and for groups made of any.
  int epoch() const;
  // The error that ended this communicator; absent while it works.
  [[nodiscard("it throws nothing")]] std::optional<Status> status() const;
  // The default deadline of calls on this rank.
  void set_deadline(Duration deadline);
  Duration deadline() const;
  // What each rank last called, as far as it can be seen from here, and the flight recorder: this
  // rank's last calls, oldest first.
  std::vector<RankCall> last_calls() const;
  std::vector<RankCall> recent_calls() const;
  // Writes both, and the error if there is one, to a file in `directory`, by default where
  // HOCKET_DUMP_DIR says; returns its name. Any thread may, at any time. Throws InvalidArgument
  // where no directory is known, SystemError where it cannot be written.
  std::string dump(const std::string& directory = "") const;
  // Gives back what the communicator holds. Calls afterwards are refused. Local and cheap, but
  // where calls on GPUs are under way: these end first, well or not, until their deadlines. Throws
  // what ended one of them, unless the program has been told: it is closed all the same. Pending
  // work of the host is cancelled. Destroyed instead, it says so on standard error: see
  // finish_calls.
  void close();

  using Impl = Held<"Communicator", std::shared_ptr<world::CommunicatorImpl>>;
  const Impl& impl() const noexcept { return impl_; }

 private:
  Impl impl_;
};

}  // namespace hocket
