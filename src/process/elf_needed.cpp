#include "src/process/elf_needed.hpp"

#include <span>

#include <elf.h>

#include "src/base/strings.hpp"
#include "src/process/elf_file.hpp"

namespace dlrun {

namespace {

using elf::ElfFile;
using elf::offset_of;
using elf::Segment;
using Entry = ElfW(Dyn);

// Far above what linkers make, far below what would hurt.
constexpr std::size_t largest_dynamic = std::size_t{1} << 20;
constexpr std::size_t largest_strings = std::size_t{64} << 20;

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
  const auto segments = TRY(elf::read_segments(file));
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
