// ElfFile: the parts of an ELF file that we read ourselves: header, segments, sections. Every length comes
// from outside: what does not fit is an Error, never a crash or a huge allocation. Runs and loads nothing.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <link.h>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::elf {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Section = ElfW(Shdr);

class ElfFile {
 public:
  static Result<ElfFile> open(const std::filesystem::path& path);

  // `bytes` of the file from `offset` on; all of them or an Error.
  Result<std::string> read(std::uint64_t offset, std::size_t bytes) const;

  template <class T>
  Result<std::vector<T>> read_array(std::uint64_t offset, std::size_t count) const {
    const std::string bytes = TRY(read(offset, count * sizeof(T)));
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  tl::unexpected<Error> malformed(std::string_view what) const;

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
};

// An Error of kind input where the file is no ELF of this machine's word size and byte order.
Result<std::vector<Segment>> read_segments(const ElfFile& file);
Result<std::vector<Section>> read_sections(const ElfFile& file);

// Where in the file a memory address lies.
std::optional<std::uint64_t> offset_of(std::span<const Segment> segments, std::uint64_t address);

}  // namespace dlrun::elf
