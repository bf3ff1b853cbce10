#include "runtime/base/tfrecord.hpp"

#include <doctest/doctest.h>

using namespace dlrun::runtime;

namespace {

std::string from_hex(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 2)
    out.push_back(static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  return out;
}

}  // namespace

TEST_CASE("CRC-32C has its well-known check value") {
  CHECK(crc32c("123456789") == 0xe3069283u);
}

TEST_CASE("a record is framed with masked checksums") {
  const std::string hello = from_hex("0500000000000000eab2043e68656c6c6fbb1f1c19");
  CHECK(frame_record("hello") == hello);
  const std::string twice = hello + hello;
  const auto records = parse_records(twice, "x");
  REQUIRE(records.has_value());
  CHECK(*records == std::vector<std::string_view>{"hello", "hello"});
}

TEST_CASE("a length that cannot be trusted is refused before anything else") {
  CHECK(parse_records(from_hex("ffffffffffffffff00000000"), "x").error().text() ==
        "x: record 0 at offset 0: the CRC of the length is wrong");
}

TEST_CASE("damaged records are named with their offset") {
  std::string two = frame_record("hello") + frame_record("world");
  two.back() = static_cast<char>(two.back() ^ 1);
  CHECK(parse_records(two, "x").error().text() == "x: record 1 at offset 21: the CRC of the data is wrong");
  CHECK(parse_records(two.substr(0, 30), "x").error().text() ==
        "x: record 1 at offset 21: ends within the header of 12 bytes (9 are there)");
  CHECK(parse_records(two.substr(0, 36), "x").error().text() ==
        "x: record 1 at offset 21: ends early: 5 bytes of data were announced");
}
