// Texts as tokens: GPT-2's words, merges in their order, and every byte back again. The words were worked out
// by hand from the regular expression, the tokens with GPT-2's own encoder in Python.
#include "runtime/data/text/tokenizer.hpp"

#include <random>

#include <doctest/doctest.h>

#include "runtime/data/text/byte_alphabet.hpp"
#include "runtime/data/text/split_words.hpp"
#include "src/base/strings.hpp"
#include "tests/unit/data/support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using test::contains;

namespace {

using Words = std::vector<std::string>;

Words words_of(std::string_view text) {
  Words out;
  while (!text.empty()) {
    out.emplace_back(text.substr(0, first_word(text)));
    text.remove_prefix(out.back().size());
  }
  return out;
}

// A vocabulary of the 256 bytes, these merges, and the end of a text.
void write_vocabulary(const test::Folder& folder, const std::vector<std::string>& merges) {
  std::string vocabulary;
  std::uint32_t id = 0;
  const auto add = [&](const std::string& word) {
    std::string escaped;
    for (const char c : word) escaped += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
    vocabulary += fmt::format("{}\"{}\": {}", id == 0 ? "{" : ", ", escaped, id);
    ++id;
  };
  for (int byte = 0; byte < 256; ++byte) add(alphabet_of_bytes(std::string(1, static_cast<char>(byte))));
  std::string lines = "#version: 0.2\n";
  for (const std::string& merge : merges) {
    lines += merge + "\n";
    const std::vector<std::string> sides = split(merge, ' ');
    add(sides[0] + sides[1]);
  }
  add("<|endoftext|>");
  folder.write("vocab.json", vocabulary + "}");
  folder.write("merges.txt", lines);
}

Tokenizer small_tokenizer() {
  const test::Folder folder;
  write_vocabulary(folder, {"h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "a a", "aa a"});
  return Tokenizer::open(folder.path).value();
}

}  // namespace

TEST_CASE("words are those of GPT-2's regular expression") {
  CHECK(words_of("Hello world") == Words{"Hello", " world"});
  CHECK(words_of("it's we'll I'd they're 'tis") ==
        Words{"it", "'s", " we", "'ll", " I", "'d", " they", "'re", " '", "tis"});
  CHECK(words_of("IT'S") == Words{"IT", "'", "S"});
  CHECK(words_of("x1 22 (y)!?") == Words{"x", "1", " 22", " (", "y", ")!?"});
  CHECK(words_of("a  b\n\n c\t") == Words{"a", " ", " b", "\n\n", " c", "\t"});
  CHECK(words_of("a\n\nb") == Words{"a", "\n", "\n", "b"});
  CHECK(words_of("   ") == Words{"   "});
  CHECK(words_of("Grüße aus Zürich, 東京 ½ ٣") ==
        Words{"Grüße", " aus", " Zürich", ",", " 東京", " ½", " ٣"});
  CHECK(words_of("a\u00a0b\u2003\u2003c") == Words{"a", "\u00a0", "b", "\u2003", "\u2003", "c"});
  CHECK(words_of("a\xff\xfe"
                 "b") == Words{"a", "\xff\xfe", "b"});  // no UTF-8
  CHECK(words_of("\xe6\x9d") == Words{"\xe6\x9d"});     // cut short
}

TEST_CASE("pairs are merged in the order of the list, from the left") {
  const Tokenizer tokenizer = small_tokenizer();
  CHECK(tokenizer.vocabulary() == 256 + 9 + 1);
  CHECK(tokenizer.end_of_text() == 265);
  using Tokens = Tokenizer::Tokens;
  CHECK(tokenizer.encode("hello world") == Tokens{259, 262, 'l', 'd'});
  CHECK(tokenizer.encode("hell") == Tokens{258});
  CHECK(tokenizer.encode("ohe") == Tokens{'o', 256});
  CHECK(tokenizer.encode("aaaaa") == Tokens{263, 264});  // aa aa a: the second pair is merged with the rest
  CHECK(tokenizer.encode("") == Tokens{});
  CHECK(tokenizer.decode(tokenizer.encode("hello world")) == "hello world");
  CHECK(tokenizer.decode(Tokens{259, 9999}) == "hello");
}

TEST_CASE("any bytes come back, with and without merges, and a word of a million bytes ends") {
  std::mt19937 random(3);
  const Tokenizer merging = small_tokenizer(), bytes = Tokenizer::of_bytes();
  for (int i = 0; i < 300; ++i) {
    std::string text(random() % 60, '\0');
    for (char& c : text) c = random() % 3 == 0 ? static_cast<char>(random()) : "hello wr'\n "[random() % 11];
    CHECK(merging.decode(merging.encode(text)) == text);
    CHECK(bytes.decode(bytes.encode(text)) == text);
  }
  CHECK(merging.encode(std::string(999999, 'a')).size() <= 500000);
  CHECK(bytes.vocabulary() == 257);
  CHECK(bytes.encode("\xff"
                     "A") == Tokenizer::Tokens{255, 65});
}

TEST_CASE("a tokenizer's own file reads as the same tokenizer") {
  for (const Tokenizer& tokenizer : {small_tokenizer(), Tokenizer::of_bytes()}) {
    const auto again = Tokenizer::parse(tokenizer.to_text(), "tokenizer.json");
    REQUIRE_MESSAGE(again.has_value(), again.error().text());
    CHECK(again->to_text() == tokenizer.to_text());
    CHECK(again->encode("hello world\x01") == tokenizer.encode("hello world\x01"));
    CHECK(again->end_of_text() == tokenizer.end_of_text());
  }
}

namespace {

// Words of the text cut at every place where it may be cut, one after another.
Words words_of_parts(std::string_view text, int& cuts) {
  Words out;
  std::size_t begin = 0;
  for (std::size_t at = 1; at <= text.size(); ++at) {
    if (at < text.size() && !may_cut(text, at)) continue;
    cuts += at < text.size() ? 1 : 0;
    for (std::string& word : words_of(text.substr(begin, at - begin))) out.push_back(std::move(word));
    begin = at;
  }
  return out;
}

int cuts_of(std::string_view text) {
  int cuts = 0;
  CHECK(words_of_parts(text, cuts) == words_of(text));
  return cuts;
}

}  // namespace

TEST_CASE("a text is cut only where no word changes") {
  CHECK(cuts_of("one two\nthree\n\n four") == 4);
  CHECK(cuts_of("one\r\ntwo\r\n\r\n  three") == 2);
  CHECK(cuts_of("раз два три") == 2);
  CHECK(cuts_of("東京。大阪") == 2);
  CHECK(cuts_of("it's") == 1);
  CHECK(cuts_of("\xe6\x9d\xb1") == 0);
  CHECK(cuts_of("\n\n  \t \n") == 0);
}

TEST_CASE("random texts have the same words in parts as in whole, wherever they are cut") {
  const Words codes = {
      "a", "s",    "l",    "'",    "'s",       "'ll",    "1",          "½",    "!",    " ",
      " ", "\n",   "\r\n", "\t",   "\u00a0",   "\u2003", "\u3000",     "é",    "東",   "。",
      "٣", "\xff", "\xe6", "\x9d", "\xf0\x9f", "\xc2",   "\U0001f600", "\x80", "\x85", std::string(1, '\0')};
  std::mt19937 random(7);
  int cuts = 0, wrong = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::size_t left = random() % 14; left > 0; --left) text += codes[random() % codes.size()];
    wrong += words_of_parts(text, cuts) == words_of(text) ? 0 : 1;
    for (std::size_t at = 1; at < text.size(); ++at) {
      if (!may_cut(text, at)) continue;
      Words two = words_of(std::string_view(text).substr(0, at));
      for (std::string& word : words_of(std::string_view(text).substr(at))) two.push_back(std::move(word));
      wrong += two == words_of(text) ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
  CHECK(cuts > 8000);
}

TEST_CASE("vocabularies that are damaged, or of characters, are named with file and line") {
  const test::Folder folder;
  const auto refusal = [&] { return Tokenizer::open(folder.path).error(); };
  write_vocabulary(folder, {"h e"});
  folder.write("merges.txt", "#version: 0.2\nh e\nh x\n");
  CHECK(contains(refusal().where, "merges.txt:3"));
  CHECK(contains(refusal().what, "\"hx\" is not in the vocabulary"));
  folder.write("merges.txt", "h e l\n");
  CHECK(contains(refusal().what, "is not two tokens"));
  folder.write("vocab.json", "{\"a\": 0, \"b\": 0}");
  CHECK(contains(refusal().what, "two tokens have the number 0"));
  folder.write("vocab.json", "{\"▁a\": 0}");
  CHECK(contains(refusal().what, "has characters that stand for no byte"));
  folder.write("vocab.json", "{\"a\": 0}");
  CHECK(contains(refusal().what, "has no token for the byte 0"));
  folder.write("vocab.json", "{\"a\": -1}");
  CHECK(contains(refusal().what, "is not in [0, 16777215]"));
  folder.write("vocab.json", "[1]");
  CHECK(refusal().kind == ErrorKind::input);
}
