// The user's folder for what dlrun remembers from run to run, as the XDG base directories have it. It is not
// made here.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun {

/// dlrun's folder below that of the `variable` (XDG_...), or below HOME/`otherwise`. Unset where neither is
/// an absolute path: a relative one would be below whatever folder is the current.
std::optional<std::filesystem::path> user_folder(const Environment& environment, std::string_view variable,
                                                 std::string_view otherwise);

/// The user_folder() of XDG_STATE_HOME.
std::optional<std::filesystem::path> state_folder(const Environment& environment);

/// Why something cannot be remembered then.
Error no_state_folder();

/// A name of a file of its own for any text: no text becomes more than one name.
std::string state_file_name(std::string_view text);

}  // namespace dlrun
