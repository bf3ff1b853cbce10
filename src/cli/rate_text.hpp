// The rate that a program reports, for people: "3900 images/s", "541100 tokens/s".
#pragma once

#include <array>
#include <string>
#include <utility>

#include "src/base/json.hpp"

namespace dlrun::cli {

/// Empty where the report has no rate under one of the names that programs use.
inline std::string rate_text(const Json& report) {
  constexpr std::array<std::pair<const char*, const char*>, 4> kRates{{{"images_per_s", "images/s"},
                                                                       {"tokens_per_s", "tokens/s"},
                                                                       {"samples_per_s", "samples/s"},
                                                                       {"steps_per_s", "steps/s"}}};
  if (!report.is_object()) return "";
  for (const auto& [name, unit] : kRates) {
    const auto found = report.find(name);
    if (found != report.end() && found->is_number())
      return fmt::format("{:.0f} {}", found->get<double>(), unit);
  }
  return "";
}

}  // namespace dlrun::cli
