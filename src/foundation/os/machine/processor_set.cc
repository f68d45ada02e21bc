#include "foundation/os/machine/processor_set.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "foundation/base/words.h"

namespace hocket::os {

ProcessorSet ProcessorSet::allowed() {
  ProcessorSet set;
  // The kernel refuses a mask that has fewer bits than the machine may have processors. So try
  // larger masks.
  for (std::size_t words = 16; words <= kMost / 64; words *= 2) {
    set.words_.assign(words, 0);
    const long bytes =
        ::syscall(SYS_sched_getaffinity, 0, words * sizeof(std::uint64_t), set.words_.data());
    if (bytes >= 0) return set;
    if (errno != EINVAL) break;
  }
  return {};
}

bool ProcessorSet::restrict_this_thread() const noexcept {
  return ::syscall(
             SYS_sched_setaffinity, 0, words_.size() * sizeof(std::uint64_t), words_.data()) == 0;
}

std::optional<ProcessorSet> ProcessorSet::parse(std::string_view list) {
  ProcessorSet set;
  while (!list.empty()) {
    std::string_view range = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), range.size() + 1));
    const std::size_t dash = range.find('-');
    const auto low = base::number_in<int>(range.substr(0, dash));
    const auto high =
        dash == std::string_view::npos ? low : base::number_in<int>(range.substr(dash + 1));
    if (!low || !high || *low < 0 || *high < *low || *high >= kMost) return {};
    for (int processor = *low; processor <= *high; ++processor) set.add(processor);
  }
  return set;
}

std::string ProcessorSet::text() const {
  std::string text;
  const std::vector<int> all = numbers();
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i + 1;
    while (end < all.size() && all[end] == all[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += end == i + 1 ? fmt::format("{}", all[i]) : fmt::format("{}-{}", all[i], all[end - 1]);
    i = end;
  }
  return text;
}

void ProcessorSet::add(int processor) {
  const auto at = static_cast<std::size_t>(processor) / 64;
  if (at >= words_.size()) words_.resize(at + 1);
  words_[at] |= std::uint64_t{1} << (processor % 64);
}

bool ProcessorSet::contains(int processor) const noexcept {
  return processor >= 0 &&
         (word(static_cast<std::size_t>(processor) / 64) >> (processor % 64) & 1) != 0;
}

int ProcessorSet::count() const noexcept {
  int count = 0;
  for (const std::uint64_t each : words_) count += std::popcount(each);
  return count;
}

std::vector<int> ProcessorSet::numbers() const {
  std::vector<int> numbers;
  for (std::size_t at = 0; at < words_.size(); ++at) {
    for (std::uint64_t rest = words_[at]; rest != 0; rest &= rest - 1) {
      numbers.push_back(static_cast<int>(64 * at) + std::countr_zero(rest));
    }
  }
  return numbers;
}

bool ProcessorSet::is_within(const ProcessorSet& other) const noexcept {
  for (std::size_t at = 0; at < words_.size(); ++at) {
    if ((words_[at] & ~other.word(at)) != 0) return false;
  }
  return true;
}

bool ProcessorSet::meets(const ProcessorSet& other) const noexcept {
  for (std::size_t at = 0; at < words_.size(); ++at) {
    if ((words_[at] & other.word(at)) != 0) return true;
  }
  return false;
}

ProcessorSet& ProcessorSet::operator|=(const ProcessorSet& other) {
  words_.resize(std::max(words_.size(), other.words_.size()));
  for (std::size_t at = 0; at < words_.size(); ++at) words_[at] |= other.word(at);
  return *this;
}

ProcessorSet& ProcessorSet::operator-=(const ProcessorSet& other) noexcept {
  for (std::size_t at = 0; at < words_.size(); ++at) words_[at] &= ~other.word(at);
  return *this;
}

ProcessorSet& ProcessorSet::operator&=(const ProcessorSet& other) noexcept {
  for (std::size_t at = 0; at < words_.size(); ++at) words_[at] &= other.word(at);
  return *this;
}

bool ProcessorSet::operator==(const ProcessorSet& other) const noexcept {
  return is_within(other) && other.is_within(*this);
}

int ProcessorSet::first() const noexcept {
  for (std::size_t at = 0; at < words_.size(); ++at) {
    if (words_[at] != 0) return static_cast<int>(64 * at) + std::countr_zero(words_[at]);
  }
  return -1;
}

}  // namespace hocket::os
