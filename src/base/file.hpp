// Whole files: read, write, replace at once. Errors carry the path and the system's reason; a full disk and a
// quota are told apart by name. Nothing here decides what a missing file means.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "src/base/result.hpp"

namespace dlrun {

// The system's text for an errno, with EDQUOT as "disk quota exceeded" and ENOSPC as "no space left on
// device".
std::string system_reason(int error_number);

// An Error where it is longer than `maximum` bytes.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t maximum = SIZE_MAX);
// The rest of an open descriptor, to its end. `path` is for the error text.
Result<std::string> read_all(int fd, const std::filesystem::path& path, std::size_t maximum = SIZE_MAX);

enum class Durability { none, synced };  // synced: fsync of the file and, after the rename, of its folder
// Writes beside and renames, so that readers see the old content or the new, never a part.
Result<void> replace_file(const std::filesystem::path& path, std::string_view content, Durability durability);

// Writes a file that is not there yet, in place: for folders that nobody looks into before all of it is
// written.
Result<void> write_new_file(const std::filesystem::path& path, std::string_view content);

enum class Access { shared, owner_only };  // owner_only: mode 0700
Result<void> make_directories(const std::filesystem::path& path, Access access);

// Writes all of `content` to an open descriptor, through short writes and EINTR. `path` is for the error
// text.
Result<void> write_all(int fd, std::string_view content, const std::filesystem::path& path);

// fsync of a directory, so that a rename in it survives a crash.
Result<void> sync_directory(const std::filesystem::path& path);

}  // namespace dlrun
