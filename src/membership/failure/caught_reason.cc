#include "membership/failure/caught_reason.h"

#include <fmt/format.h>

#include <exception>
#include <new>

namespace hocket::failure {

base::ShortSentence<200> reason_of_caught() noexcept {
  base::ShortSentence<200> text;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    text = "it has no memory left for the call";
  } catch (const InvalidArgument& refused) {
    text = reason_for_others(refused);
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
    text = "it has thrown something unknown";
  }
  return text;
}

std::string reason_for_others(const InvalidArgument& refused) noexcept {
  const Status& status = refused.status();
  if (status.reason.empty()) return text_within_memory(refused.what());
  if (status.peer < 0) return text_within_memory(status.reason);
  try {
    return fmt::format("rank {} of {}: {}", status.peer, status.communicator, status.reason);
  } catch (const std::bad_alloc&) {
    return text_within_memory(status.reason);
  }
}

std::string text_within_memory(std::string_view text) noexcept {
  try {
    return std::string(text);
  } catch (const std::bad_alloc&) {
    return "it has no room";  // short enough for no allocation
  }
}

}  // namespace hocket::failure
