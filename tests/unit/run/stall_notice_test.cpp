#include "src/run/stall_notice.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using dlrun::job::StallNotice;

TEST_CASE("a stall of the run directory is said once, however many nodes it holds up, and so is its end") {
  StallNotice notice;
  CHECK(notice.stalled("n2", Seconds(5)) ==
        "n2: the run directory has not taken writes for 5.0s; the ranks go on, and what they print waits");
  CHECK(!notice.stalled("n1", Seconds(5.5)));
  CHECK(!notice.stalled("n2", Seconds(6)));
  CHECK(!notice.resumed("n2", Seconds(18)));
  CHECK(notice.resumed("n1", Seconds(19)) == "the run directory takes writes again, after 19.0s");
  CHECK(!notice.resumed("n1", Seconds(1)));
  CHECK(notice.stalled("n1", Seconds(5)));
}
