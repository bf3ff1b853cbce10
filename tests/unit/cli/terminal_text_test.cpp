#include "src/cli/terminal_text.hpp"

#include <doctest/doctest.h>

using namespace dlrun::cli;

TEST_CASE("what would move the cursor, change the terminal or forge a line is shown as text") {
  CHECK(plain_text("plain, with a\ttab and é漢") == "plain, with a\ttab and é漢");
  CHECK(plain_text("x\033]52;c;cHduZWQ=\007\033[2J\nfaked: line") ==
        "x\\x1b]52;c;cHduZWQ=\\x07\\x1b[2J\\nfaked: line");
  CHECK(plain_text("\033[1;31mred\033[0m and \033[?1049h") == "red and \\x1b[?1049h");
  CHECK(plain_text("one\ntwo\r", Newlines::kept) == "one\ntwo\\r");
  CHECK(plain_text("\x7f") == "\\x7f");
  CHECK(plain_text("\xc2\x9b"
                   "2J") == "\\x9b2J");  // CSI as one character
  CHECK(plain_text("\xe2\x80\xae"
                   "abc") == "\\x202eabc");  // right to left from here
}

TEST_CASE("bytes that are no UTF-8 are shown as text") {
  CHECK(plain_text("\xff\xc3") == "\\xff\\xc3");
  CHECK(plain_text("\xc0\x8a") == "\\xc0\\x8a");  // an overlong newline
  CHECK(plain_text("\xed\xa0\x80") == "\\xed\\xa0\\x80");
}

TEST_CASE("a line's colours end with it") {
  CHECK(with_colors_ended("\033[31mred") == "\033[31mred\033[0m");
  CHECK(with_colors_ended("\033[31mred\033[0m") == "\033[31mred\033[0m");
  CHECK(with_colors_ended("plain") == "plain");
  CHECK(with_colors_ended("\033[2K") == "\033[2K");
}

TEST_CASE("text is cut where a column more would not fit") {
  CHECK(fitted("12345", 3) == "123");
  CHECK(fitted("é·漢字", 3) == "é·");
  CHECK(fitted("é·漢字", 4) == "é·漢");
  CHECK(fitted("ab", 80) == "ab");
  CHECK(columns_of("é·漢字e\xcc\x81") == 7);
}
