// read_elf_needed(): the shared libraries that a program or library names as needed, and where it wants them
// looked for. Reads the file's own tables; runs and loads nothing. A file from anywhere is safe to read: what
// does not fit is an Error.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun {

struct ElfNeeded {
  std::vector<std::string> libraries;     // DT_NEEDED, in their order
  std::vector<std::string> search_paths;  // DT_RPATH and DT_RUNPATH, with $ORIGIN replaced
};

// An Error of kind input where the file is no ELF of this machine's word size and byte order.
Result<ElfNeeded> read_elf_needed(const std::filesystem::path& file);

}  // namespace dlrun
