#include "src/agent/stage_in/cleanup_list.hpp"

#include <cerrno>
#include <string>

#include <unistd.h>

#include "src/agent/stage_in/copy_folder.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::agent {

// A pipe takes up to 4096 bytes whole or not at all; names of folders are shorter than that.
Result<void> CleanupList::add(const std::filesystem::path& folder) {
  if (listed_.contains(folder)) return {};
  const std::string line = folder.string() + '\0';
  if (::write(write_.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()))
    return listed_.insert(folder), Result<void>();
  return fail(ErrorKind::io, "{} cannot be put on the list of what is removed at the end: {}",
              folder.string(), system_reason(errno));
}

void remove_listed(int read_end) {
  const auto text = read_all(read_end, "the list of staged folders");
  if (!text) return;
  for (const std::string& path : split(*text, '\0'))
    if (!path.empty()) (void)remove_if_abandoned(path);
}

}  // namespace dlrun::agent
