// Comparing with a kept file, word for word; DLRUN_REFRESH_GOLDEN writes it anew instead.
#pragma once

#include <filesystem>

#include <doctest/doctest.h>

#include "src/base/environment.hpp"
#include "src/base/file.hpp"

namespace dlrun::golden {

inline const std::filesystem::path kHere = TEST_DATA_DIR;
// The sources have the shape of the installed data.
inline const std::filesystem::path kData = kHere.parent_path().parent_path();

inline bool refreshing() {
  return Environment::of_this_process().find("DLRUN_REFRESH_GOLDEN").has_value();
}

inline void compare(const std::filesystem::path& file, const std::string& now) {
  if (refreshing()) {
    REQUIRE(replace_file(file, now, Durability::none).has_value());
    return;
  }
  CAPTURE(file.filename().string());
  const auto kept = read_file(file);
  REQUIRE_MESSAGE(kept.has_value(), "missing; refresh-golden writes it");
  CHECK(*kept == now);
}

}  // namespace dlrun::golden
