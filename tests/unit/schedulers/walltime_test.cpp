// The time limits that Slurm and PBS write, in seconds.
#include "schedulers/walltime.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

TEST_CASE("Slurm's times") {
  const auto seconds = [](std::string_view text) {
    return parse_slurm_walltime(text).value().limit.value().count();
  };
  CHECK(seconds("30") == 1800);
  CHECK(seconds("30:00") == 1800);
  CHECK(seconds("1:30:00") == 5400);
  CHECK(seconds("2-12") == 216000);
  CHECK(seconds("2-12:30") == 217800);
  CHECK(seconds("2-12:30:15") == 217815);
  CHECK(seconds("100:00:00") == 360000);
  CHECK(seconds("1:60:15") == 7215);
}

TEST_CASE("no limit is no number") {
  for (const char* text : {"UNLIMITED", "infinite", "INFINITE", "-1"})
    CHECK_MESSAGE(!parse_slurm_walltime(text).value().limit, text);
}

TEST_CASE("what is not a Slurm time is refused") {
  for (const char* text : {"1h", "90s", "1d", "1.5", "30 ", " 30", "60:", "1-1-1", "1:2:3:4", "", "-", "2-",
                           "-2", "99999999999999999999"})
    CHECK_MESSAGE(!parse_slurm_walltime(text), text);
}

TEST_CASE("a bare number is seconds for PBS") {
  CHECK(parse_pbs_walltime("3600").value().limit == std::chrono::seconds(3600));
  CHECK(parse_pbs_walltime("00:05:00").value().limit == std::chrono::seconds(300));
  CHECK(parse_pbs_walltime("5:00.5").value().limit == std::chrono::seconds(300));
  for (const char* text : {"", "1h", "1:2:3:4", "1-0", "5.", "5.x"})
    CHECK_MESSAGE(!parse_pbs_walltime(text), text);
}

TEST_CASE("squeue's time left may be unknown, which is neither a time nor unlimited") {
  for (const char* text : {"INVALID", "NOT_SET"})
    CHECK_FALSE(parse_slurm_time_left(text).value().has_value());
  CHECK_FALSE(parse_slurm_time_left("UNLIMITED").value().value().limit.has_value());
  CHECK(parse_slurm_time_left("9:30").value().value().limit == std::chrono::seconds(570));
}
