// The common part of plans for arrays in host memory and on GPUs.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrays/fft/agreement.h"
#include "arrays/fft/route.h"
#include "calls/world/array_calls.h"
#include "hocket/communicator.h"
#include "hocket/fft.h"

namespace hocket::fft {

// A resource of one communicator's rank, used by one thread.
class FftPlan {
 public:
  virtual ~FftPlan() = default;
  FftPlan(const FftPlan&) = delete;
  FftPlan& operator=(const FftPlan&) = delete;

  virtual void execute(ConstArrayView in,
                       ArrayView out,
                       std::optional<FftDirection> direction,
                       std::optional<StreamRef> stream) = 0;
  virtual const std::string& library() const noexcept = 0;
  virtual bool is_shared() const noexcept = 0;
  std::size_t transposes() const noexcept { return legs_.size() - 1; }

 protected:
  // Collective: agrees on the plan with the other ranks.
  FftPlan(Communicator& comm,
          const Extents& shape,
          const Box& from,
          const Box& to,
          const FftOptions& options);

  // Runs `part`, this rank's work before the next barrier. If it throws, this rank refuses that
  // barrier.
  template <typename LegPart>
  void before_barrier(LegPart&& part) {
    world::before_call(comm_, engine::Kind::kFft, part);
  }
  // A hash that must be equal on ranks in the same step of the same plan.
  std::uint64_t digest_of(std::uint64_t step) const noexcept;
  // Waits until all ranks have come to this step of the same plan; on GPUs, makes `stream` wait.
  void barrier(std::uint64_t step, std::optional<StreamRef> stream = {});

  // Checks this rank's arrays, and throws if they are wrong. Returns the direction of the
  // transform.
  FftDirection check(ConstArrayView in,
                     ArrayView out,
                     std::optional<FftDirection> direction,
                     MemoryKind memory) const;
  // Returns the direction of a transform from or to real numbers; forward for complex ones.
  FftDirection own_direction() const noexcept;
  // Return the scale factor of a direction, and the leg that applies it: the last leg that
  // transforms.
  double factor(FftDirection direction) const;
  std::size_t scaling_leg() const noexcept;

  // Returns the bytes of an element before leg k. If k is the number of legs, of the result.
  std::size_t element(std::size_t k) const noexcept { return elements_[k]; }
  // Returns the bytes of the largest part that any rank keeps for a later leg.
  std::size_t shelf_bytes() const noexcept;
  std::size_t me() const noexcept { return static_cast<std::size_t>(comm_.rank()); }
  bool is_double() const noexcept { return options_.precision == DType::kFloat64; }

  Communicator comm_;  // another handle of the given communicator
  const FftOptions options_;
  const Agreed agreed_;
  const std::vector<Leg> legs_;
  const DType in_dtype_, out_dtype_;

 private:
  std::size_t transformed_ = 1;  // elements that are transformed together
  std::vector<std::size_t> elements_;
};

// Collective; see Fft.
std::unique_ptr<FftPlan> host_plan(Communicator& comm,
                                   const Extents& shape,
                                   const Box& from,
                                   const Box& to,
                                   const FftOptions& options);
// Parts of at least twice this size go over links in slices.
inline constexpr std::size_t kSliceBytes = std::size_t{8} << 20;
std::unique_ptr<FftPlan> gpu_plan(Communicator& comm,
                                  const Extents& shape,
                                  const Box& from,
                                  const Box& to,
                                  const FftOptions& options,
                                  std::size_t slice_bytes = kSliceBytes);

}  // namespace hocket::fft
