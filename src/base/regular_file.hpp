// Opens and reads regular files only, without ever waiting for one: a FIFO would hold its reader until
// somebody writes, and a device need not end. For data that people name or that lie in their folders; what
// may be a pipe is read_file()'s (file.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun {

struct RegularFile {
  UniqueFd fd;  // for reading
  std::uint64_t size = 0;
};

// Errors are of kind input, and have the path as their place.
Result<RegularFile> open_regular_file(const std::filesystem::path& path);
Result<std::string> read_regular_file(const std::filesystem::path& path, std::size_t maximum = SIZE_MAX);
// Also a shell's <(command), which is a pipe without a name. More than `maximum` bytes are refused.
Result<std::string> read_file_or_pipe(const std::filesystem::path& path, std::size_t maximum = SIZE_MAX);

}  // namespace dlrun
