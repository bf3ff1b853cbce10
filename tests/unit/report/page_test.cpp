// The data of the page, and the page itself: what stands in it cannot leave its place.
#include "src/report/page/page.hpp"

#include <doctest/doctest.h>

#include "src/base/json.hpp"
#include "src/base/utc.hpp"
#include "src/report/page/event_marks.hpp"
#include "src/report/page/figure.hpp"
#include "src/report/page/plan_map.hpp"
#include "src/report/page/report_data.hpp"
#include "src/report/page/run_files.hpp"
#include "src/report/page/step_times.hpp"
#include "src/report/page/time_rows.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::report;

namespace {

Json event(int second, Json fields) {
  fields["time"] = fmt::format("2026-11-29T10:00:{:02}Z", second);
  return fields;
}

const std::vector<Json> kRetried{
    event(0, {{"event", "planned"}, {"attempt", 1}}),
    event(1, {{"event", "started"}, {"rank", 0}}),
    event(2, {{"event", "report"}, {"rank", 0}, {"report", {{"saved", 50}, {"held", 0.5}}}}),
    event(2, {{"event", "report"}, {"rank", 1}, {"report", {{"saved", 50}, {"held", 0.5}}}}),
    event(3, {{"event", "failed"}, {"rank", 1}, {"host", "c1"}, {"reason", "exit code 3"}}),
    event(4, {{"event", "failed"}, {"rank", 0}, {"host", "c1"}, {"reason", "killed by SIGTERM (15)"}}),
    event(5, {{"event", "ended"}, {"exit_code", 3}, {"reason", "rank 1"}}),
    event(6, {{"event", "planned"}, {"attempt", 2}}),
    event(9, {{"event", "ended"}, {"exit_code", 0}, {"reason", "done"}}),
};

Json plan_of(int ranks) {
  Json plan{{"name", "small"}, {"nodes", Json::array()}, {"ranks", Json::array()}};
  for (int node = 0; node < (ranks + 1) / 2; ++node)
    plan["nodes"].push_back({{"host", fmt::format("c{}", node)}});
  for (int rank = 0; rank < ranks; ++rank)
    plan["ranks"].push_back({{"rank", rank}, {"role", "worker"}, {"node", rank / 2}, {"gpus", {"0", "1"}}});
  return plan;
}

RunFiles one_run(std::vector<Json> events, Json record) {
  RunFiles run{.path = "runs/one"};
  run.links.push_back(
      {.path = "runs/one", .plan = plan_of(2), .record = std::move(record), .events = std::move(events)});
  return run;
}

}  // namespace

TEST_CASE("five digits of a number are enough for a page") {
  CHECK(figure(0.123456) == Json(0.12346));
  CHECK(figure(-98765.4321) == Json(-98765.0));
  CHECK(figure(1e-7) == Json(1e-7));
  CHECK(figure(42) == Json(42));
  CHECK(figure(0.0) == Json(0));
  CHECK(figure(1e308) == Json(1e308));
  CHECK(figure(5e-324) == Json(5e-324));
  CHECK(figure(std::nan("")).is_null());
}

TEST_CASE("events become marks: the first failure of an attempt, a retry, a checkpoint once") {
  const Json out = marks_json({{1, kRetried}}, {});
  std::vector<std::string> kinds;
  for (const Json& mark : out.at("marks")) kinds.push_back(mark.at("kind"));
  CHECK(kinds == std::vector<std::string>{"failure", "end", "retry", "done"});
  CHECK(out.at("marks").at(0).at("text") == "rank 1 on c1: exit code 3");
  CHECK(out.at("marks").at(2).at("attempt") == 2);
  CHECK(out.at("checkpoints_reported") == 1);
  CHECK(out.at("checkpoints").at(0).at("held") == 0.5);
}

TEST_CASE("where there are too many marks the grave ones stay, and the rest is counted") {
  std::vector<Json> events;
  for (int i = 0; i < 50; ++i) events.push_back(event(i, {{"event", "stood_still"}, {"seconds", 20}}));
  events.push_back(event(55, {{"event", "hang"}, {"rank", 3}, {"host", "c1"}, {"reason", "no output"}}));
  const Json out = marks_json({{1, events}}, {.events = 10});
  CHECK(out.at("marks").size() == 10);
  CHECK(out.at("marks_left_out") == 41);
  CHECK(out.at("marks").back().at("kind") == "failure");
}

TEST_CASE("time of a run with a retry, by attempt") {
  const Json time{{"start", 1}, {"useful", 2}, {"checkpoint", 0.5}, {"lost", 1}, {"idle", 0.5}, {"total", 5}};
  const Json record{{"began", "2026-11-29T10:00:00Z"},
                    {"ended", "2026-11-29T10:00:09Z"},
                    {"exit_code", 0},
                    {"time", time},
                    {"attempts", {{{"exit_code", 3}, {"time", time}}, {{"exit_code", 0}, {"time", time}}}}};
  const RunFiles run = one_run(kRetried, record);
  const Json links = links_json(run);
  CHECK(links.at(0).at("attempts").size() == 2);
  CHECK(links.at(0).at("attempts").at(1).at("began").get<double>() - links.at(0).at("began").get<double>() ==
        6);
  CHECK(links.at(0).at("queue").is_null());
  CHECK(total_time_json(links).at("lost") == 1);
  CHECK(total_time_json(links).at("total") == 5);
}

TEST_CASE("a run that was killed has no exit code and no 0 in its place") {
  RunFiles run = one_run(kRetried, nullptr);
  const Json out = run_json(run, {});
  CHECK(out.at("state") == "no record");
  CHECK(out.at("exit_code").is_null());
  CHECK(out.at("time").is_null());
  CHECK(out.at("energy").is_null());
  CHECK(out.at("step_times").is_null());
}

TEST_CASE("the map of a plan has nodes, ranks, GPUs and ends") {
  const Json ends{{{"rank", 1}, {"processors", {0, 1, 2, 5}}, {"end", "exit code 3"}, {"code", 3}},
                  {{"rank", 0}, {"processors", Json::array()}, {"end", "exit code 0"}, {"code", 0}}};
  const Json map = plan_map_json(plan_of(3), ends, {});
  CHECK(map.at("nodes") == 2);
  CHECK(map.at("map").at(0).at("ranks").at(0) == Json{0, 0, "0,1", nullptr, nullptr, 0});
  CHECK(map.at("map").at(0).at("ranks").at(1) == Json{1, 0, "0,1", "0-2,5", "exit code 3", 3});
  CHECK(map.at("map").at(1).at("count") == 1);
  const Json many = plan_map_json(plan_of(30), nullptr, {.ranks = 20});
  CHECK(many.at("shown") == "nodes");
  CHECK(many.at("map").at(0).at("ranks").empty());
  CHECK(plan_map_json(nullptr, nullptr, {}).is_null());
}

TEST_CASE("a slow rank stays visible where a row is many ranks") {
  std::vector<Json> events;
  for (int i = 0; i < 6; ++i) {
    std::vector<double> seconds(1000, 0.2);
    if (i == 4) seconds[777] = 0.9;
    events.push_back(event(i, {{"event", "step_times"}, {"seconds", seconds}}));
  }
  events.push_back(event(9, {{"event", "step_times"}, {"seconds", {nullptr, 0.3}}}));
  const Json out = step_times_json({{1, events}}, {.heat_rows = 10, .heat_columns = 7});
  CHECK(out.at("ranks") == 1000);
  CHECK(out.at("tenths_of_milliseconds").size() == 10);
  CHECK(out.at("tenths_of_milliseconds").at(7).at(4) == 9000);
  CHECK(out.at("tenths_of_milliseconds").at(6).at(4) == 2000);
  CHECK(out.at("tenths_of_milliseconds").at(5).at(6).is_null());
  CHECK(out.at("median") == 0.2);
}

TEST_CASE("the data fits into the page, whatever a run has") {
  RunFiles run = one_run(kRetried, nullptr);
  run.metrics.begin_file();
  for (int step = 1; step <= 20000; ++step)
    run.metrics.add_line(fmt::format(R"({{"step":{},"loss":{},"a":{},"b":{},"c":{}}})", step, step * 0.7,
                                     step * 1.3, step * 2.9, step * 0.11));
  const std::vector<RunFiles> runs(4, run);
  const auto made = parse_utc("2026-11-29T10:00:00Z").value();
  const Json out = report_json(runs, {.made = made, .maximum_bytes = 100'000});
  CHECK(to_text(out).size() <= 100'000);
  CHECK(out.at("schema") == "dlrun.report/1");
  CHECK(out.at("runs").at(3).at("metrics").at("series").at(0).at("points") == 20000);
}

TEST_CASE("no text ends the script or the element that it is in") {
  const std::string text = script_json({{"name", "</script><!--&\xff"}});
  CHECK(text == R"({"name":"\u003c/script\u003e\u003c!--\u0026)"
                "\xEF\xBF\xBD"
                R"("})");
  CHECK(escape_html("<a href=\"'&'\">") == "&lt;a href=&quot;&#39;&amp;&#39;&quot;&gt;");
}

TEST_CASE("a page is its parts, and what is put in is not searched for names") {
  const test::Folder folder;
  folder.write("own.js", "@title@");
  folder.write("head.html", "<title>@title@</title>");
  folder.write("own.html", "@shell:head.html@ @file:own.js@ @data@.");
  const PageRequest request{.parts = folder.path, .shell = "own.html", .title = "a <b>"};
  CHECK(make_page(request, {{"n", "@title@"}}).value() ==
        R"(<title>a &lt;b&gt;</title> @title@ {"n":"@title@"}.)");
  folder.write("own.html", "@other@");
  CHECK(make_page(request, nullptr).error().what == "unknown name '@other@'");
  folder.write("own.html", "@file:nowhere@");
  CHECK(make_page(request, nullptr).error().what.find("nowhere") != std::string::npos);
}
