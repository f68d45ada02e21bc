#include "interfaces/mpi/collectives/agreement.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "interfaces/mpi/collectives/collective.h"

namespace hocket::mpi {
namespace {

// Returns the text of rank `root`, truncated to the length of an MPI error.
std::string text_from(Comm& comm, int root, std::string_view own) {
  std::array<char, MPI_MAX_ERROR_STRING> room{};
  if (comm.rank == root) own.copy(room.data(), room.size() - 1);
  const ArrayView all(room.data(), room.size(), DType::kUInt8);
  Pending pending = run(
      How::kBlocking,
      comm,
      [&] { comm.net->broadcast(all, {.root = root}); },
      [&] { return comm.net->broadcast_async(all, {.root = root}); },
      {});
  pending.wait();
  return room.data();
}

// FNV-1a: equal on all ranks, whatever their C++ libraries.
std::int64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char one : text) hash = (hash ^ static_cast<unsigned char>(one)) * 0x100000001b3;
  return static_cast<std::int64_t>(hash);
}

std::vector<std::int64_t> of_all(Comm& comm, std::int64_t value) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(comm.size()));
  comm.net->all_gather(ConstArrayView(&value, 1, DType::kInt64),
                       ArrayView(all.data(), all.size(), DType::kInt64));
  return all;
}

}  // namespace

void agree(Comm& comm, const std::function<void()>& act) {
  int code = MPI_SUCCESS;
  try {
    act();
  } catch (...) {
    code = code_of_caught();
  }
  // Combines the error class and the rank in one number. Of all ranks' numbers the largest wins:
  // the largest class, and within it the lowest rank.
  constexpr std::int64_t kRanks = std::int64_t{1} << 32;
  std::int64_t first = 0;
  if (code != MPI_SUCCESS) first = class_of(code) * kRanks + (kRanks - 1 - comm.rank);
  const ArrayView all(&first, 1, DType::kInt64);
  const ReduceOptions largest{.op = ReduceOp::kMax};
  Pending pending = run(
      How::kBlocking,
      comm,
      [&] { comm.net->all_reduce(all, largest); },
      [&] { return comm.net->all_reduce_async(all, largest); },
      {});
  pending.wait();
  if (first == 0) return;
  const int root = static_cast<int>(kRanks - 1 - first % kRanks);
  const std::string why = text_from(comm, root, explanation_of(code));
  if (code != MPI_SUCCESS) throw Failure{code};
  fail(static_cast<int>(first / kRanks),
       "rank " + std::to_string(root) + " refused the call" + (why.empty() ? "" : ": " + why));
}

void require_same(Comm& comm, std::int64_t value, const char* name) {
  const std::vector<std::int64_t> all = of_all(comm, value);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    fail(MPI_ERR_NOT_SAME,
         "rank " + std::to_string(rank) + " gave " + name + " " + std::to_string(all[rank]) +
             ", and rank 0 " + std::to_string(all[0]));
  }
}

void require_same(Comm& comm, const std::string& text, const char* name) {
  const std::vector<std::int64_t> all = of_all(comm, hash_of(text));
  const auto other = std::find_if(all.begin(), all.end(), [&](auto one) { return one != all[0]; });
  if (other != all.end()) fail_with_texts(comm, static_cast<int>(other - all.begin()), text, name);
}

void fail_with_texts(Comm& comm, int rank, const std::string& text, const char* name) {
  const std::string theirs = text_from(comm, rank, text), of_first = text_from(comm, 0, text);
  fail(MPI_ERR_NOT_SAME,
       "rank " + std::to_string(rank) + " gave " + name + " \"" + theirs + "\", and rank 0 \"" +
           of_first + "\"");
}

}  // namespace hocket::mpi
