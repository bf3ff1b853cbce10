#include "src/run/checkpoint_files.hpp"

#include <filesystem>

#include <fmt/core.h>
#include <glob.h>

namespace dlrun::job {

namespace fs = std::filesystem;

std::string mark_of_files(const std::string& pattern) {
  std::string newest;
  if (pattern.empty()) return newest;
  fs::file_time_type when = fs::file_time_type::min();
  ::glob_t found{};
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      std::error_code problem;
      const fs::path path = found.gl_pathv[i];
      const auto written = fs::last_write_time(path, problem);
      if (problem || written < when) continue;
      newest = path.filename().string(), when = written;
    }
  ::globfree(&found);
  return newest.empty() ? newest : fmt::format("{}@{}", newest, when.time_since_epoch().count());
}

std::string name_in_mark(const std::string& mark) {
  return mark.substr(0, mark.rfind('@'));
}

CheckpointFiles::CheckpointFiles(std::string pattern)
    : pattern_(std::move(pattern)), at_begin_(mark_of_files(pattern_)) {}

void CheckpointFiles::asked() {
  if (was_asked_) return;
  was_asked_ = true;
  at_asked_ = mark_of_files(pattern_);
}

CheckpointFiles::Found CheckpointFiles::found() const {
  const std::string now = mark_of_files(pattern_);
  if (now.empty() || now == at_begin_) return {};
  return {.newest = name_in_mark(now), .after_asked = was_asked_ && now != at_asked_};
}

}  // namespace dlrun::job
