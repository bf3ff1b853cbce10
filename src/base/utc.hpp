// The way back from format_utc(): "2026-11-27T21:00:00Z", with or without a fraction of a second. Strict:
// a text in another format gives an unset value.
#pragma once

#include <optional>
#include <string>

#include "src/base/clock.hpp"

namespace dlrun {

std::optional<Instant> parse_utc(const std::string& text);

}  // namespace dlrun
