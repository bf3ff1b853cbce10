// A command written as one text, split into its words as a shell would: blanks part them; quotes and
// backslashes quote. Nothing is expanded and nothing is left out. $NAME, ${NAME} and a leading ~/ stay as
// they are for the caller, a dollar sign that is quoted becomes "$$", and "$$" stays; what else a shell would
// not take as it stands (pipes, patterns, several commands) is refused by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun {

// The Error says what is wrong; where the text stands is known to the caller.
Result<std::vector<std::string>> split_words(std::string_view text);

}  // namespace dlrun
