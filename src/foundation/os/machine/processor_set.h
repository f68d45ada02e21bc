// A set of processors. Unlike the C library's cpu_set_t, it is not limited to 1,024 processors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hocket::os {

// Processors (hardware threads) by the kernel's numbers. A value.
class ProcessorSet {
 public:
  static constexpr int kMost = 1 << 16;  // larger numbers are refused; Linux ends at 8,192

  // Returns the affinity mask of this thread. Empty if the kernel does not tell it.
  static ProcessorSet allowed();
  // Restricts this thread to these processors. Returns false if the kernel refuses.
  bool restrict_this_thread() const noexcept;
  // Parses the kernel's list format, "0-3,8". Absent if the text is malformed or a number is too
  // large. `text` is the inverse.
  static std::optional<ProcessorSet> parse(std::string_view list);
  std::string text() const;

  void add(int processor);
  bool contains(int processor) const noexcept;
  int count() const noexcept;
  bool empty() const noexcept { return count() == 0; }
  std::vector<int> numbers() const;
  bool is_within(const ProcessorSet& other) const noexcept;
  bool meets(const ProcessorSet& other) const noexcept;

  ProcessorSet& operator|=(const ProcessorSet& other);
  ProcessorSet& operator-=(const ProcessorSet& other) noexcept;
  // Keeps only the processors that are in both sets.
  ProcessorSet& operator&=(const ProcessorSet& other) noexcept;
  bool operator==(const ProcessorSet& other) const noexcept;
  // Returns the lowest number; -1 if the set is empty.
  int first() const noexcept;

 private:
  std::uint64_t word(std::size_t at) const noexcept { return at < words_.size() ? words_[at] : 0; }
  std::vector<std::uint64_t> words_;  // 64 processors each
};

}  // namespace hocket::os
