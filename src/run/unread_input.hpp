// Ranks have no standard input: /dev/null. So nothing is eaten that a loop around dlrun reads, and who pipes
// something in is told that nobody will read it.
#pragma once

#include <optional>
#include <string>

namespace dlrun::job {

// What to say where a pipe or file with something in it stands at this descriptor; it is not read.
std::optional<std::string> unread_input(int fd);

}  // namespace dlrun::job
