// The pointer that classes of hocket hold. It reports the use of an object after it was moved from.
#pragma once

#include <cstddef>
#include <utility>

namespace hocket {

// The name of a class, as a template argument.
template <std::size_t kSize>
struct ClassName {
  consteval ClassName(const char (&name)[kSize]) {  // NOLINT: a literal
    for (std::size_t i = 0; i < kSize; ++i) text[i] = name[i];
  }
  char text[kSize] = {};
};

// Throws InvalidArgument: an object of this class is used after it was moved from.
[[noreturn]] void refuse_moved_from(const char* class_name);

// A smart pointer that throws InvalidArgument if it is used while it is null.
template <ClassName kName, typename Pointer>
class Held {
 public:
  Held() noexcept = default;
  Held(Pointer pointer) noexcept : pointer_(std::move(pointer)) {}  // NOLINT: implicit

  decltype(auto) operator*() const { return *checked(); }
  auto* operator->() const { return checked().get(); }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }
  operator const Pointer&() const { return checked(); }  // NOLINT: implicit
  friend bool operator==(const Held& a, const Held& b) noexcept { return a.pointer_ == b.pointer_; }

 private:
  const Pointer& checked() const {
    if (pointer_ == nullptr) refuse_moved_from(kName.text);
    return pointer_;
  }
  Pointer pointer_;
};

}  // namespace hocket
