#include "src/base/interval.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

TEST_CASE("an interval is in steps, epochs or time") {
  using Unit = Interval::Unit;
  CHECK(parse_interval("200steps").value() == Interval{Unit::steps, 200});
  CHECK(parse_interval("1 step").value() == Interval{Unit::steps, 1});
  CHECK(parse_interval("1epoch").value() == Interval{Unit::epochs, 1});
  CHECK(parse_interval("0.5epochs").value() == Interval{Unit::epochs, 0.5});
  CHECK(parse_interval("10min").value() == Interval{Unit::time, 600});
  CHECK(parse_interval("0:30:00").value() == Interval{Unit::time, 1800});
  for (const char* text :
       {"", "50", "0steps", "1.5steps", "-1epoch", "steps", "0s", "nan epochs", "1e400steps"})
    CHECK_FALSE(parse_interval(text));
  CHECK(parse_interval("1.5steps").error().text() ==
        "'1.5steps' is not a positive whole number of steps\n  hint: write it as 200steps, 1epoch or 10min");
  CHECK(parse_interval("50").error().what == "'50' is neither steps, epochs nor a time");
}
