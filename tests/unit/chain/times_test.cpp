// Where the time of a chain went, and when it will be done.
#include "src/chain/times.hpp"

#include <doctest/doctest.h>

#include "src/base/utc.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

const Instant kNoon = parse_utc("2026-11-28T12:00:00Z").value();

Instant minutes(double count) {
  return kNoon + std::chrono::duration_cast<Milliseconds>(Seconds(count * 60));
}

// From `from` to `to` minutes after noon; a tenth of it to start, and nothing lost.
Link timed_link(double from, double to, std::int64_t step) {
  Link out;
  out.end = LinkEnd::again;
  out.began = format_utc(minutes(from));
  out.ended = format_utc(minutes(to));
  out.seconds = (to - from) * 60;
  out.progress = {{"step", step}, {"steps", 400}};
  out.time.total = Seconds(out.seconds);
  out.time.start = out.time.total * 0.1;
  out.time.useful = out.time.total * 0.9;
  return out;
}

Link running(double from) {
  Link out;
  out.began = format_utc(minutes(from));
  return out;
}

}  // namespace

TEST_CASE("the parts of all links are added up, and the sum of the parts is the whole") {
  Chain chain;
  chain.links = {timed_link(0, 10, 100), timed_link(15, 25, 200), running(30)};
  Link killed = timed_link(25, 27, 0);
  killed.time.useful = Seconds(0), killed.time.lost = Seconds(100);  // 8 s of it are not accounted for
  chain.links.insert(chain.links.begin() + 2, killed);
  const TimeParts parts = times_of(chain);
  CHECK(parts.start.count() == doctest::Approx(132));
  CHECK(parts.useful.count() == doctest::Approx(1080));
  CHECK(parts.lost.count() == doctest::Approx(100));
  CHECK(parts.idle.count() == doctest::Approx(8));
  CHECK(parts.total.count() == doctest::Approx(1320));
}

TEST_CASE("the time left is that in jobs and that in the queue between them") {
  Chain chain;
  chain.state = ChainState::running;
  chain.links = {timed_link(0, 10, 100), timed_link(15, 25, 200), running(32)};
  CHECK(mean_queue(chain)->count() == doctest::Approx(6 * 60));
  // 200 steps are 20 minutes; 4 of them are done. The link that runs has 6 left, so one more follows.
  const TimeLeft left = time_left(chain, minutes(36)).value();
  CHECK(left.in_jobs.count() == doctest::Approx(16 * 60));
  CHECK(left.further_links == 1);
  CHECK(left.queue->count() == doctest::Approx(6 * 60));
  CHECK(left.total().count() == doctest::Approx(22 * 60));
}

TEST_CASE("between links the next one has to wait as well") {
  Chain chain;
  chain.links = {timed_link(0, 10, 100), timed_link(15, 25, 200)};
  CHECK(time_left(chain, minutes(26))->further_links == 2);
  CHECK(time_left(chain, minutes(26))->queue->count() == doctest::Approx(2 * 5 * 60));
}

TEST_CASE("what is not known is not told") {
  Chain chain;
  CHECK_FALSE(mean_queue(chain));
  CHECK_FALSE(time_left(chain, kNoon));
  chain.links = {timed_link(0, 10, 100)};
  CHECK_FALSE(time_left(chain, minutes(11))->queue);
  chain.state = ChainState::done;
  CHECK_FALSE(time_left(chain, minutes(11)));
}

TEST_CASE("instants read back as they were written, and nothing else reads") {
  for (const char* text : {"2026-11-28T12:00:00Z", "2026-11-28T12:00:00.007Z"})
    CHECK(format_utc(parse_utc(text).value()) == text);
  for (const char* text :
       {"", "noon", "2026-11-28T12:00:00", "2026-11-28T12:00:00.7Z", "2026-11-28T12:00:00 Z"})
    CHECK_FALSE(parse_utc(text));
}
