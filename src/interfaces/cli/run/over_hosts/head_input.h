// The head's standard input, on its way to rank 0.
#pragma once

#include <cstddef>
#include <string>

namespace hocket::cli {

// A value: reads no more than what rank 0 takes. One thread.
class HeadInput {
 public:
  // True if there is room for more, and this process may read: one in the background that reads the
  // terminal would be stopped.
  bool wants_more() const;
  // Reads what is there, and returns it as an order. Empty: nothing was there.
  std::string read_order();
  // Rank 0 has taken so many bytes.
  void taken(std::size_t bytes);

 private:
  bool has_ended_ = false;
  std::size_t on_its_way_ = 0;
};

}  // namespace hocket::cli
