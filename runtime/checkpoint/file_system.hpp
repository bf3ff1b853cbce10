// FileSystem: the few effects that checkpoints have on a disk, behind one interface, so that tests can make
// each of them fail in turn. Errors carry the path and the system's reason; nothing here decides what to do
// about one.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/huge_buffer.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

// A file being written from its start. Closing without an Error comes last; a file dropped unclosed is just
// closed.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual Result<void> write(std::span<const std::byte> content) = 0;
  virtual Result<void> sync() = 0;
  virtual Result<void> close() = 0;
};

class FileSystem {
 public:
  using Path = std::filesystem::path;
  virtual ~FileSystem() = default;
  virtual Result<void> make_directories(const Path& path) = 0;
  virtual Result<std::unique_ptr<OutputFile>> create(const Path& path) = 0;
  virtual Result<void> sync_directory(const Path& path) = 0;
  virtual Result<void> rename(const Path& from, const Path& to) = 0;
  virtual Result<void> remove_all(const Path& path) = 0;
  /// Names in a folder, unordered; empty if the folder does not exist.
  virtual Result<std::vector<std::string>> list(const Path& path) = 0;
  virtual bool exists(const Path& path) = 0;
  /// Reads a whole file; refuses one larger than `most` bytes.
  virtual Result<HugeBuffer> read(const Path& path, std::uint64_t most) = 0;
  virtual Result<std::uint64_t> size(const Path& path) = 0;
};

/// The system's own. Large aligned buffers are written past the page cache where the file system allows it:
/// a checkpoint is read once in a while and would otherwise cost its size in fresh cache pages each time.
std::unique_ptr<FileSystem> real_file_system();

}  // namespace dlrun::runtime
