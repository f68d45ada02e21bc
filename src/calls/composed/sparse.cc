// Collectives of sparse matrices. They send the descriptions first, then the contents as bytes.
//
// No rank leaves the first call before all have entered it. So a rank that cannot continue refuses
// the next call, and all ranks stay in step.
#include "hocket/sparse.h"

#include <fmt/format.h>

#include <numeric>
#include <optional>
#include <utility>

#include "calls/call/membership.h"
#include "calls/composed/sparse_layout.h"
#include "calls/composed/sparse_math.h"
#include "calls/world/communicator_impl.h"
#include "foundation/base/enumerator.h"
#include "hocket/error.h"

namespace hocket {

using composed::kSparseWords;
using engine::Kind;
using Whole = call::Core::Whole;

namespace {

using Words = std::vector<std::int64_t>;
using Layouts = std::vector<SparseLayout>;

std::size_t rank_count(const Communicator& comm) { return static_cast<std::size_t>(comm.size()); }

// See CommunicatorImpl::before_call.
template <typename Part>
auto before_sparse_call(Communicator& comm, const Part& part) {
  return comm.impl()->before_call(Kind::kNone, part);
}

Words encode(std::span<const SparseLayout> layouts) {
  Words words(layouts.size() * kSparseWords);
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    composed::encode(layouts[i], words.data() + i * kSparseWords);
  }
  return words;
}

Layouts decode(std::span<const std::int64_t> words) {
  Layouts layouts;
  for (std::size_t at = 0; at < words.size(); at += kSparseWords) {
    layouts.push_back(composed::decode(words.data() + at));
  }
  return layouts;
}

Layouts layouts_of(const Communicator& comm, std::span<const SparseView> matrices) {
  if (matrices.size() != rank_count(comm)) {
    throw InvalidArgument(fmt::format(
        "matrices has {} entries, expected {}, one a rank", matrices.size(), comm.size()));
  }
  Layouts layouts;
  for (const SparseView& view : matrices) layouts.push_back(composed::layout_of(view, "matrices"));
  return layouts;
}

// The contents of several matrices, one after the other.
struct SparseMessage {
  std::vector<std::byte> bytes;
  std::vector<std::size_t> lengths;
};

std::vector<std::size_t> lengths_of(const Layouts& layouts) {
  std::vector<std::size_t> lengths;
  for (const SparseLayout& layout : layouts) lengths.push_back(layout.start(3));
  return lengths;
}

std::vector<std::byte> room_for(const std::vector<std::size_t>& lengths) {
  return std::vector<std::byte>(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}));
}

SparseMessage pack(std::span<const SparseView> matrices, const Layouts& layouts) {
  SparseMessage message{.bytes = {}, .lengths = lengths_of(layouts)};
  message.bytes = room_for(message.lengths);
  std::size_t at = 0;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    composed::pack(matrices[i], layouts[i], message.bytes.data() + at);
    at += message.lengths[i];
  }
  return message;
}

std::vector<SparseMatrix> unpack(const Layouts& layouts, std::span<const std::byte> bytes) {
  std::vector<SparseMatrix> matrices;
  std::size_t at = 0;
  for (const SparseLayout& layout : layouts) {
    const auto part = bytes.subspan(at, layout.start(3));
    matrices.emplace_back(layout, std::vector<std::byte>(part.begin(), part.end()));
    at += layout.start(3);
  }
  return matrices;
}

// A matrix to send, and memory for every rank's description.
struct Own {
  SparseLayout layout;
  SparseMessage message;
  Words words, all;
};

enum class Indices { kAny, kChecked };

Own prepare(const Communicator& comm, const SparseView& mine, Indices indices) {
  const SparseLayout layout = composed::layout_of(mine, "mine");
  if (indices == Indices::kChecked) composed::check_indices(mine);
  return {.layout = layout,
          .message = pack(std::span(&mine, 1), {layout}),
          .words = encode(std::span(&layout, 1)),
          .all = Words(rank_count(comm) * kSparseWords)};
}

// Gathers every rank's description on every rank.
Layouts describe(Communicator& comm, Own& mine, std::optional<Duration> deadline) {
  comm.all_gather(mine.words, mine.all, {.deadline = deadline});
  return before_sparse_call(comm, [&] { return decode(mine.all); });
}

// The memory that a root gathers into. Empty on other ranks.
struct Gathering {
  std::vector<std::size_t> lengths;
  std::vector<std::byte> all;
};

Gathering room_to_gather(const Communicator& comm, const Layouts& layouts, int root) {
  Gathering made{.lengths = lengths_of(layouts), .all = {}};
  if (comm.rank() == root) made.all = room_for(made.lengths);
  return made;
}

void require_op(SparseOp op) {
  base::require_enumerator(op, SparseOp::kMatrixProduct, "op", "SparseOp");
}

// Throws the same error on every rank, because all have the same descriptions.
void check_fold(const Layouts& layouts, std::span<const int> order, SparseOp op) {
  const SparseLayout& first = layouts[static_cast<std::size_t>(order[0])];
  std::size_t columns = first.columns;
  for (const int rank : order.subspan(1)) {
    const SparseLayout& other = layouts[static_cast<std::size_t>(rank)];
    if (other.format != first.format || other.dtypes[0] != first.dtypes[0]) {
      throw InvalidArgument(fmt::format(
          "the matrix of rank {} has another format or element type ({}) than that of rank {} "
          "({}); convert one",
          rank,
          name_of(other.dtypes[0]),
          order[0],
          name_of(first.dtypes[0])));
    }
    const bool fits = op == SparseOp::kSum
                          ? other.rows == first.rows && other.columns == first.columns
                          : other.rows == columns;
    if (!fits) {
      throw InvalidArgument(
          fmt::format("the matrix of rank {} is {} x {}, expected {} rows{} to be {} rank {}'s",
                      rank,
                      other.rows,
                      other.columns,
                      op == SparseOp::kSum ? first.rows : columns,
                      op == SparseOp::kSum ? fmt::format(" and {} columns", first.columns) : "",
                      op == SparseOp::kSum ? "added to" : "multiplied with",
                      order[0]));
    }
    columns = other.columns;
  }
}

std::vector<int> fold_order(int size, int root) {
  std::vector<int> order{root};
  for (int rank = 0; rank < size; ++rank) {
    if (rank != root) order.push_back(rank);
  }
  return order;
}

}  // namespace

SparseMatrix broadcast_sparse(Communicator& comm,
                              const SparseView& mine,
                              const RootOptions& options) {
  const Whole whole(*comm.impl(), Kind::kSparseBroadcast);
  const bool is_root = comm.rank() == options.root;
  Words words, all;
  before_sparse_call(comm, [&] {
    call::require_rank("root", options.root, comm.size());
    words.resize(kSparseWords);
    all.resize(rank_count(comm) * kSparseWords);
    if (is_root) composed::encode(composed::layout_of(mine, "mine"), words.data());
  });
  comm.all_gather(words, all, {.deadline = options.deadline});
  SparseLayout layout;
  std::vector<std::byte> bytes;
  before_sparse_call(comm, [&] {
    layout = composed::decode(all.data() + static_cast<std::size_t>(options.root) * kSparseWords);
    bytes.resize(layout.start(3));
    if (is_root) composed::pack(mine, layout, bytes.data());
  });
  comm.broadcast(bytes, options);
  return {layout, std::move(bytes)};
}

std::vector<SparseMatrix> all_gather_sparse(Communicator& comm,
                                            const SparseView& mine,
                                            const CallOptions& options) {
  const Whole whole(*comm.impl(), Kind::kSparseAllGather);
  Own own = before_sparse_call(comm, [&] { return prepare(comm, mine, Indices::kAny); });
  const Layouts layouts = describe(comm, own, options.deadline);
  Gathering gathering = before_sparse_call(comm, [&] {
    const auto lengths = lengths_of(layouts);
    return Gathering{.lengths = lengths, .all = room_for(lengths)};
  });
  comm.all_gather_v(own.message.bytes, gathering.all, {.counts = gathering.lengths}, options);
  return unpack(layouts, gathering.all);
}

std::vector<SparseMatrix> gather_sparse(Communicator& comm,
                                        const SparseView& mine,
                                        const RootOptions& options) {
  const Whole whole(*comm.impl(), Kind::kSparseGather);
  Own own = before_sparse_call(comm, [&] {
    call::require_rank("root", options.root, comm.size());
    return prepare(comm, mine, Indices::kAny);
  });
  const Layouts layouts = describe(comm, own, options.deadline);
  Gathering gathering =
      before_sparse_call(comm, [&] { return room_to_gather(comm, layouts, options.root); });
  comm.gather_v(own.message.bytes, gathering.all, {.counts = gathering.lengths}, options);
  if (comm.rank() != options.root) return {};
  return unpack(layouts, gathering.all);
}

SparseMatrix scatter_sparse(Communicator& comm,
                            std::span<const SparseView> matrices,
                            const RootOptions& options) {
  const Whole whole(*comm.impl(), Kind::kSparseScatter);
  const bool is_root = comm.rank() == options.root;
  SparseMessage message;
  Words words, came;
  before_sparse_call(comm, [&] {
    call::require_rank("root", options.root, comm.size());
    came.resize(rank_count(comm) * kSparseWords);
    if (is_root) {
      const Layouts layouts = layouts_of(comm, matrices);
      message = pack(matrices, layouts);
      words = encode(layouts);
    } else {
      words = came;
    }
  });
  comm.all_to_all(words, came, {.deadline = options.deadline});
  SparseLayout mine;
  std::vector<std::byte> bytes;
  before_sparse_call(comm, [&] {
    mine = composed::decode(came.data() + static_cast<std::size_t>(options.root) * kSparseWords);
    bytes.resize(mine.start(3));
  });
  comm.scatter_v(message.bytes, {.counts = message.lengths}, bytes, options);
  return {mine, std::move(bytes)};
}

std::vector<SparseMatrix> all_to_all_sparse(Communicator& comm,
                                            std::span<const SparseView> matrices,
                                            const CallOptions& options) {
  const Whole whole(*comm.impl(), Kind::kSparseAllToAll);
  SparseMessage message;
  Words words;
  before_sparse_call(comm, [&] {
    const Layouts layouts = layouts_of(comm, matrices);
    message = pack(matrices, layouts);
    words = encode(layouts);
  });
  comm.all_to_all(words, options);
  Layouts came;
  Gathering gathering;
  before_sparse_call(comm, [&] {
    came = decode(words);
    gathering.lengths = lengths_of(came);
    gathering.all = room_for(gathering.lengths);
  });
  comm.all_to_all_v(message.bytes,
                    {.counts = message.lengths},
                    gathering.all,
                    {.counts = gathering.lengths},
                    options);
  return unpack(came, gathering.all);
}

void send_sparse(Communicator& comm,
                 const SparseView& matrix,
                 int destination,
                 const MessageOptions& options) {
  const Layouts layout{composed::layout_of(matrix, "matrix")};
  composed::check_indices(matrix);
  comm.send(encode(layout), destination, options);
  comm.send(pack(std::span(&matrix, 1), layout).bytes, destination, options);
}

SparseMatrix recv_sparse(Communicator& comm, int source, const MessageOptions& options) {
  if (source == kNullRank) throw InvalidArgument("recv_sparse: rank -2, nobody, sends no matrix");
  Words words(kSparseWords);
  const Received from = comm.recv(words, source, options);
  const Layouts layout = decode(words);
  std::vector<std::byte> bytes(layout[0].start(3));
  // A matrix is two messages. With kAnySource or kAnyTag, both must be of one sender and tag.
  MessageOptions rest = options;
  rest.tag = from.tag;
  comm.recv(bytes, from.source, rest);
  return {layout[0], std::move(bytes)};
}

namespace {

// The matrices that a root reduces, after they have arrived.
struct ToReduce {
  Layouts layouts;
  std::vector<int> order;
  Gathering gathering;

  SparseMatrix fold(SparseOp op) const {
    std::vector<SparseMatrix> all = unpack(layouts, gathering.all);
    std::vector<SparseMatrix> ordered;
    for (const int rank : order) ordered.push_back(std::move(all[static_cast<std::size_t>(rank)]));
    return composed::fold(ordered, op);
  }
};

// Says whether another call follows that all ranks must enter.
enum class More { kNo, kYes };
ToReduce gather_to_reduce(Communicator& comm,
                          const SparseView& mine,
                          const SparseReduceOptions& options,
                          More more) {
  Own own = before_sparse_call(comm, [&] {
    call::require_rank("root", options.root, comm.size());
    require_op(options.op);
    return prepare(comm, mine, Indices::kChecked);
  });
  ToReduce made{.layouts = describe(comm, own, options.deadline), .order = {}, .gathering = {}};
  before_sparse_call(comm, [&] {
    made.order = fold_order(comm.size(), options.root);
    check_fold(made.layouts, made.order, options.op);
    made.gathering = room_to_gather(comm, made.layouts, options.root);
  });
  std::optional<call::Core::Commitment> bound;
  if (more == More::kYes) {
    // A rank that sends its part to the root would leave that call at once. So all ranks
    // synchronize first.
    comm.barrier({.deadline = options.deadline});
    bound.emplace(*comm.impl());
  }
  comm.gather_v(own.message.bytes,
                made.gathering.all,
                {.counts = made.gathering.lengths},
                {.root = options.root, .deadline = options.deadline});
  return made;
}

}  // namespace

SparseMatrix reduce_sparse(Communicator& comm,
                           const SparseView& mine,
                           const SparseReduceOptions& options) {
  const Whole whole(*comm.impl(), Kind::kSparseReduce);
  const ToReduce all = gather_to_reduce(comm, mine, options, More::kNo);
  return comm.rank() == options.root ? all.fold(options.op) : SparseMatrix();
}

SparseMatrix all_reduce_sparse(Communicator& comm,
                               const SparseView& mine,
                               const SparseReduceOptions& options) {
  const Whole whole(*comm.impl(), Kind::kSparseAllReduce);
  const SparseReduceOptions to_first{.op = options.op, .root = 0, .deadline = options.deadline};
  const ToReduce all = gather_to_reduce(comm, mine, to_first, More::kYes);
  SparseMatrix result;
  if (comm.rank() == 0) result = before_sparse_call(comm, [&] { return all.fold(options.op); });
  return broadcast_sparse(comm, result, {.root = 0, .deadline = options.deadline});
}

SparseMatrix reduce_scatter_sparse(Communicator& comm,
                                   std::span<const SparseView> matrices,
                                   const SparseReduceOptions& options) {
  const Whole whole(*comm.impl(), Kind::kSparseReduceScatter);
  Words words, all;
  before_sparse_call(comm, [&] {
    require_op(options.op);
    words = encode(layouts_of(comm, matrices));
    for (const SparseView& view : matrices) composed::check_indices(view);
    all.resize(rank_count(comm) * rank_count(comm) * kSparseWords);
  });
  // All ranks get all descriptions, so that all refuse matrices that cannot be added.
  comm.all_gather(words, all, {.deadline = options.deadline});
  before_sparse_call(comm, [&] {
    const Layouts table = decode(all);
    const std::vector<int> order = fold_order(comm.size(), 0);
    for (std::size_t place = 0; place < rank_count(comm); ++place) {
      Layouts column;
      for (std::size_t rank = 0; rank < rank_count(comm); ++rank) {
        column.push_back(table[rank * rank_count(comm) + place]);
      }
      check_fold(column, order, options.op);
    }
  });
  return composed::fold(all_to_all_sparse(comm, matrices, {.deadline = options.deadline}),
                        options.op);
}

}  // namespace hocket
