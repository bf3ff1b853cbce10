#include "src/base/enum_names.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

namespace {

enum class Taste { sweet, sour };
constexpr auto kTastes = enum_names<Taste>({{Taste::sour, "sour"}, {Taste::sweet, "sweet"}});

}  // namespace

TEST_CASE("an enum's names are read and written by one table, in any order") {
  CHECK(kTastes.name(Taste::sweet) == "sweet");
  CHECK(kTastes.value("sour") == Taste::sour);
  CHECK_FALSE(kTastes.value("bitter"));
  CHECK(kTastes.names() == std::vector<std::string>{"sour", "sweet"});
}
