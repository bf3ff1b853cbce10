// ScratchFolder: a folder of this process alone, which is gone with the value, whatever is in it.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "src/base/result.hpp"

namespace dlrun {

class ScratchFolder {
 public:
  /// In `parent`, with a name that begins so.
  static Result<ScratchFolder> make_in(const std::filesystem::path& parent, std::string_view name);
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace dlrun
