// The members of a tar file: POSIX ustar and pax, and GNU's long names. Every header's checksum is verified,
// and a file that ends before its two blocks of zeros is an Error: it was cut short.
#pragma once

#include <functional>

#include "runtime/base/mapped_file.hpp"

namespace dlrun::runtime {

struct TarMember {
  std::string name;
  std::uint64_t header = 0, offset = 0, size = 0;  // where the header and the content are
};

/// Calls `member` for each regular file, in order. The first Error ends it.
Result<void> read_tar(const MappedFile& file, const std::function<Result<void>(const TarMember&)>& member);

/// A member as ustar has it, padded; names of more than 100 bytes get a pax header.
std::string tar_member(const std::string& name, std::string_view content);
/// What ends a tar file.
std::string tar_end();

}  // namespace dlrun::runtime
