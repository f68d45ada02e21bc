#include "foundation/base/place_teller.h"

#include <atomic>

#include "hocket/live.h"

namespace hocket {
namespace {
// The function of `set_place_teller`. It is global, because the process has one Python interpreter,
// which it asks.
std::atomic<base::PlaceTeller> registered_teller{nullptr};
}  // namespace

void set_place_teller(std::string (*tell)(std::uint64_t thread)) noexcept {
  registered_teller.store(tell);
}

namespace base {
PlaceTeller place_teller() noexcept { return registered_teller.load(); }
}  // namespace base

}  // namespace hocket
