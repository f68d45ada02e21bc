#include "membership/failure/caught.h"

#include <exception>
#include <new>

namespace hocket::failure {

base::ShortSentence<200> reason_of_caught() noexcept {
  base::ShortSentence<200> text;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    text = "it has no memory left for the call";
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
    text = "it has thrown something unknown";
  }
  return text;
}

std::string text_within_memory(std::string_view text) noexcept {
  try {
    return std::string(text);
  } catch (const std::bad_alloc&) {
    return "it has no room";  // needs no memory: the text fits into the string object
  }
}

}  // namespace hocket::failure
