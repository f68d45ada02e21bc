// User-defined operators: hocket.Operator.
#pragma once

#include <memory>

#include "array.h"
#include "hocket/operator.h"

namespace hocket::python {

// One call by such an operator. A resource; made and destroyed under the GIL.
class OwnOperator {
 public:
  // Null if `op` is no such operator.
  static std::shared_ptr<OwnOperator> of(nb::handle op);

  // True if arrays are cut along their first axis alone.
  bool takes_rows() const noexcept { return takes_rows_; }
  // Call it before `run`. `cut` is the array that is cut, or one of its shape.
  void fit(const Array& cut, const char* name);

  // The operator for C++. It calls this object, which must outlive the call.
  const Operator& op() const noexcept { return op_; }
  // Call it while handling the InvalidArgument that ended a call, with the GIL or without. If this
  // rank's function raised something other than an Exception, such as Ctrl-C, it throws that. If
  // not, it throws the call's error, with the function's own exception as its cause.
  [[noreturn]] void rethrow();

 private:
  explicit OwnOperator(nb::handle op);
  static void combine(void* left, const void* right, std::size_t count, void* own);
  void combine_block(void* left, const void* right, std::size_t count);
  nb::object checked(nb::object result, const nb::object& like) const;

  nb::object object_;    // hocket.Operator, which keeps the function alive
  nb::object function_;  // of Python; else none
  bool is_ufunc_ = false;
  bool takes_rows_ = false;
  Shape row_;  // the axes of an entry
  DType dtype_ = DType::kUInt8;
  Operator op_;
  nb::object raised_;
};

}  // namespace hocket::python
