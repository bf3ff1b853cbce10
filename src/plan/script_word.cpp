#include "src/plan/script_word.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace dlrun::plan {
namespace {

struct Interpreter {
  std::string_view name;     // python3.11 is a python
  std::string_view options;  // letters behind which the text stands
  bool exact;
};
constexpr std::array<Interpreter, 12> kInterpreters{{{"sh", "c", true},
                                                     {"bash", "c", true},
                                                     {"dash", "c", true},
                                                     {"zsh", "c", true},
                                                     {"ksh", "c", true},
                                                     {"csh", "c", true},
                                                     {"tcsh", "c", true},
                                                     {"fish", "c", true},
                                                     {"python", "c", false},
                                                     {"perl", "eE", false},
                                                     {"ruby", "e", false},
                                                     {"julia", "e", false}}};

const Interpreter* interpreter_of(const std::string& word) {
  const std::string name = std::filesystem::path(word).filename().string();
  for (const Interpreter& one : kInterpreters) {
    const bool versioned = !one.exact && name.starts_with(one.name) &&
                           name.find_first_not_of("0123456789.", one.name.size()) == std::string::npos;
    if (name == one.name || versioned) return &one;
  }
  return nullptr;
}

bool takes_text(const std::string& word, const Interpreter& interpreter) {
  return word.size() > 1 && word[0] == '-' && word[1] != '-' &&
         interpreter.options.find(word.back()) != std::string_view::npos;
}

}  // namespace

std::optional<std::size_t> script_word(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Interpreter* interpreter = interpreter_of(words[i]);
    if (interpreter == nullptr) continue;
    for (std::size_t j = i + 1; j + 1 < words.size() && words[j].starts_with('-'); ++j) {
      if (takes_text(words[j], *interpreter)) return j + 1;
      if (words[j] == "-o" || words[j] == "-W" || words[j] == "-X") ++j;  // has a word of its own
    }
  }
  return std::nullopt;
}

}  // namespace dlrun::plan
