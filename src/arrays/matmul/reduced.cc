// Each rank multiplies its share of the inner extent for the whole result. The results are summed
// over the ranks: one band of columns at a time, while the next band is multiplied.
#include <algorithm>
#include <array>

#include "arrays/matmul/feed.h"
#include "arrays/matmul/forms.h"

namespace hocket::matmul {
namespace {

constexpr std::size_t kBandBytes = std::size_t{1} << 20;
constexpr std::size_t kMostBands = 8;

class ReducedForm final : public ProductForm {
 public:
  ReducedForm(const FormParts& parts, const Axis& share)
      : parts_(parts),
        result_(parts.problem.result),
        element_(size_of(parts.problem.sum_dtype())),
        bands_(std::clamp<std::size_t>(
            parts.problem.m * parts.problem.n * element_ / kBandBytes, 1, kMostBands)),
        feed_(parts.comm, parts.problem, parts.local, workloads(share), 1, parts.deadline),
        counts_(static_cast<std::size_t>(parts.comm.size())),
        begins_(counts_.size()) {}

  void reserve() override {
    feed_.reserve();
    const std::size_t steps = feed_.steps(0).size();
    rooms_.resize(2 * steps);
    for (std::size_t s = 0; s < steps; ++s) {
      for (const Feed::Side side : {Feed::kLeft, Feed::kRight}) {
        rooms_[2 * s + side] = parts_.local.room(feed_.room(side, 0, s));
      }
    }
    views_.resize(2 * steps);
    std::size_t most = 0, mine = 0;
    for (std::size_t t = 0; t < bands_; ++t) {
      most = std::max(most, lay(t));
      mine = std::max(mine, my_rows() * width(my_place()[1], t));
    }
    for (std::size_t i = 0; i < 2; ++i) {
      sums_[i] = parts_.local.room(most * element_);
      if (!result_.is_replicated()) received_[i] = parts_.local.room(mine * element_);
    }
  }

  bool is_shared() const noexcept override { return feed_.is_shared(); }
  bool is_narrow() const noexcept override { return feed_.is_narrow(); }

  void run(const Operands& operands, const std::function<void()>& meet) override {
    feed_.show(operands.left, operands.right);
    meet();
    feed_.open();
    feed_.wait(0);
    for (std::size_t s = 0; s < feed_.steps(0).size(); ++s) {
      if (feed_.steps(0)[s].length == 0) continue;
      views_[2 * s] = feed_.fetch(Feed::kLeft, 0, s, rooms_[2 * s]);
      views_[2 * s + 1] = feed_.fetch(Feed::kRight, 0, s, rooms_[2 * s + 1]);
    }
    for (std::size_t t = 0; t < bands_; ++t) {
      const std::size_t count = lay(t);
      multiply(t, count);
      start(t, count);
      if (t > 0) end(t - 1, operands);
    }
    end(bands_ - 1, operands);
    feed_.close();
  }

 private:
  Workloads workloads(const Axis& share) const {
    return [this, share](int rank) {
      const Problem& problem = parts_.problem;
      // Sorts rows and columns by the ranks that need them, so that the part of each rank is
      // contiguous.
      return Workload{.m = sorted_axis(result_.axis(0)),
                      .n = sorted_axis(result_.axis(1)),
                      .steps = steps_of(problem.left.tiling.axis(1),
                                        problem.right.tiling.axis(0),
                                        &share,
                                        static_cast<std::size_t>(rank))};
    };
  }

  std::array<std::size_t, 2> my_place() const { return result_.place_of(parts_.comm.rank()); }
  std::size_t my_rows() const { return result_.axis(0).held[my_place()[0]]; }
  // Returns the first of a place's columns that is in band t.
  std::size_t first(std::size_t place, std::size_t t) const {
    return result_.axis(1).held[place] * t / bands_;
  }
  std::size_t width(std::size_t place, std::size_t t) const {
    return first(place, t + 1) - first(place, t);
  }

  // Sets the positions of the ranks' parts of a band, one after the other. Returns the number of
  // elements.
  std::size_t lay(std::size_t t) {
    if (result_.is_replicated()) return parts_.problem.m * width(0, t);
    std::size_t sum = 0;
    for (std::size_t r = 0; r < counts_.size(); ++r) {
      const auto place = result_.place_of(static_cast<int>(r));
      counts_[r] = result_.axis(0).held[place[0]] * width(place[1], t);
      begins_[r] = sum;
      sum += counts_[r];
    }
    return sum;
  }

  void multiply(std::size_t t, std::size_t count) {
    std::byte* const sums = sums_[t % 2].data();
    bool is_first = true;
    for (std::size_t s = 0; s < feed_.steps(0).size(); ++s) {
      if (feed_.steps(0)[s].length == 0) continue;
      std::size_t row = 0;
      for (std::size_t i = 0; i < result_.axis(0).places(); ++i) {
        std::size_t column = 0;
        for (std::size_t j = 0; j < result_.axis(1).places(); ++j) {
          multiply_block(t, s, {i, j}, row, column + first(j, t), sums, is_first);
          column += result_.axis(1).held[j];
        }
        row += result_.axis(0).held[i];
      }
      is_first = false;
    }
    if (is_first) parts_.local.clear(sums, count * element_);
  }

  void multiply_block(std::size_t t,
                      std::size_t s,
                      std::array<std::size_t, 2> place,
                      std::size_t row,
                      std::size_t column,
                      std::byte* sums,
                      bool is_first) {
    const int rank = result_.rank_at(place[0], place[1], 0);
    const std::size_t begin = result_.is_replicated() ? 0 : begins_[static_cast<std::size_t>(rank)];
    const DType dtype = feed_.dtype(Feed::kLeft);
    LocalProduct product{.dtype = dtype,
                         .right_dtype = feed_.dtype(Feed::kRight),
                         .target_dtype = parts_.problem.sum_dtype(),
                         .m = result_.axis(0).held[place[0]],
                         .n = width(place[1], t),
                         .k = feed_.steps(0)[s].length,
                         .beta = is_first ? 0 : 1,
                         .left = views_[2 * s].columns,
                         .right = views_[2 * s + 1].columns,
                         .left_stored = views_[2 * s].stored,
                         .right_stored = views_[2 * s + 1].stored,
                         .target = {sums + begin * element_, result_.axis(0).held[place[0]]}};
    const bool left_plain = product.left_stored == Stored::kPlain;
    const bool right_plain = product.right_stored == Stored::kPlain;
    product.left.at += row * (left_plain ? 1 : product.left.stride) * size_of(dtype);
    product.right.at += column * (right_plain ? product.right.stride : 1) * size_of(dtype);
    parts_.local.multiply(product);
  }

  void start(std::size_t t, std::size_t count) {
    const DType dtype = parts_.problem.sum_dtype();
    const ReduceOptions options{.deadline = parts_.deadline, .stream = parts_.local.aside()};
    const ArrayView sums = parts_.local.view(sums_[t % 2].data(), count, dtype);
    if (result_.is_replicated()) {
      works_[t % 2] = parts_.comm.all_reduce_async(sums, options);
      return;
    }
    const std::size_t mine = counts_[static_cast<std::size_t>(parts_.comm.rank())];
    works_[t % 2] = parts_.comm.reduce_scatter_v_async(
        sums, parts_.local.view(received_[t % 2].data(), mine, dtype), counts_, options);
  }

  void end(std::size_t t, const Operands& operands) {
    parts_.local.join(works_[t % 2]);
    const Problem& problem = parts_.problem;
    const std::size_t rows = my_rows(), column = first(my_place()[1], t);
    const std::size_t offset = column * rows * size_of(problem.result_dtype);
    const auto* added = static_cast<const std::byte*>(operands.added);
    const auto& sums = result_.is_replicated() ? sums_ : received_;
    parts_.local.finish({.sum = {sums[t % 2].data(), rows},
                         .sum_dtype = problem.sum_dtype(),
                         .added = {added == nullptr ? nullptr : added + offset, rows},
                         .target = {static_cast<std::byte*>(operands.target) + offset, rows},
                         .dtype = problem.result_dtype,
                         .rows = rows,
                         .columns = width(my_place()[1], t),
                         .alpha = operands.alpha,
                         .beta = operands.beta});
  }

  const FormParts parts_;
  const Tiling& result_;
  const std::size_t element_, bands_;
  Feed feed_;
  std::vector<std::size_t> counts_, begins_;  // of the current band, by rank, in elements
  std::vector<Room> rooms_;                   // rooms of both factors, by step
  std::vector<FactorView> views_;             // views of both factors, by step
  std::array<Room, 2> sums_, received_;
  std::array<hocket::Work, 2> works_;
};

}  // namespace

std::unique_ptr<ProductForm> reduced_form(const FormParts& parts, const Axis& share) {
  return std::make_unique<ReducedForm>(parts, share);
}

}  // namespace hocket::matmul
