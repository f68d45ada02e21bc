// Collectives of sparse matrices: what describes them first, then their contents as bytes.
#include "hocket/sparse.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "comm/sparse_layout.h"
#include "comm/sparse_math.h"
#include "hocket/error.h"

namespace hocket {

using comm::kSparseWords;

namespace {

using Words = std::vector<std::int64_t>;
using Layouts = std::vector<SparseLayout>;

std::size_t rank_count(const Communicator& comm) { return static_cast<std::size_t>(comm.size()); }

// Runs a check of arguments; what it refuses is refused for all ranks.
template <typename Check>
auto checked(Communicator& comm, Check&& check) {
  try {
    return check();
  } catch (const InvalidArgument& error) {
    comm.refuse(error.what());
  }
}

Words encode(std::span<const SparseLayout> layouts) {
  Words words(layouts.size() * kSparseWords);
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    comm::encode(layouts[i], words.data() + i * kSparseWords);
  }
  return words;
}

Layouts decode(std::span<const std::int64_t> words) {
  Layouts layouts;
  for (std::size_t at = 0; at < words.size(); at += kSparseWords) {
    layouts.push_back(comm::decode(words.data() + at));
  }
  return layouts;
}

Layouts layouts_of(const Communicator& comm, std::span<const SparseView> matrices) {
  if (matrices.size() != rank_count(comm)) {
    throw InvalidArgument(fmt::format(
        "matrices has {} entries, expected {}, one a rank", matrices.size(), comm.size()));
  }
  Layouts layouts;
  for (const SparseView& view : matrices) layouts.push_back(comm::layout_of(view, "matrices"));
  return layouts;
}

// Messages one after the other.
struct Message {
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

Message pack(std::span<const SparseView> matrices, const Layouts& layouts) {
  Message message{.bytes = {}, .lengths = lengths_of(layouts)};
  message.bytes = room_for(message.lengths);
  std::size_t at = 0;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    comm::pack(matrices[i], layouts[i], message.bytes.data() + at);
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

// Every rank's description, on every rank.
Layouts describe(Communicator& comm, const SparseLayout& mine, std::optional<Duration> deadline) {
  Words all(rank_count(comm) * kSparseWords);
  comm.all_gather(encode(std::span(&mine, 1)), all, {.deadline = deadline});
  return decode(all);
}

std::vector<SparseMatrix> gather_described(Communicator& comm,
                                           const SparseView& mine,
                                           const Layouts& layouts,
                                           const RootOptions& options) {
  const auto rank = static_cast<std::size_t>(comm.rank());
  const Message message = pack(std::span(&mine, 1), {layouts[rank]});
  const std::vector<std::size_t> lengths = lengths_of(layouts);
  std::vector<std::byte> all;
  if (comm.rank() == options.root) all = room_for(lengths);
  comm.gather_v(message.bytes, all, {.counts = lengths}, options);
  if (comm.rank() != options.root) return {};
  return unpack(layouts, all);
}

// Throws the same on every rank, which all have the same descriptions.
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
  const bool is_root = comm.rank() == options.root;
  Words words(kSparseWords);
  if (is_root) {
    comm::encode(checked(comm, [&] { return comm::layout_of(mine, "mine"); }), words.data());
  }
  comm.broadcast(words, options);
  const Layouts layout = decode(words);
  std::vector<std::byte> bytes(layout[0].start(3));
  if (is_root) comm::pack(mine, layout[0], bytes.data());
  comm.broadcast(bytes, options);
  return {layout[0], std::move(bytes)};
}

std::vector<SparseMatrix> all_gather_sparse(Communicator& comm,
                                            const SparseView& mine,
                                            const CallOptions& options) {
  const auto layout = checked(comm, [&] { return comm::layout_of(mine, "mine"); });
  const Layouts layouts = describe(comm, layout, options.deadline);
  const Message message = pack(std::span(&mine, 1), {layout});
  const std::vector<std::size_t> lengths = lengths_of(layouts);
  std::vector<std::byte> all = room_for(lengths);
  comm.all_gather_v(message.bytes, all, {.counts = lengths}, options);
  return unpack(layouts, all);
}

std::vector<SparseMatrix> gather_sparse(Communicator& comm,
                                        const SparseView& mine,
                                        const RootOptions& options) {
  const auto layout = checked(comm, [&] { return comm::layout_of(mine, "mine"); });
  return gather_described(comm, mine, describe(comm, layout, options.deadline), options);
}

SparseMatrix scatter_sparse(Communicator& comm,
                            std::span<const SparseView> matrices,
                            const RootOptions& options) {
  const bool is_root = comm.rank() == options.root;
  Layouts layouts;
  if (is_root) layouts = checked(comm, [&] { return layouts_of(comm, matrices); });
  Words words(kSparseWords);
  comm.scatter(encode(layouts), words, options);
  const Layouts mine = decode(words);
  Message message;
  if (is_root) message = pack(matrices, layouts);
  std::vector<std::byte> bytes(mine[0].start(3));
  comm.scatter_v(message.bytes, {.counts = message.lengths}, bytes, options);
  return {mine[0], std::move(bytes)};
}

std::vector<SparseMatrix> all_to_all_sparse(Communicator& comm,
                                            std::span<const SparseView> matrices,
                                            const CallOptions& options) {
  const Layouts layouts = checked(comm, [&] { return layouts_of(comm, matrices); });
  Words words = encode(layouts);
  comm.all_to_all(words, options);
  const Layouts came = decode(words);
  const Message message = pack(matrices, layouts);
  const std::vector<std::size_t> lengths = lengths_of(came);
  std::vector<std::byte> bytes = room_for(lengths);
  comm.all_to_all_v(
      message.bytes, {.counts = message.lengths}, bytes, {.counts = lengths}, options);
  return unpack(came, bytes);
}

void send_sparse(Communicator& comm,
                 const SparseView& matrix,
                 int destination,
                 const MessageOptions& options) {
  const Layouts layout{comm::layout_of(matrix, "matrix")};
  comm.send(encode(layout), destination, options);
  comm.send(pack(std::span(&matrix, 1), layout).bytes, destination, options);
}

SparseMatrix recv_sparse(Communicator& comm, int source, const MessageOptions& options) {
  Words words(kSparseWords);
  const Received from = comm.recv(words, source, options);
  const Layouts layout = decode(words);
  std::vector<std::byte> bytes(layout[0].start(3));
  comm.recv(bytes, from.source, options);
  return {layout[0], std::move(bytes)};
}

SparseMatrix reduce_sparse(Communicator& comm,
                           const SparseView& mine,
                           const SparseReduceOptions& options) {
  const auto layout = checked(comm, [&] {
    const SparseLayout found = comm::layout_of(mine, "mine");
    comm::check_indices(mine);
    return found;
  });
  const Layouts layouts = describe(comm, layout, options.deadline);
  const std::vector<int> order = fold_order(comm.size(), options.root);
  check_fold(layouts, order, options.op);
  std::vector<SparseMatrix> all =
      gather_described(comm, mine, layouts, {.root = options.root, .deadline = options.deadline});
  if (all.empty()) return {};
  std::vector<SparseMatrix> ordered;
  for (const int rank : order) ordered.push_back(std::move(all[static_cast<std::size_t>(rank)]));
  return comm::fold(ordered, options.op);
}

SparseMatrix all_reduce_sparse(Communicator& comm,
                               const SparseView& mine,
                               const SparseReduceOptions& options) {
  const SparseMatrix result =
      reduce_sparse(comm, mine, {.op = options.op, .root = 0, .deadline = options.deadline});
  return broadcast_sparse(comm, result, {.root = 0, .deadline = options.deadline});
}

SparseMatrix reduce_scatter_sparse(Communicator& comm,
                                   std::span<const SparseView> matrices,
                                   const SparseReduceOptions& options) {
  const Layouts layouts = checked(comm, [&] {
    Layouts found = layouts_of(comm, matrices);
    for (const SparseView& view : matrices) comm::check_indices(view);
    return found;
  });
  // All descriptions on all ranks, so that all refuse what one cannot add.
  Words all(rank_count(comm) * rank_count(comm) * kSparseWords);
  comm.all_gather(encode(layouts), all, {.deadline = options.deadline});
  const Layouts table = decode(all);
  const std::vector<int> order = fold_order(comm.size(), 0);
  for (std::size_t place = 0; place < rank_count(comm); ++place) {
    Layouts column;
    for (std::size_t rank = 0; rank < rank_count(comm); ++rank) {
      column.push_back(table[rank * rank_count(comm) + place]);
    }
    check_fold(column, order, options.op);
  }
  return comm::fold(all_to_all_sparse(comm, matrices, {.deadline = options.deadline}), options.op);
}

}  // namespace hocket
