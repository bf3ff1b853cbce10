// Where a waiting job stands, from what squeue and qstat print.
#include "schedulers/queue_place.hpp"

#include <doctest/doctest.h>

#include "schedulers/gridengine/queue_place.hpp"
#include "schedulers/slurm/queue_place.hpp"

using namespace dlrun;

TEST_CASE("Slurm: the place among the pending jobs of the same partition") {
  const char* printed =
      "12|gpu|2026-11-29T20:15:00|Resources\n"
      "13|debug|N/A|Priority\n"
      "17_[1-3]|gpu|N/A|Priority\n"
      "18|gpu|N/A|JobHeldUser\n";
  const QueuePlace first = slurm_queue_place(printed, "12").value();
  CHECK(first.position == 1);
  CHECK(format_utc(first.start.value()) == "2026-11-29T20:15:00Z");
  CHECK(first.reason == "Resources");
  CHECK(slurm_queue_place(printed, "13")->position == 1);
  const QueuePlace array = slurm_queue_place(printed, "17").value();
  CHECK(array.position == 2);
  CHECK_FALSE(array.start);
  CHECK(slurm_queue_place(printed, "18")->position == 3);
  CHECK_FALSE(slurm_queue_place(printed, "1"));
  CHECK_FALSE(slurm_queue_place("", "12"));
}

TEST_CASE("Grid Engine: the place in the list of pending jobs") {
  const char* printed =
      "job-ID  prior   name       user         state submit/start at     queue       slots ja-task-ID\n"
      "-----------------------------------------------------------------------------------------------\n"
      "      3 0.50500 small      me           qw    11/29/2026 20:00:00                 1\n"
      "      4 0.00000 big        me           hqw   11/29/2026 20:00:01                 8 1-3:1\n";
  CHECK(gridengine_queue_place(printed, "3")->position == 1);
  const QueuePlace held = gridengine_queue_place(printed, "4").value();
  CHECK(held.position == 2);
  CHECK(held.reason == "hqw");
  CHECK_FALSE(held.start);
  CHECK(gridengine_queue_place(printed, "4.2")->position == 2);
  CHECK_FALSE(gridengine_queue_place(printed, "5"));
  CHECK_FALSE(gridengine_queue_place("", "3"));
}
