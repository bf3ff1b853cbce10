#include "src/base/json.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

namespace {

template <class T>
bool is_read(const std::string& value) {
  return field<T>(parse_json("{\"n\": " + value + "}", "a.json").value(), "n", "a.json").has_value();
}

}  // namespace

TEST_CASE("a number is read as it is, or not at all") {
  CHECK(is_read<int>("2147483647"));
  CHECK(is_read<int>("-2147483648"));
  CHECK(is_read<double>("3"));
  CHECK(is_read<std::uint64_t>("18446744073709551615"));
  for (const char* value :
       {"2147483648", "-2147483649", "18446744073709551615", "1.5", "1e300", "null", "\"1\""})
    CHECK_FALSE(is_read<int>(value));
  CHECK_FALSE(is_read<std::uint64_t>("-1"));
  CHECK_FALSE(is_read<std::int64_t>("18446744073709551615"));
}

TEST_CASE("so are the numbers of a list") {
  CHECK(is_read<std::vector<int>>("[1, -2]"));
  CHECK_FALSE(is_read<std::vector<int>>("[1, 2.5]"));
  CHECK_FALSE(is_read<std::vector<std::int64_t>>("[1e30]"));
  CHECK_FALSE(is_read<std::vector<int>>("7"));
}

TEST_CASE("the error names the field, what stands there, and the file") {
  const auto read = field<int>(parse_json("{\"n\": 1.5}", "a.json").value(), "n", "a.json");
  CHECK(read.error().text() == "a.json: field 'n' has the wrong type: 1.5");
  CHECK(field<int>(Json::object(), "n", "a.json").error().text() == "a.json: field 'n' is missing");
}
