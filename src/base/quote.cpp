#include "src/base/quote.hpp"

#include <algorithm>
#include <cctype>

namespace dlrun {
namespace {

bool is_bare(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_quote(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_bare)) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

std::string shell_join(std::span<const std::string> words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    out += shell_quote(word);
  }
  return out;
}

std::string shell_line(std::span<const std::string> words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    if (word.find_first_of("\n\r") == std::string::npos) {
      out += shell_quote(word);
      continue;
    }
    out += "$'";
    for (const char c : word)
      out += c == '\n'                ? std::string("\\n")
             : c == '\r'              ? std::string("\\r")
             : c == '\\' || c == '\'' ? std::string("\\") + c
                                      : std::string(1, c);
    out += '\'';
  }
  return out;
}

bool is_shell_identifier(std::string_view name) {
  const auto ok = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), ok);
}

}  // namespace dlrun
