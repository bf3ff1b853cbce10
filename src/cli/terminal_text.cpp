#include "src/cli/terminal_text.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace dlrun::cli {
namespace {

struct Character {
  char32_t code;
  std::size_t bytes;  // 0: no UTF-8
};

// The character at the beginning of `text`. Overlong forms and surrogates are no UTF-8.
Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {lead, 0};
  char32_t code = lead & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {lead, 0};
    code = (code << 6) | (next & 0x3f);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool sound = code >= smallest[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return sound ? Character{code, bytes} : Character{lead, 0};
}

// The length of a colour sequence, ESC [ numbers m, at the beginning of `text`; 0: there is none.
std::size_t color_length(std::string_view text) {
  if (!text.starts_with("\033[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;:", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

int width_of(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) { return code >= first && code <= last; };
  if (within(0x300, 0x36f) || within(0x200b, 0x200f) || within(0xfe00, 0xfe0f)) return 0;
  return within(0x1100, 0x115f) || within(0x2e80, 0xa4cf) || within(0xac00, 0xd7a3) ||
                 within(0xf900, 0xfaff) || within(0xfe30, 0xfe6f) || within(0xff00, 0xff60) ||
                 within(0x1f300, 0x1faff) || within(0x20000, 0x3fffd)
             ? 2
             : 1;
}

std::string shown(char32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  return fmt::format("\\x{:02x}", static_cast<unsigned>(code));
}

}  // namespace

std::string plain_text(std::string_view text, Newlines newlines) {
  std::string out;
  while (!text.empty()) {
    if (const std::size_t color = color_length(text); color > 0) {
      text.remove_prefix(color);
      continue;
    }
    const Character next = first_character(text);
    const bool kept = next.code == '\t' || (next.code == '\n' && newlines == Newlines::kept);
    // The last two: what turns the direction of writing.
    const bool control = next.code < 0x20 || (next.code >= 0x7f && next.code < 0xa0) ||
                         (next.code >= 0x202a && next.code <= 0x202e) ||
                         (next.code >= 0x2066 && next.code <= 0x2069);
    if (next.bytes == 0 || (control && !kept))
      out += shown(next.code);
    else
      out += text.substr(0, next.bytes);
    text.remove_prefix(std::max<std::size_t>(next.bytes, 1));
  }
  return out;
}

std::string with_colors_ended(std::string_view line) {
  if (line.ends_with("\033[0m") || line.ends_with("\033[m")) return std::string(line);
  for (std::size_t at = 0; (at = line.find('\033', at)) != std::string_view::npos; ++at)
    if (color_length(line.substr(at)) > 0) return std::string(line) + "\033[0m";
  return std::string(line);
}

std::string fitted(std::string_view text, int columns) {
  std::size_t end = 0;
  while (end < text.size()) {
    const Character next = first_character(text.substr(end));
    columns -= width_of(next.code);
    if (columns < 0) break;
    end += std::max<std::size_t>(next.bytes, 1);
  }
  return std::string(text.substr(0, end));
}

int columns_of(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const Character next = first_character(text);
    columns += width_of(next.code);
    text.remove_prefix(std::max<std::size_t>(next.bytes, 1));
  }
  return columns;
}

}  // namespace dlrun::cli
