// Each rank gets the parts of both factors that its part of the result needs, and multiplies them.
#include <algorithm>
#include <array>

#include "arrays/matmul/feed.h"
#include "arrays/matmul/forms.h"

namespace hocket::matmul {
namespace {

constexpr std::size_t kMostPanels = 64;

std::size_t panels_of(const FormParts& parts) {
  const Problem& problem = parts.problem;
  const auto most = [](const Axis& axis) {
    return *std::max_element(axis.held.begin(), axis.held.end());
  };
  const std::size_t bytes = (most(problem.result.axis(0)) + most(problem.result.axis(1))) *
                            problem.k * size_of(problem.dtype());
  return std::clamp<std::size_t>(bytes / parts.local.panel_bytes(), 1, kMostPanels);
}

class GatheredForm final : public ProductForm {
 public:
  explicit GatheredForm(const FormParts& parts)
      : parts_(parts),
        rows_(parts.problem.result.held(parts.comm.rank(), 0)),
        columns_(parts.problem.result.held(parts.comm.rank(), 1)),
        feed_(
            parts.comm, parts.problem, parts.local, workloads(), panels_of(parts), parts.deadline) {
  }

  void reserve() override {
    feed_.reserve();
    if (rows_ == 0 || columns_ == 0) return;
    // Messages overlap with products anyway, so one room suffices for them.
    rooms_.resize(feed_.is_shared() ? parts_.local.rooms() : 1);
    views_.resize(rooms_.size());
    for (auto& [left, right] : rooms_) {
      left = parts_.local.room(feed_.room(Feed::kLeft));
      right = parts_.local.room(feed_.room(Feed::kRight));
    }
    const Problem& problem = parts_.problem;
    // Results of fewer bits get separate sums, unless a single product makes each result.
    const bool at_once = feed_.dtype(Feed::kLeft) == problem.result_dtype && !feed_.is_narrow() &&
                         feed_.panels() == 1 && feed_.steps(0).size() == 1 &&
                         feed_.steps(0)[0].length > 0;
    is_apart_ = problem.sum_dtype() != problem.result_dtype && !at_once;
    if (is_apart_) sums_ = parts_.local.room(rows_ * columns_ * size_of(problem.sum_dtype()));
  }

  bool is_shared() const noexcept override { return feed_.is_shared(); }
  bool is_narrow() const noexcept override { return feed_.is_narrow(); }

  void run(const Operands& operands, const std::function<void()>& meet) override {
    feed_.show(operands.left, operands.right);
    meet();
    feed_.open();
    const Problem& problem = parts_.problem;
    const Columns<std::byte> target{static_cast<std::byte*>(operands.target), rows_};
    const Columns<const std::byte> added{static_cast<const std::byte*>(operands.added), rows_};
    LocalProduct product{.dtype = feed_.dtype(Feed::kLeft),
                         .right_dtype = feed_.dtype(Feed::kRight),
                         .target_dtype = is_apart_ ? problem.sum_dtype() : problem.result_dtype,
                         .m = rows_,
                         .n = columns_,
                         .alpha = is_apart_ ? 1 : operands.alpha,
                         .target = is_apart_ ? Columns<std::byte>{sums_.data(), rows_} : target};
    if (!is_apart_ && added.at != nullptr) {
      product.beta = operands.beta;
      const std::size_t bytes = rows_ * columns_ * size_of(problem.result_dtype);
      if (added.at != target.at && bytes > 0) parts_.local.copy(target.at, added.at, bytes);
    }
    bool has_begun = false;
    for (std::size_t t = 0; t < feed_.panels(); ++t) {
      feed_.wait(t);
      if (rows_ > 0 && columns_ > 0) has_begun = multiply_panel(t, product) || has_begun;
    }
    if (!has_begun) {  // the inner extent is 0
      product.k = 0;
      product.left = {nullptr, rows_};
      parts_.local.multiply(product);
    }
    feed_.close();
    if (!is_apart_) return;
    parts_.local.finish({.sum = {sums_.data(), rows_},
                         .sum_dtype = problem.sum_dtype(),
                         .added = added,
                         .target = target,
                         .dtype = problem.result_dtype,
                         .rows = rows_,
                         .columns = columns_,
                         .alpha = operands.alpha,
                         .beta = operands.beta});
  }

 private:
  // Adds a panel's products to the result; returns whether there were any.
  bool multiply_panel(std::size_t t, LocalProduct& product) {
    const std::vector<InnerStep>& steps = feed_.steps(t);
    const std::size_t rooms = rooms_.size();
    const auto fill = [&](std::size_t s) {
      const std::size_t room = s % rooms;
      parts_.local.begin_fill(room);
      views_[room] = {feed_.fetch(Feed::kLeft, t, s, rooms_[room][Feed::kLeft]),
                      feed_.fetch(Feed::kRight, t, s, rooms_[room][Feed::kRight])};
      parts_.local.end_fill(room);
    };
    bool has_any = false;
    std::size_t filled = 0;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (; filled < std::min(s + rooms, steps.size()); ++filled) {
        if (steps[filled].length > 0) fill(filled);
      }
      if (steps[s].length == 0) continue;
      const auto& [left, right] = views_[s % rooms];
      product.k = steps[s].length;
      product.left = left.columns;
      product.left_stored = left.stored;
      product.right = right.columns;
      product.right_stored = right.stored;
      parts_.local.begin_use(s % rooms);
      parts_.local.multiply(product);
      parts_.local.end_use(s % rooms);
      product.beta = 1;
      has_any = true;
    }
    return has_any;
  }

  Workloads workloads() const {
    const Problem& problem = parts_.problem;
    const std::vector<InnerStep> steps =
        steps_of(problem.left.tiling.axis(1), problem.right.tiling.axis(0), nullptr, 0);
    return [&problem, steps](int rank) {
      const auto place = problem.result.place_of(rank);
      return Workload{.m = problem.result.axis(0),
                      .n = problem.result.axis(1),
                      .m_place = place[0],
                      .n_place = place[1],
                      .steps = steps};
    };
  }

  const FormParts parts_;
  const std::size_t rows_, columns_;  // of this rank's part
  Feed feed_;
  std::vector<std::array<Room, 2>> rooms_;        // filled alternately, for both factors
  std::vector<std::array<FactorView, 2>> views_;  // of factors in the rooms, or in place
  Room sums_;
  bool is_apart_ = false;
};

}  // namespace

std::unique_ptr<ProductForm> gathered_form(const FormParts& parts) {
  return std::make_unique<GatheredForm>(parts);
}

}  // namespace hocket::matmul
