// What is said to the other ranks of an exception that is being handled.
#pragma once

#include <string>
#include <string_view>

#include "foundation/base/short_text.h"

namespace hocket::failure {

// Takes no memory, as that may be what there is none of.
base::ShortSentence<200> reason_of_caught() noexcept;

// `text`, or what fits where there is no memory for it.
std::string text_within_memory(std::string_view text) noexcept;

}  // namespace hocket::failure
