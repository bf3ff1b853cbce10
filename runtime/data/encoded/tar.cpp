// See tar.hpp.
#include "runtime/data/encoded/tar.hpp"

#include <algorithm>
#include <optional>

#include "runtime/data/encoded/file_set.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kBlock = 512;

std::string_view field(std::string_view header, std::size_t at, std::size_t size) {
  const std::string_view all = header.substr(at, size);
  return all.substr(0, std::min(all.find('\0'), size));
}

// Octal digits, or GNU's binary form for large files.
std::optional<std::uint64_t> number(std::string_view header, std::size_t at, std::size_t size) {
  std::uint64_t out = 0;
  const std::string_view raw = header.substr(at, size);
  if ((static_cast<unsigned char>(raw[0]) & 0x80) != 0) {
    if (static_cast<unsigned char>(raw[0]) != 0x80) return std::nullopt;
    for (const char c : raw.substr(size - 8)) out = out << 8 | static_cast<unsigned char>(c);
    return out;
  }
  std::string_view digits = field(header, at, size);
  while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
  while (!digits.empty() && digits.back() == ' ') digits.remove_suffix(1);
  for (const char c : digits) {
    if (c < '0' || c > '7' || out >> 60 != 0) return std::nullopt;
    out = out << 3 | static_cast<std::uint64_t>(c - '0');
  }
  return out;
}

std::uint64_t sum_of(std::string_view header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i)
    sum += i >= 148 && i < 156 ? std::uint64_t{' '} : static_cast<unsigned char>(header[i]);
  return sum;
}

std::string name_of(std::string_view header) {
  const std::string name(field(header, 0, 100)), prefix(field(header, 345, 155));
  const bool ustar = header.substr(257, 6) == std::string_view("ustar\0", 6);
  return ustar && !prefix.empty() ? prefix + "/" + name : name;
}

// The value of a key in a pax header, whose lines are "length key=value\n".
std::optional<std::string> pax_value(std::string_view text, std::string_view key) {
  std::optional<std::string> out;
  while (!text.empty()) {
    std::size_t length = 0, digits = 0;
    for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9' && digits < 9; ++digits)
      length = length * 10 + static_cast<std::size_t>(text[digits] - '0');
    if (length <= digits + 1 || length > text.size()) return out;
    const std::string_view line = text.substr(digits + 1, length - digits - 2);
    if (line.starts_with(key) && line.substr(key.size()).starts_with('='))
      out = std::string(line.substr(key.size() + 1));
    text.remove_prefix(length);
  }
  return out;
}

class TarReader {
 public:
  TarReader(const MappedFile& file, const std::function<Result<void>(const TarMember&)>& member)
      : file_(file),
        all_(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()),
        member_(member) {}

  Result<void> read() {
    for (;;) {
      if (all_.size() - at_ < kBlock)
        return bad(fmt::format("the tar file ends here, without its last blocks: it was cut short"));
      const std::string_view header = all_.substr(at_, kBlock);
      if (header.find_first_not_of('\0') == std::string_view::npos) return {};
      TRY(read_member(header));
    }
  }

 private:
  tl::unexpected<Error> bad(std::string what) const {
    return bad_input(place_in_file(file_.name(), at_), std::move(what));
  }

  Result<void> read_member(std::string_view header) {
    const auto sum = number(header, 148, 8), size = number(header, 124, 12);
    if (!sum || *sum != sum_of(header)) return bad("no tar header: its checksum differs");
    if (!size) return bad("the size in the tar header is not a number");
    const std::uint64_t start = at_ + kBlock;
    if (*size > all_.size() - start)
      return bad(fmt::format("the tar file ends within '{}', which has {} bytes: it was cut short",
                             name_of(header), *size));
    TRY(take(header, start, *size));
    const std::uint64_t padded = (*size + kBlock - 1) / kBlock * kBlock;
    at_ = std::min<std::uint64_t>(all_.size(), start + padded);
    return {};
  }

  Result<void> take(std::string_view header, std::uint64_t start, std::uint64_t size) {
    const char type = header[156];
    const std::string_view content = all_.substr(start, size);
    if (type == 'L') long_name_ = std::string(content.substr(0, content.find('\0')));
    if (type == 'x') long_name_ = pax_value(content, "path");
    if (type == 'x' && pax_value(content, "size")) return bad("members of 8 GiB or more are not supported");
    if (type != '0' && type != '\0') return {};
    const TarMember member{
        .name = long_name_.value_or(name_of(header)), .header = at_, .offset = start, .size = size};
    long_name_.reset();
    return member_(member);
  }

  const MappedFile& file_;
  std::string_view all_;
  const std::function<Result<void>(const TarMember&)>& member_;
  std::uint64_t at_ = 0;
  std::optional<std::string> long_name_;
};

std::string header_of(const std::string& name, std::size_t size, char type) {
  std::string out(kBlock, '\0');
  const auto put = [&](std::size_t at, const std::string& text) { out.replace(at, text.size(), text); };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", size));
  put(136, "00000000000");
  out[156] = type;
  put(257, "ustar");
  put(263, "00");
  put(148, fmt::format("{:06o}", sum_of(out)));
  out[155] = ' ';
  return out;
}

std::string padded(std::string header, std::string_view content) {
  header += content;
  header.resize((header.size() + kBlock - 1) / kBlock * kBlock, '\0');
  return header;
}

}  // namespace

Result<void> read_tar(const MappedFile& file, const std::function<Result<void>(const TarMember&)>& member) {
  return TarReader(file, member).read();
}

std::string tar_member(const std::string& name, std::string_view content) {
  if (name.size() <= 100) return padded(header_of(name, content.size(), '0'), content);
  const std::size_t rest = name.size() + 7;  // " path=" and the end of the line
  std::size_t length = rest + fmt::format("{}", rest).size();
  length = rest + fmt::format("{}", length).size();
  const std::string line = fmt::format("{} path={}\n", length, name);
  return padded(header_of("pax", line.size(), 'x'), line) +
         padded(header_of(name, content.size(), '0'), content);
}

std::string tar_end() {
  return std::string(2 * kBlock, '\0');
}

}  // namespace dlrun::runtime
