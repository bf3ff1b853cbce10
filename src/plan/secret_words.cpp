#include "src/plan/secret_words.hpp"

#include <algorithm>
#include <cctype>

#include "src/plan/secrets.hpp"

namespace dlrun::plan {
namespace {

using Patterns = std::vector<std::string>;
constexpr auto kNone = std::string_view::npos;

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == kNone;
}

// A flag's name or a variable's, as patterns know it.
std::string plain_name(std::string_view name) {
  std::string out(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  for (char& c : out)
    c = c == '-' || c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

bool hides(std::string_view name, std::string_view value, const Patterns& further) {
  const std::string plain = plain_name(name);
  if (plain.empty() || value.empty() || !is_secret(plain, further)) return false;
  const bool of_text = plain.find("TOKENIZ") != kNone || (plain.find("TOKENS") != kNone && is_number(value));
  return !of_text;
}

// Where the value of NAME=VALUE or --name=VALUE begins; kNone where the word is neither.
std::size_t value_of(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == kNone || equals == 0) return kNone;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), is_name_character)
             ? equals + 1
             : kNone;
}

// --name, whose value is the next word; not --name=VALUE.
bool is_flag(std::string_view word) {
  return word.size() > 2 && word[0] == '-' && std::all_of(word.begin(), word.end(), is_name_character);
}

// $NAME, ${NAME}, $(command), `command`, and these in double quotes.
bool is_reference(std::string_view value) {
  if (value.starts_with('"')) value.remove_prefix(1);
  if (value.starts_with('`') || value.starts_with("$(")) return true;
  if (!value.starts_with('$')) return false;
  value.remove_prefix(value.starts_with("${") ? 2 : 1);
  const auto end = std::find_if_not(value.begin(), value.end(),
                                    [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  return end != value.begin() && (end == value.end() || *end == '}' || *end == '"');
}

// The words of a shell line with their quotes on, and what stands between them.
struct Piece {
  std::string_view text;
  bool word;
};

bool ends_word(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0 || std::string_view(";&|()<>").find(c) != kNone;
}

// Behind the quoted part that begins at `at`; the line's end where the quote is never closed.
std::size_t behind_quotes(std::string_view line, std::size_t at) {
  const char quote = line[at];
  for (std::size_t i = at + 1; i < line.size(); ++i) {
    if (line[i] == '\\' && quote == '"') {
      ++i;
    } else if (line[i] == quote) {
      return i + 1;
    }
  }
  return line.size();
}

// Behind $(...), which may hold others; quotes in it are not looked at.
std::size_t behind_command(std::string_view line, std::size_t at) {
  int depth = 0;
  for (++at; at < line.size(); ++at) {
    if (line[at] == '(') ++depth;
    if (line[at] == ')' && --depth == 0) return at + 1;
  }
  return at;
}

std::size_t end_of_word(std::string_view line, std::size_t at) {
  while (at < line.size() && !ends_word(line[at])) {
    if (line[at] == '\'' || line[at] == '"' || line[at] == '`')
      at = behind_quotes(line, at);
    else if (line.substr(at).starts_with("$("))
      at = behind_command(line, at);
    else
      at += line[at] == '\\' ? 2 : 1;
  }
  return std::min(at, line.size());
}

std::vector<Piece> pieces_of(std::string_view line) {
  std::vector<Piece> out;
  for (std::size_t at = 0; at < line.size();) {
    std::size_t end = at;
    while (end < line.size() && ends_word(line[end])) ++end;
    if (end > at) out.push_back({line.substr(at, end - at), false});
    at = end;
    end = end_of_word(line, at);
    if (end > at) out.push_back({line.substr(at, end - at), true});
    at = end;
  }
  return out;
}

std::string hidden_in_line(std::string_view line, const Patterns& further);

// A word of a shell line; one in quotes may be a line of its own, as behind bash -c.
std::string hidden_in_word(std::string_view word, const Patterns& further) {
  const std::size_t value = value_of(word);
  if (value != kNone && hides(word.substr(0, value - 1), word.substr(value), further) &&
      !is_reference(word.substr(value)))
    return std::string(word.substr(0, value)) + std::string(kHidden);
  const bool quoted = word.size() > 2 && (word[0] == '\'' || word[0] == '"') && word.back() == word[0];
  if (!quoted) return std::string(word);
  return word[0] + hidden_in_line(word.substr(1, word.size() - 2), further) + word[0];
}

std::string hidden_in_line(std::string_view line, const Patterns& further) {
  std::string out;
  std::string_view flag;
  for (const Piece& piece : pieces_of(line)) {
    if (!piece.word) {
      if (piece.text.find_first_not_of(" \t") != kNone) flag = {};
      out += piece.text;
      continue;
    }
    const bool is_value = !flag.empty() && !piece.text.starts_with('-') && hides(flag, piece.text, further) &&
                          !is_reference(piece.text);
    out += is_value ? std::string(kHidden) : hidden_in_word(piece.text, further);
    flag = is_flag(piece.text) ? piece.text : std::string_view{};
  }
  return out;
}

}  // namespace

bool is_secret_value(std::string_view name, std::string_view value, const std::vector<std::string>& further) {
  return hides(name, value, further);
}

std::string without_secret_values(std::string_view line, const std::vector<std::string>& further) {
  return hidden_in_line(line, further);
}

// A word is whole here, whatever is in it; only one that is no NAME=VALUE itself may be a line for a shell.
Argv without_secret_values(Argv argv, const std::vector<std::string>& further) {
  std::string flag;
  for (std::string& word : argv) {
    const std::string before = word;
    const std::size_t value = value_of(word);
    if (!flag.empty() && !word.starts_with('-') && hides(flag, word, further))
      word = kHidden;
    else if (value != kNone && hides(word.substr(0, value - 1), word.substr(value), further))
      word = word.substr(0, value) + std::string(kHidden);
    else if (word.find_first_of(" \t\n;") != kNone)
      word = hidden_in_line(word, further);
    flag = is_flag(before) ? before : std::string();
  }
  return argv;
}

}  // namespace dlrun::plan
