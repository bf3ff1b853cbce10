#include "src/base/units.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

TEST_CASE("durations carry their unit or are clock times") {
  CHECK(parse_duration("120s")->count() == 120);
  CHECK(parse_duration("10min")->count() == 600);
  CHECK(parse_duration("1.5h")->count() == 5400);
  CHECK(parse_duration("500ms")->count() == doctest::Approx(0.5));
  CHECK(parse_duration("8:00:00")->count() == 28800);
  CHECK(parse_duration("1h30m")->count() == 5400);
  CHECK(parse_duration("2d12h")->count() == 216000);
  CHECK(parse_duration("1h 30min")->count() == 5400);
  CHECK(parse_duration("1-00")->count() == 86400);
  CHECK(parse_duration("2-12:30")->count() == 217800);
  CHECK(parse_duration("1-12:00:00")->count() == 129600);
}

TEST_CASE("a duration without a unit is refused, not guessed") {
  for (const char* text :
       {"", "10", "h", "-5s", "1:2", "1:60:00", "5 fortnights", "1e400s", "nan s", "::", "1-"})
    CHECK_FALSE(parse_duration(text).has_value());
  CHECK(parse_duration("10").error().text() ==
        "'10' is not a duration\n  hint: write it as 120s, 10min, 1h30m, 2d or HOURS:MINUTES:SECONDS");
}

TEST_CASE("two fields of a clock are hours and minutes to some and minutes and seconds to others") {
  CHECK(parse_duration("24:00").error().text() ==
        "'24:00' can be hours and minutes or minutes and seconds\n"
        "  hint: write 24:00:00 (24h00m) or 0:24:00 (24m00s)");
  CHECK(parse_time_limit("8:00").error().text() ==
        "'8:00' can be hours and minutes or minutes and seconds\n"
        "  hint: write 8:00:00 (8h00m) or 0:08:00 (8m00s)");
  CHECK_FALSE(parse_duration("1:30").has_value());
}

TEST_CASE("units of one duration are each given once, the larger first") {
  for (const char* text : {"1m30h", "1h1h", "1h30", "h1", "1h-30m", "1.5.2h", "1h.m"})
    CHECK_FALSE(parse_duration(text).has_value());
}

TEST_CASE("a time limit may be none") {
  CHECK(parse_time_limit("UNLIMITED").value() == kUnlimited);
  CHECK(parse_time_limit("infinite").value() == kUnlimited);
  CHECK(parse_time_limit("90min")->count() == 5400);
  CHECK(parse_time_limit("1d")->count() == 86400);
  CHECK(parse_time_limit("24:00:00")->count() == 86400);
  CHECK(parse_time_limit("3600").error().text() ==
        "'3600' is not a duration\n"
        "  hint: write it as 90min, 8h, 1h30m, 2d, HOURS:MINUTES:SECONDS, DAYS-HOURS or UNLIMITED");
}

TEST_CASE("sizes carry their unit") {
  CHECK(*parse_size("8MiB") == 8u << 20);
  CHECK(*parse_size("100MB") == 100000000);
  CHECK(*parse_size("4096B") == 4096);
  for (const char* text : {"", "8", "8M", "-1MiB", "99999999999GiB"})
    CHECK_FALSE(parse_size(text).has_value());
}

TEST_CASE("whole numbers are nothing but whole numbers in range") {
  CHECK(*parse_integer("42", 0, 100) == 42);
  for (const char* text : {"", "4.2", "42x", " 42", "0x10", "101", "99999999999999999999"})
    CHECK_FALSE(parse_integer(text, 0, 100).has_value());
}

TEST_CASE("times and sizes read well") {
  CHECK(format_duration(Seconds(0.85)) == "850ms");
  CHECK(format_duration(Seconds(190)) == "3m10s");
  CHECK(format_duration(Seconds(3720)) == "1h02m");
  CHECK(format_size(12897484) == "12.3 MiB");
  CHECK(format_utc(Instant(Milliseconds(1795813200123))) == "2026-11-27T21:00:00.123Z");
}
