// Bad input for readers: good texts damaged in small ways, from a fixed seed, so that every run tries the
// same ones. No search and no corpus on disk: with the address sanitizer behind it this finds what a careless
// reader gets wrong.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/environment.hpp"
#include "src/base/units.hpp"

namespace dlrun::test {

// How long one case goes on: the texts that every test run tries, and for as many seconds as
// DLRUN_FUZZ_SECONDS says.
class Texts {
 public:
  // Whether there is one more to try.
  bool next() { return done_++ < kAtLeast || std::chrono::steady_clock::now() < end_; }

 private:
  static constexpr int kAtLeast = 4000;
  static std::chrono::seconds asked() {
    const std::string text = Environment::of_this_process().get("DLRUN_FUZZ_SECONDS", "0");
    return std::chrono::seconds(parse_integer(text, 0, 3600).value());
  }
  int done_ = 0;
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + asked();
};

class Mutator {
 public:
  // `tokens`: what the format's own reader finds interesting.
  Mutator(std::vector<std::string> seeds, std::vector<std::string> tokens)
      : seeds_(std::move(seeds)), tokens_(std::move(tokens)) {}

  std::string next() {
    std::string text = seeds_[below(seeds_.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_() % end); }

  void change(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(text.size() - at, 1 + below(12));
    switch (below(6)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(at, length));
        break;
      case 2:
        text.insert(at, tokens_[below(tokens_.size())]);
        break;
      case 3:
        text.replace(at, length, tokens_[below(tokens_.size())]);
        break;
      case 4:
        if (at < text.size()) text[at] = static_cast<char>(random_());
        break;
      default:
        text.resize(at);
        break;
    }
  }

  std::vector<std::string> seeds_, tokens_;
  std::mt19937_64 random_{20261127};
};

inline const std::vector<std::string>& odd_values() {
  static const std::vector<std::string> values = {"-1",
                                                  "0",
                                                  "99999999999999999999",
                                                  "1e308",
                                                  "nan",
                                                  "\"\"",
                                                  "null",
                                                  "~",
                                                  "[]",
                                                  "{}",
                                                  "true",
                                                  "é",
                                                  "\xff\xfe",
                                                  std::string(1, '\0'),
                                                  "\n",
                                                  "\t",
                                                  "  ",
                                                  ": ",
                                                  "- ",
                                                  "&a ",
                                                  "*a",
                                                  "!!int ",
                                                  "# ",
                                                  "'",
                                                  "\"",
                                                  "\\",
                                                  "{{",
                                                  "}}"};
  return values;
}

}  // namespace dlrun::test
