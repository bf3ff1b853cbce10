#include "schedulers/array_indices.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

namespace {

std::string refused_list(std::string_view list) {
  const auto indices = parse_array_indices(list);
  return indices ? "" : indices.error().text();
}

}  // namespace

TEST_CASE("array indices: numbers, ranges and steps, each index once") {
  CHECK(parse_array_indices("4").value() == std::vector{4});
  CHECK(parse_array_indices("0,4-7").value() == std::vector{0, 4, 5, 6, 7});
  CHECK(parse_array_indices("1-20:5").value() == std::vector{1, 6, 11, 16});
  CHECK(parse_array_indices("3-5, 4").value() == std::vector{3, 4, 5});
  CHECK(parse_array_indices("1-1000").value().size() == kMaxArrayJobs);
}

TEST_CASE("array indices: what is none is refused by name") {
  for (const char* list : {"", "-", "1-", "a", "1-2-3", "1:2:3", "1-9:0", "1,,2", "99999999999", "1-9]"})
    CHECK_MESSAGE(refused_list(list).find("array indices '") == 0, list);
  CHECK(refused_list("9-1").find("'9-1' is a descending range") != std::string::npos);
  CHECK(refused_list("0-99999999").find("more than 1000 jobs") != std::string::npos);
  CHECK(refused_list("1-9%2").find("remove the % and what follows it") != std::string::npos);
}
