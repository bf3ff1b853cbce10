// The user's folder for what dlrun remembers from run to run, as the XDG base directories have it. It is not
// made here.
#pragma once

#include <filesystem>
#include <string_view>

#include "src/base/environment.hpp"

namespace dlrun {

std::filesystem::path state_folder(const Environment& environment);

/// A name of a file of its own for any text: no text becomes more than one name.
std::string state_file_name(std::string_view text);

}  // namespace dlrun
