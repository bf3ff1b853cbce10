// Where a waiting job stands, from what squeue, qstat, bjobs and flux jobs print.
#include "schedulers/queue_place.hpp"

#include <doctest/doctest.h>

#include "schedulers/flux/queue_place.hpp"
#include "schedulers/gridengine/queue_place.hpp"
#include "schedulers/lsf/queue_place.hpp"
#include "schedulers/pbs/queue_place.hpp"
#include "schedulers/query.hpp"
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

TEST_CASE(
    "PBS: the place among the queued jobs of the same queue, and the start that its scheduler expects") {
  const std::string printed =
      "Job Id: 26.srv\n    job_state = R\n    queue = workq\n\n"
      "Job Id: 27.srv\n    job_state = H\n    queue = workq\n    Hold_Types = u\n\n"
      "Job Id: 28.srv\n    job_state = Q\n    queue = workq\n    comment = Not Running: Insuffi\n\tcient "
      "ncpus\n"
      "    estimated.start_time = Fri Nov 27 21:08:38 2026\n\n"
      "Job Id: 29[].srv\n    job_state = Q\n    queue = debug\n\n"
      "Job Id: 30.srv\n    job_state = Q\n    queue = workq\n\n";
  const QueuePlace first = pbs_queue_place(printed, "28.srv").value();
  CHECK(first.position == 1);
  CHECK(format_utc(first.start.value()) == "2026-11-27T21:08:38Z");
  CHECK(first.reason == "Not Running: Insufficient ncpus");
  const QueuePlace second = pbs_queue_place(printed, "30.srv").value();
  CHECK(second.position == 2);  // a job on hold stands before nobody
  CHECK_FALSE(second.start);
  CHECK(second.reason.empty());
  CHECK(pbs_queue_place(printed, "29[].srv")->position == 1);
  CHECK(pbs_queue_place(printed, "29[3].srv")->position == 1);
  CHECK(pbs_queue_place(printed, "27.srv").has_value());
  CHECK_FALSE(pbs_queue_place(printed, "26.srv"));  // it runs
  CHECK_FALSE(pbs_queue_place(printed, "3.srv"));
  CHECK_FALSE(pbs_queue_place("", "28.srv"));
}

TEST_CASE("LSF: the place among the pending jobs of the same queue; bjobs tells no year") {
  const char* printed =
      "601|normal|-|New job is waiting for scheduling;\n"
      "602|debug|-|-\n"
      "603|normal|Jan  2 08:30|Job slot limit reached; Not enough hosts|2;\n";
  const Instant now = parse_calendar("2026-12-30 10:00", "%Y-%m-%d %H:%M").value();
  CHECK(lsf_queue_place(printed, "601", now)->position == 1);
  CHECK_FALSE(lsf_queue_place(printed, "601", now)->start);
  CHECK(lsf_queue_place(printed, "601", now)->reason == "New job is waiting for scheduling;");
  CHECK(lsf_queue_place(printed, "602", now)->position == 1);
  CHECK(lsf_queue_place(printed, "602", now)->reason.empty());
  const QueuePlace last = lsf_queue_place(printed, "603", now).value();
  CHECK(last.position == 2);
  CHECK(format_utc(last.start.value()) == "2027-01-02T08:30:00Z");
  CHECK(last.reason == "Job slot limit reached; Not enough hosts");
  const auto with_year = lsf_queue_place("7|q|Jan  2 08:30:00 2031|-\n", "7", now);
  CHECK(format_utc(with_year->start.value()) == "2031-01-02T08:30:00Z");
  CHECK_FALSE(lsf_queue_place(printed, "60", now));
  CHECK_FALSE(lsf_queue_place("", "601", now));
}

TEST_CASE("Flux: the place among the pending jobs of the same queue") {
  const char* printed =
      "\u0192Qa|batch|1795813422.5|SCHED\n"
      "\u0192Qb|debug||SCHED\n"
      "\u0192Qc|batch||DEPEND\n";
  const QueuePlace first = flux_queue_place(printed, "fQa").value();
  CHECK(first.position == 1);
  CHECK(format_utc(first.start.value()) == "2026-11-27T21:03:42.500Z");
  const QueuePlace third = flux_queue_place(printed, "\u0192Qc").value();
  CHECK(third.position == 2);
  CHECK(third.reason == "DEPEND");
  CHECK_FALSE(third.start);
  CHECK_FALSE(flux_queue_place(printed, "fQ"));
  CHECK_FALSE(flux_queue_place("", "fQa"));
}
