#include "arrays/matmul/agreement.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "calls/world/array_calls.h"
#include "foundation/base/hash.h"
#include "hocket/error.h"

namespace hocket::matmul {
namespace {

// A rank's description of one matrix, as it is exchanged.
struct MatrixWord {
  std::uint64_t spread = 0;  // a hash
  std::int64_t op = 0, order = 0;
};

// A rank's description of a product.
struct ProductWord {
  std::uint64_t mark = 0;
  std::int64_t m = 0, n = 0, k = 0, dtype = 0, dtype_b = 0, result = 0, form = 0, on_gpu = 0;
  std::array<MatrixWord, 3> matrices{};
};

std::uint64_t hash_of(const MatrixSpread& spread, const Extents& whole) {
  std::uint64_t hash = base::mix(base::kHashSeed, spread.index());
  if (const auto* slab = std::get_if<Slab>(&spread)) return base::mix(hash, slab->axis);
  if (std::holds_alternative<Replicated>(spread)) return hash;
  const auto* one = std::get_if<BlockNonCyclic>(&spread);
  const BlockCyclic blocks = one != nullptr ? one->bound(whole) : std::get<BlockCyclic>(spread);
  const Extents& shape = blocks.grid().shape();
  for (const std::size_t extent : shape) hash = base::mix(hash, extent);
  for (const std::size_t extent : blocks.block()) hash = base::mix(hash, extent);
  for (std::size_t i = 0; i < shape[0]; ++i) {
    for (std::size_t j = 0; j < shape[1]; ++j) {
      hash = base::mix(hash, static_cast<std::uint64_t>(blocks.grid().rank_at({i, j})));
    }
  }
  return base::mix(hash, static_cast<std::uint64_t>(blocks.owner({0, 0})));
}

std::int64_t number(std::size_t value) { return static_cast<std::int64_t>(value); }

MatrixWord word_of(const MatmulOperand& operand, const Extents& whole) {
  const bool by_columns = operand.order == MemoryOrder::kFortran;
  return {.spread = hash_of(operand.spread, whole),
          .op = static_cast<std::int64_t>(operand.op),
          .order = by_columns ? 1 : 0};
}

// Throws if a rank's description differs from rank 0's.
void compare(const std::vector<ProductWord>& all) {
  const ProductWord& first = all[0];
  for (std::size_t r = 1; r < all.size(); ++r) {
    const ProductWord& other = all[r];
    if (other.m != first.m || other.n != first.n || other.k != first.k) {
      throw InvalidArgument(
          fmt::format("rank {} gives m, n and k as {}, {} and {}, and rank 0 as {}, {} and {}",
                      r,
                      other.m,
                      other.n,
                      other.k,
                      first.m,
                      first.n,
                      first.k));
    }
    const auto require = [&](bool same, const std::string& what) {
      if (!same)
        throw InvalidArgument(fmt::format("rank {} gives another {} than rank 0", r, what));
    };
    require(other.dtype == first.dtype, "dtype");
    require(other.dtype_b == first.dtype_b, "dtype of B");
    require(other.result == first.result, "dtype of D");
    require(other.form == first.form, "form");
    require(other.on_gpu == first.on_gpu, "memory (a GPU's or the host's)");
    for (std::size_t i = 0; i < 3; ++i) {
      const char name = "ABD"[i];
      require(other.matrices[i].op == first.matrices[i].op, fmt::format("op of {}", name));
      require(other.matrices[i].order == first.matrices[i].order,
              fmt::format("memory order of {}", name));
      require(other.matrices[i].spread == first.matrices[i].spread,
              fmt::format("distribution of {}", name));
    }
  }
}

}  // namespace

std::uint64_t agree(Communicator& comm,
                    const MatmulSize& size,
                    const MatmulOperand& a,
                    const MatmulOperand& b,
                    const MatmulOperand& d,
                    const MatmulOptions& options,
                    std::uint64_t mark,
                    std::optional<Problem>& problem) {
  const auto call = world::whole_call(comm, engine::Kind::kMatmul);
  try {
    problem.emplace(make_problem(size, a, b, d, options, comm.size()));
  } catch (const InvalidArgument& error) {
    comm.refuse(error.what());
  }
  const auto whole = [](MatrixOp op, std::size_t rows, std::size_t columns) {
    return op == MatrixOp::kNone ? Extents{rows, columns} : Extents{columns, rows};
  };
  const ProductWord mine{
      .mark = mark,
      .m = number(size.m),
      .n = number(size.n),
      .k = number(size.k),
      .dtype = static_cast<std::int64_t>(options.dtype),
      .dtype_b = static_cast<std::int64_t>(options.dtype_b.value_or(options.dtype)),
      .result = static_cast<std::int64_t>(problem->result_dtype),
      .form = static_cast<std::int64_t>(options.form),
      .on_gpu = options.gpu ? 1 : 0,
      .matrices = {word_of(a, whole(a.op, size.m, size.k)),
                   word_of(b, whole(b.op, size.k, size.n)),
                   word_of(d, {size.m, size.n})}};
  std::vector<ProductWord> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&mine, 1)),
                  std::as_writable_bytes(std::span(all)),
                  {.deadline = options.deadline});
  compare(all);
  return all[0].mark;
}

}  // namespace hocket::matmul
