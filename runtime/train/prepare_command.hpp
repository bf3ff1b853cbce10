// dlrun-train --prepare: the command line that packs images: their pixels
// (runtime/data/images/packed.hpp), or the images themselves (runtime/data/repack.hpp); or that makes tokens
// of texts (runtime/data/text/prepare_text.hpp).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "runtime/data/images/packed.hpp"
#include "runtime/data/repack.hpp"
#include "runtime/data/text/prepare_text.hpp"

namespace dlrun::runtime {

/// Packs decoded pixels, or encoded images into shards of a container, or texts into token files.
using PrepareJob = std::variant<PackJob, RepackJob, TextJob>;

/// The words after the program's name, the first of them --prepare.
Result<PrepareJob> parse_prepare(const std::vector<std::string>& words);
/// Packs, with progress on stderr where that is a terminal, and says what was written.
Result<std::string> run_prepare(const PrepareJob& job);

}  // namespace dlrun::runtime
