#include "src/process/elf_build_id.hpp"

#include <algorithm>
#include <cstring>

#include <elf.h>

#include "src/process/elf_file.hpp"

namespace dlrun {
namespace {

constexpr std::uint64_t kMaxNotes = 1 << 16;  // bytes of a segment
constexpr std::size_t kAlignment = 4;

std::size_t padded(std::size_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

std::string hexadecimal(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return out;
}

// Notes are {name size, content size, type}, name, content, each padded.
std::string id_in(std::string_view notes) {
  using Note = ElfW(Nhdr);
  constexpr std::string_view gnu("GNU\0", 4);
  while (notes.size() >= sizeof(Note)) {
    Note note;
    std::memcpy(&note, notes.data(), sizeof note);
    notes.remove_prefix(sizeof note);
    const std::size_t name = padded(note.n_namesz), content = padded(note.n_descsz);
    if (name > notes.size() || content > notes.size() - name) return {};
    if (note.n_type == NT_GNU_BUILD_ID && notes.substr(0, note.n_namesz) == gnu)
      return hexadecimal(notes.substr(name, note.n_descsz));
    notes.remove_prefix(name + content);
  }
  return {};
}

}  // namespace

Result<std::string> build_id(const std::filesystem::path& file) {
  const elf::ElfFile opened = TRY(elf::ElfFile::open(file));
  for (const elf::Segment& segment : TRY(elf::read_segments(opened))) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNotes) continue;
    const std::string notes = TRY(opened.read(segment.p_offset, static_cast<std::size_t>(segment.p_filesz)));
    if (std::string id = id_in(notes); !id.empty()) return id;
  }
  return std::string();
}

}  // namespace dlrun
