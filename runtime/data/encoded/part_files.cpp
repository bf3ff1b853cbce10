// See part_files.hpp.
#include "runtime/data/encoded/part_files.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;

bool has_word(const std::string& name, std::string_view word) {
  std::string letters;
  for (const char c : name + ".") {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      letters.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
      continue;
    }
    if (letters == word) return true;
    letters.clear();
  }
  return false;
}

bool is_test(const std::string& name) {
  constexpr std::array words = {"test", "val", "valid", "validation"};
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return has_word(name, word); });
}

Result<std::vector<fs::path>> entries(const fs::path& folder) {
  std::error_code problem;
  std::vector<fs::path> out;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem))
    if (!at->path().filename().string().starts_with('.')) out.push_back(at->path());
  if (problem)
    return bad_input(folder.string(), "cannot be read: " + problem.message(),
                     "data.dir of the job file must be the folder of the data files");
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

Result<PartFiles> find_part_files(const fs::path& folder, bool (*accepts)(const fs::path& file)) {
  PartFiles out;
  std::vector<fs::path> others;
  for (const fs::path& entry : TRY(entries(folder))) {
    const std::string name = entry.filename().string();
    std::vector<fs::path>& part = is_test(name) ? out.test : has_word(name, "train") ? out.train : others;
    std::error_code problem;
    const std::vector<fs::path> inside =
        fs::is_directory(entry, problem) ? TRY(entries(entry)) : std::vector{entry};
    std::copy_if(inside.begin(), inside.end(), std::back_inserter(part), accepts);
  }
  if (out.train.empty()) out.train = std::move(others);
  return out;
}

}  // namespace dlrun::runtime
