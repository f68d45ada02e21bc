// What an object of hocket's holds, and lets go of when it is moved from.
#pragma once

#include <cstddef>
#include <utility>

namespace hocket {

// The name of a class, as an argument of a template.
template <std::size_t kSize>
struct ClassName {
  consteval ClassName(const char (&name)[kSize]) {  // NOLINT: a literal
    for (std::size_t i = 0; i < kSize; ++i) text[i] = name[i];
  }
  char text[kSize] = {};
};

// Throws InvalidArgument: an object of that class was moved from and is used.
[[noreturn]] void refuse_moved_from(const char* class_name);

// A smart pointer that says so where it is used and null: InvalidArgument.
template <ClassName kName, typename Pointer>
class Held {
 public:
  Held() noexcept = default;
  Held(Pointer pointer) noexcept : pointer_(std::move(pointer)) {}  // NOLINT: as what it holds

  decltype(auto) operator*() const { return *checked(); }
  auto* operator->() const { return checked().get(); }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }
  operator const Pointer&() const { return checked(); }  // NOLINT: as what it holds
  friend bool operator==(const Held& a, const Held& b) noexcept { return a.pointer_ == b.pointer_; }

 private:
  const Pointer& checked() const {
    if (pointer_ == nullptr) refuse_moved_from(kName.text);
    return pointer_;
  }
  Pointer pointer_;
};

}  // namespace hocket
