// The decoder of objects on arbitrary bytes: it ends in InvalidArgument, or in an object whose
// encoding is those bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "hocket/object.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const auto again = hocket::encode(hocket::decode(bytes));
    if (!std::equal(bytes.begin(), bytes.end(), again.begin(), again.end())) std::abort();
  } catch (const hocket::InvalidArgument&) {
  }
  return 0;
}
