// Lines of metrics as columns, and the series that are made of them.
#include <doctest/doctest.h>

#include "src/base/json.hpp"
#include "src/report/page/metric_series.hpp"
#include "src/report/page/metric_table.hpp"

using namespace dlrun;
using namespace dlrun::report;

namespace {

MetricTable table_of(std::initializer_list<const char*> lines) {
  MetricTable out;
  out.begin_file();
  for (const char* line : lines) out.add_line(line);
  return out;
}

const MetricColumn* column_of(const MetricTable& table, std::string_view name) {
  for (const MetricColumn& each : table.columns())
    if (each.name == name) return &each;
  return nullptr;
}

}  // namespace

TEST_CASE("numbers of each line go into their columns") {
  const MetricTable table =
      table_of({R"({"step":1,"loss":2.5,"time":100})", R"({"step":2, "loss": -1e-3 ,"time":100.5})",
                R"({"step":2,"validation_loss":0.25,"epochs":3})"});
  CHECK(table.lines() == 3);
  CHECK(table.unread() == 0);
  CHECK(column_of(table, "loss")->values == std::vector<double>{2.5, -1e-3});
  CHECK(column_of(table, "validation_loss")->rows == std::vector<std::uint32_t>{2});
  CHECK(column_of(table, "seconds_per_step")->values == std::vector<double>{0.5});
  CHECK(column_of(table, "epochs") == nullptr);  // where it is in the run, no figure
}

TEST_CASE("what is more than plain numbers is parsed, and what is no line of metrics is counted") {
  const MetricTable table =
      table_of({R"({"step":1,"note":"a \"b\"","loss":1,"at":[1,2]})", R"({"step":2,"lo)", "no JSON",
                R"({"loss":3})", R"({"step":3,"loss":null})", "", "{}"});
  CHECK(table.lines() == 2);
  CHECK(table.unread() == 4);
  CHECK(column_of(table, "loss")->values == std::vector<double>{1});
}

TEST_CASE("steps that a later link did again are there once") {
  MetricTable table =
      table_of({R"({"step":1,"loss":1})", R"({"step":2,"loss":2})", R"({"step":3,"loss":3})"});
  table.begin_file();
  table.add_line(R"({"step":2,"loss":20})");
  table.add_line(R"({"step":3,"loss":30})");
  CHECK(table.steps() == std::vector<double>{1, 2, 3});
  CHECK(column_of(table, "loss")->values == std::vector<double>{1, 20, 30});
  CHECK(table.repeated() == 2);
}

TEST_CASE("the name of a figure decides its plot") {
  CHECK(group_of("validation_loss") == "loss");
  CHECK(group_of("images_per_s") == "throughput");
  CHECK(group_of("tokens_per_second") == "throughput");
  CHECK(group_of("seconds_per_step") == "step_time");
  CHECK(group_of("learning_rate") == "learning_rate");
  CHECK(group_of("test_accuracy") == "accuracy");
  CHECK(group_of("gpu_utilization") == "gpu");
  CHECK(group_of("gpu_memory_bytes") == "memory");
  CHECK(group_of("gpu_power_watts") == "energy");
  CHECK(group_of("bleu") == "other");
}

TEST_CASE("a series has the figures of all its points, in the order of its steps") {
  const MetricTable table =
      table_of({R"({"step":30,"loss":9})", R"({"step":10,"loss":1.23456789})", R"({"step":20,"loss":4})"});
  const Json series = series_json(table, {.points = 4, .series = 1}).at("series").at(0);
  CHECK(series.at("x") == Json{10, 20, 30});
  CHECK(series.at("y") == Json{1.2346, 4, 9});
  CHECK(series.at("highest") == Json{{"step", 30}, {"value", 9}});
  CHECK(series.at("lowest").at("step") == 10);
  CHECK(series.at("last").at("value") == 9);
  CHECK(series.at("median") == 4);
}

TEST_CASE("too many figures are named") {
  const MetricTable table = table_of({R"({"step":1,"a":1,"b":2,"c":3})"});
  const Json out = series_json(table, {.points = 4, .series = 2});
  CHECK(out.at("series").size() == 2);
  CHECK(out.at("not_shown") == Json{"c"});
}
