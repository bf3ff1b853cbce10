#include "src/process/elf_needed.hpp"

#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include <elf.h>
#include <fcntl.h>
#include <link.h>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun {

namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Entry = ElfW(Dyn);

// Far above what linkers make, far below what would hurt.
constexpr std::size_t most_segments = 1024;
constexpr std::size_t largest_dynamic = std::size_t{1} << 20;
constexpr std::size_t largest_strings = std::size_t{64} << 20;

class ElfFile {
 public:
  static Result<ElfFile> open(const std::filesystem::path& path) {
    ElfFile file;
    file.path_ = path;
    file.fd_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.fd_)
      return fail(Error{.kind = ErrorKind::input, .what = system_reason(errno), .where = path.string()});
    return file;
  }

  // `bytes` of the file from `offset` on; all of them or an Error.
  Result<std::string> read(std::uint64_t offset, std::size_t bytes) const {
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

  template <class T>
  Result<std::vector<T>> read_array(std::uint64_t offset, std::size_t count) const {
    const std::string bytes = TRY(read(offset, count * sizeof(T)));
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  tl::unexpected<Error> malformed(std::string_view what) const {
    return fail(Error{
        .kind = ErrorKind::input, .what = fmt::format("the ELF file {}", what), .where = path_.string()});
  }

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
};

Result<std::vector<Segment>> read_segments(const ElfFile& file) {
  const std::string bytes = TRY(file.read(0, sizeof(Header)));
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool native =
      header.e_ident[EI_CLASS] == (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) &&
      header.e_ident[EI_DATA] == (std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return file.malformed("has no ELF header");
  if (!native) return file.malformed("is of another machine");
  if (header.e_phentsize != sizeof(Segment) || header.e_phnum > most_segments)
    return file.malformed("has program headers of an unknown form");
  return file.read_array<Segment>(header.e_phoff, header.e_phnum);
}

// Where in the file a memory address lies.
std::optional<std::uint64_t> offset_of(std::span<const Segment> segments, std::uint64_t address) {
  for (const Segment& segment : segments)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz)
      return segment.p_offset + (address - segment.p_vaddr);
  return std::nullopt;
}

std::uint64_t value_of(std::span<const Entry> dynamic, ElfW(Sxword) tag) {
  for (const Entry& entry : dynamic)
    if (entry.d_tag == tag) return entry.d_un.d_val;
  return 0;
}

Result<std::vector<Entry>> read_dynamic(const ElfFile& file, std::span<const Segment> segments) {
  for (const Segment& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    if (segment.p_filesz > largest_dynamic) return file.malformed("has an oversized dynamic section");
    auto entries = TRY(file.read_array<Entry>(segment.p_offset, segment.p_filesz / sizeof(Entry)));
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (entries[i].d_tag == DT_NULL) entries.resize(i);
    return entries;
  }
  return std::vector<Entry>{};  // statically linked
}

Result<std::string> read_strings(const ElfFile& file, std::span<const Segment> segments,
                                 std::span<const Entry> dynamic) {
  const std::uint64_t size = value_of(dynamic, DT_STRSZ);
  const auto offset = offset_of(segments, value_of(dynamic, DT_STRTAB));
  if (!offset || size > largest_strings) return file.malformed("has no string table where it says");
  return file.read(*offset, size);
}

void add_search_paths(ElfNeeded& needed, const std::string& list, const std::filesystem::path& file) {
  const std::string origin = file.parent_path().string();
  for (std::string path : split(list, ':')) {
    for (const std::string_view name : {"$ORIGIN", "${ORIGIN}"})
      if (const std::size_t at = path.find(name); at != std::string::npos)
        path.replace(at, name.size(), origin);
    if (!path.empty()) needed.search_paths.push_back(path);
  }
}

}  // namespace

Result<ElfNeeded> read_elf_needed(const std::filesystem::path& path) {
  const ElfFile file = TRY(ElfFile::open(path));
  const auto segments = TRY(read_segments(file));
  const auto dynamic = TRY(read_dynamic(file, segments));
  ElfNeeded needed;
  if (dynamic.empty()) return needed;
  const std::string strings = TRY(read_strings(file, segments, dynamic));
  for (const Entry& entry : dynamic) {
    const bool library = entry.d_tag == DT_NEEDED;
    if (!library && entry.d_tag != DT_RPATH && entry.d_tag != DT_RUNPATH) continue;
    if (entry.d_un.d_val >= strings.size()) return file.malformed("names a library outside its string table");
    const std::string text = strings.c_str() + entry.d_un.d_val;  // ends at a NUL or at the table's end
    if (library) {
      needed.libraries.push_back(text);
    } else {
      add_search_paths(needed, text, path);
    }
  }
  return needed;
}

}  // namespace dlrun
