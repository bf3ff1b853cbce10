#include "src/process/output_lines.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using Lines = std::vector<std::string>;

TEST_CASE("lines of output come whole, however their bytes arrive") {
  OutputLines lines;
  CHECK(lines.add("one\ntw") == Lines{"one"});
  CHECK(lines.unfinished() == "tw");
  CHECK(lines.add("o\n\nthree") == Lines{"two", ""});
  CHECK(lines.finish() == Lines{"three"});
  CHECK(lines.finish().empty());
}

TEST_CASE("a carriage return begins the line anew; before a newline it is part of the line's end") {
  OutputLines lines;
  CHECK(lines.add("\r 10%|#   |").empty());
  CHECK(lines.unfinished() == " 10%|#   |");
  CHECK(lines.add("\r 20%|##  |\r").empty());
  CHECK(lines.unfinished() == " 20%|##  |");
  CHECK(lines.add("\r100%|####|\nnext\r").size() == 1);
  CHECK(lines.unfinished() == "next");
  CHECK(lines.add("\n") == Lines{"next"});
  CHECK(lines.add("from a system\r\nof another kind\r\n") == Lines{"from a system", "of another kind"});
  CHECK(lines.add("gone\rkept\n") == Lines{"kept"});
}

TEST_CASE("a long line comes in pieces, and a bar that is drawn for hours takes no memory") {
  OutputLines lines;
  const Lines pieces = lines.add(std::string(3 * OutputLines::kMaxLine + 5, 'x') + "\n");
  REQUIRE(pieces.size() == 4);
  CHECK(pieces[2].size() == OutputLines::kMaxLine);
  CHECK(pieces[3] == "xxxxx");
  for (int i = 0; i < 100000; ++i) CHECK(lines.add("\r 50%|#####     |").empty());
  CHECK(lines.unfinished() == " 50%|#####     |");
}
