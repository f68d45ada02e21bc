#include "engines/peer/costs.h"

namespace hocket::engines::peer {

double expected_microseconds(const engine::Signature& signature, int size) noexcept {
  static_cast<void>(size);
  return 3 + static_cast<double>(engine::bytes_of(signature)) / 200'000;
}

}  // namespace hocket::engines::peer
