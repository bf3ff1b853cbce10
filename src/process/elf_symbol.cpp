#include "src/process/elf_symbol.hpp"

#include <elf.h>

#include "src/process/elf_file.hpp"

namespace dlrun {
namespace {

using elf::ElfFile;
using elf::Section;
using Symbol = ElfW(Sym);

constexpr std::size_t largest_table = std::size_t{256} << 20;

struct SymbolTable {
  std::vector<Symbol> symbols;
  std::string names;
};

Result<std::optional<SymbolTable>> read_table(const ElfFile& file, const std::vector<Section>& sections,
                                              ElfW(Word) type) {
  for (const Section& section : sections) {
    if (section.sh_type != type) continue;
    if (section.sh_link >= sections.size()) return file.malformed("has a symbol table without names");
    const Section& names = sections[section.sh_link];
    if (section.sh_size > largest_table || names.sh_size > largest_table)
      return file.malformed("has an oversized symbol table");
    return SymbolTable{TRY(file.read_array<Symbol>(section.sh_offset, section.sh_size / sizeof(Symbol))),
                       TRY(file.read(names.sh_offset, names.sh_size))};
  }
  return std::nullopt;
}

bool is_function(const Symbol& symbol) {
  return symbol.st_shndx != SHN_UNDEF && symbol.st_size > 0 && (symbol.st_info & 0xf) == STT_FUNC;
}

}  // namespace

Result<std::optional<FileRange>> find_elf_symbol(const std::filesystem::path& path, std::string_view name) {
  const ElfFile file = TRY(ElfFile::open(path));
  const auto segments = TRY(elf::read_segments(file));
  const auto sections = TRY(elf::read_sections(file));
  // A library's functions are in the dynamic table, those of a static program in the other one.
  for (const ElfW(Word) type : {SHT_DYNSYM, SHT_SYMTAB}) {
    const auto table = TRY(read_table(file, sections, type));
    if (!table) continue;
    for (const Symbol& symbol : table->symbols) {
      if (!is_function(symbol) || symbol.st_name >= table->names.size()) continue;
      if (name != table->names.c_str() + symbol.st_name) continue;
      if (const auto offset = elf::offset_of(segments, symbol.st_value))
        return FileRange{*offset, symbol.st_size};
    }
  }
  return std::nullopt;
}

}  // namespace dlrun
