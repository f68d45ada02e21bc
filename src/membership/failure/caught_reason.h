// Makes the reason that other ranks get when a call of this rank ends by an exception.
#pragma once

#include <string>
#include <string_view>

#include "foundation/base/short_text.h"
#include "hocket/error.h"

namespace hocket::failure {

// Returns the reason for the exception that is being handled. It allocates nothing, because the
// reason may be a lack of memory.
base::ShortSentence<200> reason_of_caught() noexcept;

// Returns the reason for a refused call. If the call of another communicator caused it, the reason
// names the rank that refused that call. It does not name that call, because not all ranks are
// members of the other communicator.
std::string reason_for_others(const InvalidArgument& refused) noexcept;

// Returns `text`, or a short substitute if memory is exhausted.
std::string text_within_memory(std::string_view text) noexcept;

}  // namespace hocket::failure
