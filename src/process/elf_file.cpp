#include "src/process/elf_file.hpp"

#include <bit>
#include <cerrno>

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "src/base/file.hpp"

namespace dlrun::elf {
namespace {

// Far above what linkers make, far below what would hurt.
constexpr std::size_t kMaxSegments = 1024;

Result<Header> read_header(const ElfFile& file) {
  const std::string bytes = TRY(file.read(0, sizeof(Header)));
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool native =
      header.e_ident[EI_CLASS] == (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) &&
      header.e_ident[EI_DATA] == (std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return file.malformed("has no ELF header");
  if (!native) return file.malformed("is of another machine");
  return header;
}

}  // namespace

Result<ElfFile> ElfFile::open(const std::filesystem::path& path) {
  ElfFile file;
  file.path_ = path;
  file.fd_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.fd_)
    return fail(Error{.kind = ErrorKind::input, .what = system_reason(errno), .where = path.string()});
  return file;
}

Result<std::string> ElfFile::read(std::uint64_t offset, std::size_t bytes) const {
  std::string data(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(fd_.get(), data.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return malformed("is cut short");
    done += static_cast<std::size_t>(got);
  }
  return data;
}

tl::unexpected<Error> ElfFile::malformed(std::string_view what) const {
  return fail(
      Error{.kind = ErrorKind::input, .what = fmt::format("the ELF file {}", what), .where = path_.string()});
}

Result<std::vector<Segment>> read_segments(const ElfFile& file) {
  const Header header = TRY(read_header(file));
  if (header.e_phentsize != sizeof(Segment) || header.e_phnum > kMaxSegments)
    return file.malformed("has program headers of an unknown form");
  return file.read_array<Segment>(header.e_phoff, header.e_phnum);
}

Result<std::vector<Section>> read_sections(const ElfFile& file) {
  const Header header = TRY(read_header(file));
  if (header.e_shnum != 0 && header.e_shentsize != sizeof(Section))
    return file.malformed("has section headers of an unknown form");
  return file.read_array<Section>(header.e_shoff, header.e_shnum);  // 65,535 at most
}

std::optional<std::uint64_t> offset_of(std::span<const Segment> segments, std::uint64_t address) {
  for (const Segment& segment : segments)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz)
      return segment.p_offset + (address - segment.p_vaddr);
  return std::nullopt;
}

}  // namespace dlrun::elf
