// dlrun-train --prepare: the command line that packs a folder of images into shards
// (runtime/data/images/packed.hpp).
#pragma once

#include <string>
#include <vector>

#include "runtime/data/images/packed.hpp"

namespace dlrun::runtime {

/// The words after the program's name, the first of them --prepare.
Result<PackJob> parse_prepare(const std::vector<std::string>& words);
/// Packs, with progress on stderr where that is a terminal, and says what was packed.
Result<std::string> run_prepare(PackJob job);

}  // namespace dlrun::runtime
