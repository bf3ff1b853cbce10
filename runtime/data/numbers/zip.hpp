// The directory of a ZIP file, as numpy.savez writes it, beyond 4 GB too. Nothing is unpacked here. What it
// refuses: encryption, several disks, methods other than stored and deflated.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun::runtime {

struct ZipMember {
  enum class Method { stored, deflated };
  std::string name;
  Method method = Method::stored;
  std::uint32_t crc = 0;     // of the unpacked bytes
  std::uint64_t offset = 0;  // of its bytes in the file
  std::uint64_t packed = 0;  // bytes in the file
  std::uint64_t size = 0;    // unpacked
};

/// A file that is read by position.
struct ReadableFile {
  std::string name;
  std::uint64_t size = 0;
  std::function<Result<void>(std::uint64_t offset, std::span<std::uint8_t> room)> read;
};

/// The members, in the file's order. An Error names the file and the offset.
Result<std::vector<ZipMember>> read_zip_directory(const ReadableFile& file);

/// The bytes of a member, unpacked, its checksum verified.
Result<std::vector<std::uint8_t>> read_zip_member(const ReadableFile& file, const ZipMember& member);

}  // namespace dlrun::runtime
