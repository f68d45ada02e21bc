// The two ways to compute a product of distributed matrices, kGathered and kReduced: the ranks
// gather factors, or they add up partial results. See hocket::MatmulForm.
#pragma once

#include <complex>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "arrays/matmul/local.h"
#include "arrays/matmul/problem.h"
#include "hocket/communicator.h"

namespace hocket::matmul {

// The arrays of one call: the problem's left, right and result. A view. If `added` is null, nothing
// is added; `added` may be `target`.
struct Operands {
  const void* left = nullptr;
  const void* right = nullptr;
  const void* added = nullptr;
  void* target = nullptr;
  std::complex<double> alpha = 1, beta = 0;
};

// A resource of one plan, used by one thread.
class ProductForm {
 public:
  virtual ~ProductForm() = default;
  // Allocates the memory that `run` needs. Not collective.
  virtual void reserve() = 0;
  // Collective. Calls `meet` once, when other ranks may read this rank's factors.
  virtual void run(const Operands& operands, const std::function<void()>& meet) = 0;
  virtual bool is_shared() const noexcept = 0;
  // True if factors of 8 bits are multiplied without conversion. Arrays then begin at multiples of
  // kFloat8Unit.
  virtual bool is_narrow() const noexcept = 0;
};

// The parts that both forms use. They outlive the forms.
struct FormParts {
  Communicator& comm;
  const Problem& problem;
  Local& local;
  std::optional<Duration> deadline;
};

// Make the two forms. Both functions are collective.
std::unique_ptr<ProductForm> gathered_form(const FormParts& parts);
// `share` tells which elements of the inner extent each rank multiplies; ranks are its places.
std::unique_ptr<ProductForm> reduced_form(const FormParts& parts, const Axis& share);

// The selected form of a product. A value.
struct Choice {
  MatmulForm form = MatmulForm::kGathered;
  Axis share;  // set for kReduced
};
// Selects the form that `wanted` names, or the form with the least expected time. Equal on all
// ranks.
Choice choose(const Problem& problem, MatmulForm wanted, int ranks);

}  // namespace hocket::matmul
