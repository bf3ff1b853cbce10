#include "src/base/named_file.hpp"

#include <algorithm>
#include <vector>

#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"

namespace dlrun {
namespace {

namespace fs = std::filesystem;

// The file of the same folder whose name is nearest; empty where none is near.
std::string neighbour(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code problem;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end; entry.increment(problem))
    if (std::error_code ignored; !entry->is_directory(ignored))
      names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  const std::string found = nearest(path.filename().string(), names);
  return found.empty() ? found : (path.parent_path() / found).string();
}

}  // namespace

Result<std::string> read_named_file(const fs::path& path) {
  auto text = read_file_or_pipe(path, kMaxNamedFileBytes);
  std::error_code problem;
  if (text || fs::exists(path, problem) || problem) return text;
  if (const std::string near = neighbour(path); !near.empty())
    text.error().hint = fmt::format("did you mean '{}'?", near);
  return text;
}

Result<std::string_view> utf8_text(std::string_view text, std::string_view where) {
  if (text.starts_with("\xef\xbb\xbf")) return text.substr(3);
  const bool marked = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  if (marked || (text.size() > 1 && (text[0] == '\0') != (text[1] == '\0')))
    return bad_input(std::string(where), "the file is UTF-16, not UTF-8", "iconv -f UTF-16 -t UTF-8 FILE");
  return text;
}

}  // namespace dlrun
