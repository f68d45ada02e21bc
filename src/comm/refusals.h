// What is said of an exception to the other ranks.
#pragma once

#include <string>
#include <string_view>

#include "base/short_text.h"

namespace hocket::comm {

// Of the exception that is being handled. Takes no memory, as that may be what there is none of.
base::ShortText<200> reason_of_caught() noexcept;

// `text`, or what fits where there is no memory for it.
std::string failure_text(std::string_view text) noexcept;

}  // namespace hocket::comm
