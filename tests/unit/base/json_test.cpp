#include "src/base/json.hpp"

#include <doctest/doctest.h>

#include "src/base/json_members.hpp"
#include "tests/unit/cpu_growth.hpp"

using namespace dlrun;

namespace {

template <class T>
bool is_read(const std::string& value) {
  return field<T>(parse_json("{\"n\": " + value + "}", "a.json").value(), "n", "a.json").has_value();
}

// [[...[]...]], or the same of objects, whose innermost list has a bracket in a text.
std::string nested(int levels, const std::string& open = "[", const std::string& close = "]") {
  std::string out, end;
  for (int i = 0; i < levels - 1; ++i) out += open, end += close;
  return out + "[\"]]]{{{\"]" + end;
}

std::string object_of(std::size_t members) {
  std::string out = "{";
  for (std::size_t i = 0; i < members; ++i) out += fmt::format("\"VARIABLE_{}\": \"value\", ", i);
  return out + "\"last\": 0}";
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

TEST_CASE("a value has at most 64 levels, counted by the parser") {
  CHECK(parse_json(nested(64), "a.json"));
  CHECK(parse_json(nested(64, "{\"n\": ", "}"), "a.json"));
  CHECK(parse_json("[\"" + std::string(1000, '[') + "\"]", "a.json"));
  for (const std::string& text : {nested(65), nested(100'000), nested(100'000, "{\"n\": ", "}"),
                                  std::string(100'000, '['), std::string(1'000'000, '{')}) {
    const auto read = parse_json(text, "a.json");
    REQUIRE_FALSE(read);
    CHECK(read.error().kind == ErrorKind::input);
    CHECK((read.error().text() == "a.json: nested deeper than 64 levels" ||
           read.error().text() == "a.json:1:2: not valid JSON"));
  }
  CHECK(parse_json(nested(3), "a.json", 3));
  CHECK(parse_json(nested(4), "a.json", 3).error().text() == "a.json: nested deeper than 3 levels");
}

TEST_CASE("an error text shows a value in short") {
  CHECK(short_text(7) == "7");
  CHECK(short_text("x") == "\"x\"");
  CHECK(short_text(Json::array({1, 2, 3})) == "a list");
  CHECK(short_text({{"a", 1}}) == "an object");
  CHECK(short_text(std::string(70, 'x')) == "\"" + std::string(59, 'x') + "...");
  std::string umlauts;
  for (int i = 0; i < 70; ++i) umlauts += "\u00e4";
  CHECK(short_text("a" + umlauts) == "\"a" + umlauts.substr(0, 58) + "...");
  CHECK(field<int>(parse_json("{\"n\": [[[1]]]}", "a.json").value(), "n", "a.json").error().text() ==
        "a.json: field 'n' has the wrong type: a list");
}

TEST_CASE("an object is the same whether its keys are found in an index or one by one") {
  for (const int keys : {1, 15, 16, 17, 100}) {
    Json indexed, plain = Json::object();
    JsonMembers members(indexed);
    for (int i = 0; i < 3 * keys; ++i) {
      const std::string key = fmt::format("{}", i * 7 % keys);  // each three times
      members[key] = i;
      plain[key] = i;
    }
    CHECK(to_text(indexed) == to_text(plain));
  }
}

TEST_CASE("a duplicate key keeps its first place and its last value") {
  for (const std::size_t members : {2, 15, 16, 100}) {
    std::string text = object_of(members);
    text.pop_back();
    const Json twice = parse_json(text + ", \"VARIABLE_1\": {\"again\": 1}}", "a.json").value();
    CHECK(twice.size() == members + 1);
    CHECK(to_text(std::next(twice.begin(), 1).value()) == "{\"again\":1}");
    CHECK(std::next(twice.begin(), 1).key() == "VARIABLE_1");
  }
}

TEST_CASE("an object of many members is read in linear time") {
  CHECK(parse_json(object_of(40'000), "a.json")->at("VARIABLE_39999") == "value");
  CHECK(test::cpu_growth(4'000, [](std::size_t members) {
          return parse_json(object_of(members), "a.json").value();
        }) < test::kMaxGrowth);
}
