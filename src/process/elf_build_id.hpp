// build_id(): the number by which a linker names the content of a program or library, from the file's own
// notes. It tells two builds apart that have one name. Reads a few hundred bytes; runs and loads nothing.
#pragma once

#include <filesystem>
#include <string>

#include "src/base/result.hpp"

namespace dlrun {

/// In hexadecimal digits; empty where the file has none. An Error where it is no ELF of this machine.
Result<std::string> build_id(const std::filesystem::path& file);

}  // namespace dlrun
