// See part_files.hpp.
#include "runtime/data/encoded/part_files.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "runtime/data/short_list.hpp"

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

// "train-00001-of-00003.tar": one file of a set whose names tell how many there are.
struct Numbered {
  std::string set;  // the name without the number
  std::int64_t number = 0, count = 0;
};

std::optional<Numbered> numbered(const fs::path& file) {
  static const std::regex form(R"((.*\D|)(\d{1,9})-of-(\d{1,9})(\D.*|))");
  const std::string name = file.filename().string();
  std::smatch found;
  if (!std::regex_match(name, found, form)) return std::nullopt;
  return Numbered{.set = fmt::format("{}/{}*-of-{}{}", file.parent_path().string(), found.str(1),
                                     found.str(3), found.str(4)),
                  .number = std::stoll(found.str(2)),
                  .count = std::stoll(found.str(3))};
}

// A file of a set that was not copied is no smaller data set. Sets are numbered from 0, some from 1.
Result<void> check_sets(const std::vector<fs::path>& files) {
  std::map<std::string, std::pair<std::int64_t, std::set<std::int64_t>>> sets;
  for (const fs::path& file : files)
    if (const auto found = numbered(file)) {
      auto& [count, numbers] = sets[found->set];
      count = found->count;
      numbers.insert(found->number);
    }
  for (const auto& [set, known] : sets) {
    const auto& [count, numbers] = known;
    const std::int64_t first = numbers.contains(count) ? 1 : 0;
    for (std::int64_t number = first; number < first + count; ++number)
      if (!numbers.contains(number))
        return bad_input(set, fmt::format("file {} of the set is missing", number),
                         "copy the files that are missing, or rename the others if they are all the data");
  }
  return {};
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
  (out.train.empty() ? out.train : out.unused) = std::move(others);
  TRY(check_sets(out.train));
  TRY(check_sets(out.test));
  return out;
}

std::vector<std::string> unused_note(const PartFiles& files) {
  if (files.unused.empty()) return {};
  std::vector<std::string> names;
  for (const fs::path& file : files.unused) names.push_back(file.filename().string());
  return {fmt::format("not used, because no word of the name is train, val, validation or test: {}",
                      short_list(names))};
}

}  // namespace dlrun::runtime
