// find_elf_symbol(): where a function's code lies in a program's or library's file, by its own symbol tables.
// Runs and loads nothing; a file from anywhere is safe to read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "src/base/result.hpp"

namespace dlrun {

struct FileRange {
  std::uint64_t offset = 0, size = 0;
};

// Unset where the file does not define such a function. An Error where the file is not an ELF of this
// machine.
Result<std::optional<FileRange>> find_elf_symbol(const std::filesystem::path& file, std::string_view name);

}  // namespace dlrun
