// Each rank multiplies what its part of the result needs, and gets it of the others.
#include <algorithm>
#include <cstring>

#include "matmul/feed.h"
#include "matmul/forms.h"

namespace hocket::matmul {
namespace {

// Bytes of a panel that travels: enough for a network to be quick, and few beside the matrices.
constexpr std::size_t kPanelBytes = std::size_t{4} << 20;
constexpr std::size_t kMostPanels = 64;

std::size_t panels_of(const Communicator& comm, const Problem& problem) {
  if (distribution::on_one_host(comm)) return 1;
  const auto most = [](const Axis& axis) {
    return *std::max_element(axis.held.begin(), axis.held.end());
  };
  const std::size_t bytes = (most(problem.result.axis(0)) + most(problem.result.axis(1))) *
                            problem.k * size_of(problem.dtype);
  return std::clamp<std::size_t>(bytes / kPanelBytes, 1, kMostPanels);
}

class GatheredForm final : public ProductForm {
 public:
  explicit GatheredForm(const FormParts& parts)
      : parts_(parts),
        rows_(parts.problem.result.held(parts.comm.rank(), 0)),
        columns_(parts.problem.result.held(parts.comm.rank(), 1)),
        feed_(parts.comm, parts.problem, workloads(), parts.deadline) {}

  void reserve() override {
    if (rows_ == 0 || columns_ == 0) return;
    left_room_.resize(feed_.room(Feed::kLeft));
    right_room_.resize(feed_.room(Feed::kRight));
    const Problem& problem = parts_.problem;
    if (problem.sum_dtype() != problem.result_dtype) {
      sums_.resize(rows_ * columns_ * size_of(problem.sum_dtype()));
    }
  }

  bool is_shared() const noexcept override { return feed_.is_shared(); }

  void run(const Operands& operands, const std::function<void()>& meet) override {
    feed_.show(operands.left, operands.right);
    meet();
    feed_.open();
    const Problem& problem = parts_.problem;
    const Columns<std::byte> target{static_cast<std::byte*>(operands.target), rows_};
    const Columns<const std::byte> added{static_cast<const std::byte*>(operands.added), rows_};
    const bool is_apart = !sums_.empty();
    LocalProduct product{.dtype = problem.sum_dtype(),
                         .m = rows_,
                         .n = columns_,
                         .alpha = is_apart ? 1 : operands.alpha,
                         .target = is_apart ? Columns<std::byte>{sums_.data(), rows_} : target};
    if (!is_apart && added.at != nullptr) {
      product.beta = operands.beta;
      const std::size_t bytes = rows_ * columns_ * size_of(problem.result_dtype);
      if (added.at != target.at && bytes > 0) std::memcpy(target.at, added.at, bytes);
    }
    bool is_first = true;
    for (std::size_t t = 0; t < feed_.panels(); ++t) {
      feed_.wait(t);
      if (rows_ == 0 || columns_ == 0) continue;
      for (std::size_t s = 0; s < feed_.steps(t).size(); ++s) {
        product.k = feed_.steps(t)[s].length;
        if (product.k == 0) continue;
        const FactorView left = feed_.fetch(Feed::kLeft, t, s, left_room_);
        const FactorView right = feed_.fetch(Feed::kRight, t, s, right_room_);
        product.left = left.columns;
        product.left_stored = left.stored;
        product.right = right.columns;
        product.right_stored = right.stored;
        parts_.blas.multiply(product);
        product.beta = 1;
        is_first = false;
      }
    }
    if (is_first) {  // an inner extent of nothing
      product.k = 0;
      product.left = {nullptr, rows_};
      parts_.blas.multiply(product);
    }
    feed_.close();
    if (is_apart) {
      finish({sums_.data(), rows_},
             problem.sum_dtype(),
             added,
             target,
             problem.result_dtype,
             rows_,
             columns_,
             operands.alpha,
             operands.beta);
    }
  }

 private:
  Workloads workloads() const {
    const Problem& problem = parts_.problem;
    const std::vector<InnerStep> steps =
        steps_of(problem.left.tiling.axis(1), problem.right.tiling.axis(0), nullptr, 0);
    std::vector<std::vector<InnerStep>> panels(panels_of(parts_.comm, problem));
    for (const InnerStep& step : steps) {
      std::vector<InnerStep> parts = parts_of_step(step, panels.size());
      for (std::size_t t = 0; t < panels.size(); ++t) panels[t].push_back(std::move(parts[t]));
    }
    return [&problem, panels = std::move(panels)](int rank) {
      const auto place = problem.result.place_of(rank);
      return Workload{.m = problem.result.axis(0),
                      .n = problem.result.axis(1),
                      .m_place = place[0],
                      .n_place = place[1],
                      .panels = panels};
    };
  }

  const FormParts parts_;
  const std::size_t rows_, columns_;  // of this rank's part
  Feed feed_;
  std::vector<std::byte> left_room_, right_room_, sums_;
};

}  // namespace

std::unique_ptr<ProductForm> gathered_form(const FormParts& parts) {
  return std::make_unique<GatheredForm>(parts);
}

}  // namespace hocket::matmul
