#include "src/agent/function_on_stack.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/uio.h>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/process/elf_symbol.hpp"

namespace dlrun {
namespace {

struct Range {
  std::uint64_t begin = 0, end = 0;
};

struct Mapping {
  Range at;
  std::uint64_t offset = 0;
  bool code = false;
  std::string file;
};

// "7f00-7f10 r-xp 00002000 08:01 42   /usr/lib/libmpich.so.12"
std::optional<Mapping> parse_mapping(const std::string& line) {
  char* end = nullptr;
  Mapping out;
  out.at.begin = std::strtoull(line.c_str(), &end, 16);
  if (*end != '-') return std::nullopt;
  out.at.end = std::strtoull(end + 1, &end, 16);
  if (end[0] != ' ' || std::strlen(end) < 6) return std::nullopt;
  out.code = end[3] == 'x';
  out.offset = std::strtoull(end + 6, &end, 16);
  const std::size_t path = line.find_first_of("/[", static_cast<std::size_t>(end - line.c_str()));
  if (path != std::string::npos) out.file = line.substr(path);
  return out;
}

std::vector<Mapping> mappings_of(pid_t pid) {
  std::vector<Mapping> out;
  const auto text = read_file(fmt::format("/proc/{}/maps", pid));
  if (!text) return out;
  for (const std::string& line : split(*text, '\n'))
    if (auto mapping = parse_mapping(line)) out.push_back(std::move(*mapping));
  return out;
}

std::optional<Range> code_of(const std::vector<Mapping>& mappings, const std::string& program,
                             std::string_view library, std::string_view function) {
  std::string last;
  std::optional<FileRange> found;
  for (const Mapping& mapping : mappings) {
    if (!mapping.code || !mapping.file.starts_with('/')) continue;
    const std::string name = std::filesystem::path(mapping.file).filename().string();
    if (mapping.file != program && !name.starts_with(library)) continue;
    if (std::exchange(last, mapping.file) != mapping.file)
      found = find_elf_symbol(mapping.file, function).value_or(std::nullopt);
    if (!found || found->offset < mapping.offset) continue;
    const std::uint64_t begin = mapping.at.begin + (found->offset - mapping.offset);
    if (begin < mapping.at.end) return Range{begin, begin + found->size};
  }
  return std::nullopt;
}

// The outermost frames are at the high end, and those are what we look for.
std::vector<std::uint64_t> stack_words(pid_t pid, const Range& stack) {
  constexpr std::uint64_t most = std::uint64_t{4} << 20;
  const std::uint64_t begin = std::max(stack.begin, stack.end - std::min(stack.end, most));
  std::vector<std::uint64_t> words((stack.end - begin) / sizeof(std::uint64_t));
  iovec ours{words.data(), words.size() * sizeof(std::uint64_t)};
  iovec theirs{reinterpret_cast<void*>(begin), ours.iov_len};  // NOLINT: an address of another process
  const ssize_t got = ::process_vm_readv(pid, &ours, 1, &theirs, 1, 0);
  words.resize(got < 0 ? 0 : static_cast<std::size_t>(got) / sizeof(std::uint64_t));
  return words;
}

}  // namespace

bool is_inside_function(pid_t pid, std::string_view library, std::string_view function) {
  std::error_code problem;
  const std::string program =
      std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), problem).string();
  const std::vector<Mapping> mappings = mappings_of(pid);
  const auto code = code_of(mappings, program, library, function);
  if (!code) return false;
  const auto stack = std::find_if(mappings.begin(), mappings.end(),
                                  [](const Mapping& mapping) { return mapping.file == "[stack]"; });
  if (stack == mappings.end()) return false;
  const auto words = stack_words(pid, stack->at);
  // The function's own address is what pointers to it hold; a return address lies behind its first call.
  return std::any_of(words.begin(), words.end(),
                     [&](std::uint64_t word) { return word > code->begin && word < code->end; });
}

}  // namespace dlrun
