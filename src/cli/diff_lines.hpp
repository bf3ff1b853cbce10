// The lines that `dlrun diff` shows to people. Pure.
#pragma once

#include <string>
#include <vector>

#include "src/report/diff/diff.hpp"

namespace dlrun::cli {

std::vector<std::string> diff_lines(const report::RunDiff& diff, const report::DiffRun& a,
                                    const report::DiffRun& b);

}  // namespace dlrun::cli
