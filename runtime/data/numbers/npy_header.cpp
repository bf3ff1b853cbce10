// See npy_header.hpp.
#include "runtime/data/numbers/npy_header.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "runtime/data/numbers/number_array.hpp"
#include "runtime/data/numbers/shown_text.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = 1 << 16, kMaxNpyAxes = 32;

// The dictionary, from left to right.
class HeaderText {
 public:
  HeaderText(std::string_view text, std::size_t offset, const std::string& name)
      : text_(text), offset_(offset), name_(name) {}

  tl::unexpected<Error> refuse(const std::string& what, std::string hint = {}) const {
    return bad_input(fmt::format("{}: offset {}", name_, offset_ + at_), what, std::move(hint));
  }
  bool take(char wanted) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  Result<void> expect(char wanted) {
    if (take(wanted)) return {};
    return refuse(fmt::format("the header has no '{}' here", wanted));
  }
  Result<std::string> quoted() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const std::size_t end =
        quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos) return refuse("the header has no text in quotes here");
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }
  bool word(std::string_view wanted) {
    skip_blanks();
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }
  Result<std::uint64_t> extent() {
    skip_blanks();
    std::uint64_t out = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      out = out * 10 + static_cast<std::uint64_t>(text_[at_] - '0');
      if (out > kMaxNumbers) return refuse("an extent is larger than any file");
    }
    if (at_ == begin) return refuse("the header has no extent here");
    return out;
  }
  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  std::string_view text_;
  std::size_t offset_, at_ = 0;
  const std::string& name_;
};

Result<NumberType> read_type(HeaderText& reader) {
  if (reader.take('['))
    return reader.refuse("the array has records, not numbers", "write each field as an array of its own");
  const std::string text = TRY(reader.quoted());
  if (text.size() >= 3 && text.size() <= 4 && text[0] == '>' &&
      number_type(text[1], static_cast<std::size_t>(text[2] - '0')))
    return reader.refuse(fmt::format("the numbers are big-endian ({})", text),
                         "write them again: array.astype(array.dtype.newbyteorder('<'))");
  if (text.size() == 3 && (text[0] == '<' || text[0] == '|') && text[2] >= '1' && text[2] <= '8')
    if (const auto type = number_type(text[1], static_cast<std::size_t>(text[2] - '0'))) return *type;
  return reader.refuse(fmt::format("the numbers are of type {}", shown(text)),
                       "write float16, float32, float64 or whole numbers: array.astype('float32')");
}

Result<std::vector<std::uint64_t>> read_shape(HeaderText& reader) {
  std::vector<std::uint64_t> out;
  TRY(reader.expect('('));
  while (!reader.take(')')) {
    if (out.size() == kMaxNpyAxes) return reader.refuse("the array has more than 32 axes");
    out.push_back(TRY(reader.extent()));
    if (reader.take(',')) continue;
    TRY(reader.expect(')'));
    break;
  }
  return out;
}

Result<void> read_key(HeaderText& reader, std::optional<NumberType>& type,
                      std::optional<std::vector<std::uint64_t>>& shape, bool& ordered) {
  const std::string key = TRY(reader.quoted());
  TRY(reader.expect(':'));
  if (key == "descr" && !type) {
    type = TRY(read_type(reader));
  } else if (key == "shape" && !shape) {
    shape = TRY(read_shape(reader));
  } else if (key == "fortran_order" && !ordered) {
    if (reader.word("True"))
      return reader.refuse("the numbers are in Fortran's order",
                           "write them again: numpy.save(file, numpy.ascontiguousarray(array))");
    if (!reader.word("False")) return reader.refuse("fortran_order is neither True nor False");
    ordered = true;
  } else {
    return reader.refuse(fmt::format("the header's key {} is unknown, or there twice", shown(key)));
  }
  return {};
}

}  // namespace

Result<std::size_t> npy_header_length(std::span<const std::uint8_t> prefix, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  if (text.size() < kNpyPrefix || !text.starts_with(kMagic))
    return bad_input(name, "is not a NumPy array: its first bytes are not \\x93NUMPY",
                     "write it with numpy.save");
  const std::uint8_t version = prefix[6];
  if (version < 1 || version > 3)
    return bad_input(name + ": offset 6", fmt::format("version {} of the format is not known", version));
  std::size_t length = prefix[8] + (std::size_t{prefix[9]} << 8);
  if (version >= 2) length += (std::size_t{prefix[10]} << 16) + (std::size_t{prefix[11]} << 24);
  length += version == 1 ? 10 : 12;
  if (length > kMaxHeader || length < kNpyPrefix)
    return bad_input(name + ": offset 8",
                     fmt::format("the header length is {} bytes, which is not possible", length));
  return length;
}

Result<NpyHeader> parse_npy_header(std::span<const std::uint8_t> header, const std::string& name) {
  const std::size_t length = TRY(npy_header_length(header.first(std::min(header.size(), kNpyPrefix)), name));
  if (length > header.size())
    return bad_input(name, fmt::format("the header has {} bytes, and the file {}", length, header.size()),
                     "it was cut short: copy it again");
  const std::size_t begin = header[6] == 1 ? 10 : 12;
  const std::string_view text(reinterpret_cast<const char*>(header.data()) + begin, length - begin);
  HeaderText reader(text, begin, name);
  std::optional<NumberType> type;
  std::optional<std::vector<std::uint64_t>> shape;
  bool ordered = false;
  TRY(reader.expect('{'));
  while (!reader.take('}')) {
    TRY(read_key(reader, type, shape, ordered));
    if (reader.take(',')) continue;
    TRY(reader.expect('}'));
    break;
  }
  if (!reader.at_end()) return reader.refuse("the header goes on after its dictionary");
  if (!type || !shape || !ordered)
    return reader.refuse("the header lacks one of descr, fortran_order and shape");
  NpyHeader out{.type = *type, .shape = *std::move(shape), .numbers = 1, .length = length};
  for (const std::uint64_t extent : out.shape) {
    if (extent == 0) return reader.refuse("the array is empty: an extent is 0");
    if (extent > kMaxNumbers / out.numbers) return reader.refuse("the shape is larger than any file");
    out.numbers *= extent;
  }
  return out;
}

}  // namespace dlrun::runtime
