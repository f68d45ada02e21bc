// The head's standard input, which it passes to rank 0.
#pragma once

#include <cstddef>
#include <string>

namespace hocket::cli {

// A value; one thread. It reads no more than kMostInput bytes ahead of rank 0.
class HeadInput {
 public:
  // True if there is room for more, and this process may read. A process in the background would be
  // stopped if it read the terminal.
  bool wants_more() const;
  // Reads the available input, and returns it as an order. Empty: there was none.
  std::string read_order();
  // Notes that rank 0 has taken this many bytes.
  void taken(std::size_t bytes);

 private:
  bool has_ended_ = false;
  std::size_t on_its_way_ = 0;
};

}  // namespace hocket::cli
