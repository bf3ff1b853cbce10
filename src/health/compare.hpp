// What judgements of checks have in common: one value of many nodes' answers, the node that differs from all
// others, the median. Values that are absent or of another type count as absent. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/health/check.hpp"

namespace dlrun::health {

std::optional<double> number_of(const Json& values, std::string_view name);
std::string text_of(const Json& values, std::string_view name);

/// 0 where there are none.
double median(std::vector<double> numbers);

/// Which nodes differ in this value from what more than half of the nodes have: with fewer than three nodes
/// nobody can tell. `title` is what people call the value: "kernel".
std::vector<Found> different(const std::vector<Sample>& samples, std::string_view name,
                             std::string_view title);

/// Adds the second list to the first.
void append(std::vector<Found>& to, std::vector<Found> more);

}  // namespace dlrun::health
