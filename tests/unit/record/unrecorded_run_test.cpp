// What is told of a run that was killed: its events say how long it took to start and what it saved.
#include "src/record/unrecorded_run.hpp"

#include <doctest/doctest.h>

#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/utc.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

const Instant kFirstEvent = parse_utc("2026-11-28T12:00:00Z").value();

Json event(int seconds, Json rest) {
  Json out{{"time", format_utc(kFirstEvent + std::chrono::seconds(seconds))}};
  out.update(rest);
  return out;
}

}  // namespace

TEST_CASE("work up to the last checkpoint is kept, and what came behind it is lost") {
  const std::vector<Json> events{
      event(4, {{"event", "started"}, {"rank", 0}}),
      event(30, {{"event", "report"}, {"report", {{"saved", 10}, {"seconds", 2}, {"held", 1}}}}),
      event(60, {{"event", "report"}, {"report", {{"saved", 20}, {"seconds", 2}, {"held", 1}}}})};
  const TimeParts parts = times_of_events(events, kFirstEvent, kFirstEvent + std::chrono::seconds(100));
  CHECK(parts.start.count() == doctest::Approx(4));
  CHECK(parts.useful.count() == doctest::Approx(58 - 4 - 1));
  CHECK(parts.lost.count() == doctest::Approx(42));
  CHECK(parts.total.count() == doctest::Approx(100));
}

TEST_CASE("a run that never started, and one of which nothing is left") {
  CHECK(times_of_events({}, kFirstEvent, kFirstEvent + std::chrono::seconds(9)).start == Seconds(9));
  const UnrecordedRun none = read_unrecorded_run("/nowhere", kFirstEvent);
  CHECK(none.last_sign == kFirstEvent);
  CHECK(none.time.total == Seconds(0));
}

TEST_CASE("the last line may be torn") {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("dlrun-unrecorded-{}", ::getpid());
  REQUIRE(make_directories(folder, Access::owner_only));
  REQUIRE(write_new_file(folder / "events.jsonl",
                         to_text(event(5, {{"event", "started"}})) + "\n{\"time\": \"2026-11"));
  const UnrecordedRun run = read_unrecorded_run(folder, kFirstEvent);
  CHECK(run.time.start == Seconds(5));
  CHECK(run.last_sign > kFirstEvent);
  std::filesystem::remove_all(folder);
}
