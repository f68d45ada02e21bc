// User-defined operators: hocket.Operator.
#pragma once

#include <exception>
#include <memory>

#include "array.h"
#include "hocket/error.h"
#include "hocket/operator.h"

namespace hocket::python {

// One call with a user-defined operator. A resource; made and destroyed under the GIL.
class OwnOperator {
 public:
  // Makes the operator of a call. Returns null if `op` is no user-defined operator.
  static std::shared_ptr<OwnOperator> of(nb::handle op);

  // Returns true if arrays are split along their first axis alone.
  bool takes_rows() const noexcept { return takes_rows_; }
  // Takes the dtype and the shape of rows from `cut`, the array that is split, or an array of its
  // shape. Call it before the collective call.
  void fit(const Array& cut, const char* name);

  // The operator for C++. It calls this object, so this object must outlive the call.
  const Operator& op() const noexcept { return op_; }
  // Runs `call`, with the GIL or without it. If `call` throws InvalidArgument, the cause may be an
  // exception that this rank's function raised. If the function raised an Exception, the error is
  // thrown with that exception as its cause. If it raised something else, such as
  // KeyboardInterrupt, that is thrown instead.
  template <typename Call>
  auto explain(const Call& call) {
    std::exception_ptr error;
    try {
      return call();
    } catch (const InvalidArgument&) {
      error = std::current_exception();
    }
    rethrow(error);
  }

 private:
  explicit OwnOperator(nb::handle op);
  // Must not be called in a catch block; see to_exception.
  [[noreturn]] void rethrow(const std::exception_ptr& error);
  static void combine(void* left, const void* right, std::size_t count, void* own);
  void combine_block(void* left, const void* right, std::size_t count);
  nb::object called(const nb::object& left, const nb::object& right) const;
  nb::object checked(nb::object result, const nb::object& like) const;

  nb::object object_;    // hocket.Operator, which keeps the function alive
  nb::object function_;  // the Python function; null if the operator is a C function
  bool is_ufunc_ = false;
  bool takes_rows_ = false;
  Shape row_;  // the shape of an entry along the first axis
  DType dtype_ = DType::kUInt8;
  Operator op_;
  nb::object raised_;
};

}  // namespace hocket::python
