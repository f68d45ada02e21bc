// The reason that other ranks get for an exception that is being handled.
#pragma once

#include <string>
#include <string_view>

#include "foundation/base/short_text.h"

namespace hocket::failure {

// Allocates nothing, as the reason may be a lack of memory.
base::ShortSentence<200> reason_of_caught() noexcept;

// Returns `text`, or a short substitute if there is no memory for it.
std::string text_within_memory(std::string_view text) noexcept;

}  // namespace hocket::failure
