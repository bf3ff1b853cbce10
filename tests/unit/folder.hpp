// A folder of one test's own, which is gone with the variable.
#pragma once

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "src/base/file.hpp"

namespace dlrun::test {

struct Folder {
  std::filesystem::path path;

  Folder() {
    std::array<char, 24> name{"/tmp/dlrun-test-XXXXXX"};
    const char* made = ::mkdtemp(name.data());
    if (!made) std::abort();
    path = made;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  // Writes a file, with the folders above it, and tells where.
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path / name;
    if (!make_directories(file.parent_path(), Access::shared) || !replace_file(file, text, Durability::none))
      std::abort();
    return file;
  }
};

}  // namespace dlrun::test
