// How runs stand, as lines for people: a table for dlrun list, a page for dlrun status, and one line for a
// refresh where nothing can be drawn over. Pure. What is not known has no line.
#pragma once

#include <string>
#include <vector>

#include "src/report/run_view.hpp"

namespace dlrun::cli {

std::vector<std::string> list_lines(const std::vector<report::RunView>& views, Instant now);
std::vector<std::string> status_lines(const report::RunView& view, Instant now);
std::string status_line(const report::RunView& view, Instant now);

}  // namespace dlrun::cli
