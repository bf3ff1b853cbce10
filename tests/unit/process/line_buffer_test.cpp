#include "src/process/line_buffer.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using Lines = std::vector<std::string>;

TEST_CASE("lines come out whole, however the bytes arrive") {
  LineBuffer buffer;
  CHECK(buffer.add("ab").empty());
  CHECK(buffer.add("c\nd\n\ne") == Lines{"abc", "d", ""});
  CHECK(buffer.finish() == Lines{"e"});
  CHECK(buffer.finish().empty());
}

TEST_CASE("a line without end is cut at the limit, and nothing is lost") {
  LineBuffer buffer;
  const Lines lines = buffer.add(std::string(LineBuffer::kMaxLine * 2 + 5, 'x'));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].size() == LineBuffer::kMaxLine);
  CHECK(buffer.finish() == Lines{"xxxxx"});
}
