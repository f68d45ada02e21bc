// Operators of the program's own: hocket.Operator.
#pragma once

#include <memory>

#include "array.h"
#include "hocket/operator.h"

namespace hocket::python {

// One call by such an operator. A resource; made and destroyed under the GIL.
class OwnOperator {
 public:
  // Null where `op` is none.
  static std::shared_ptr<OwnOperator> of(nb::handle op);

  // Whether arrays are cut along their first axis alone.
  bool takes_rows() const noexcept { return takes_rows_; }
  // To be called before `run`. `cut`: the array that is cut, or one of its shape.
  void fit(const Array& cut, const char* name);

  // What C++ takes. It calls this object, which must outlive the call.
  const Operator& op() const noexcept { return op_; }
  // To be called where a call has ended by the InvalidArgument that is being handled, with the GIL
  // or without. Where this rank's function raised what was no Exception, as Ctrl-C is none, it
  // throws that; else the call's error, whose cause is what was raised here.
  [[noreturn]] void rethrow();

 private:
  explicit OwnOperator(nb::handle op);
  static void combine(void* left, const void* right, std::size_t count, void* own);
  void combine_block(void* left, const void* right, std::size_t count);
  nb::object checked(nb::object result, const nb::object& like) const;

  nb::object object_;    // hocket.Operator, which keeps what is called
  nb::object function_;  // of Python; else none
  bool is_ufunc_ = false;
  bool takes_rows_ = false;
  Shape row_;  // the axes of an entry
  DType dtype_ = DType::kUInt8;
  Operator op_;
  nb::object raised_;
};

}  // namespace hocket::python
