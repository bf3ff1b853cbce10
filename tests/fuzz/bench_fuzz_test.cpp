// A damaged bench.json is an error with words, or a bench whose tables can be made in every format, that can
// be compared with itself, and of which a prediction is made or refused.
#include <doctest/doctest.h>

#include "src/bench/predict/predict.hpp"
#include "src/bench/results/compare.hpp"
#include "src/bench/results/formats.hpp"
#include "src/bench/results/page_data.hpp"
#include "tests/fuzz/mutate.hpp"

using namespace dlrun;
using namespace dlrun::bench::results;

namespace {

const std::string kBench = R"({"schema": 1, "name": "a", "mode": "rate", "unit": "images/s",
 "axes": [{"key": "nodes", "values": [1, 2]}, {"key": "data", "values": ["real", "synthetic"]}, {"key": "batch", "values": [8]}],
 "machine": {"cpu": "x", "gpu": null},
 "points": [{"id": "1", "values": {"nodes": 1, "data": "real", "batch": 8}, "repeat": 0, "ranks": 1, "status": "done", "rate": 9.5,
   "step_seconds": {"mean": 0.1, "std": 0.01, "n": 100}, "metrics": {"accuracy": 0.9}, "gpu_bytes": 7},
  {"id": "2", "values": {"nodes": 1, "data": "synthetic", "batch": 8}, "repeat": 1, "ranks": 1, "status": "done", "rate": 10},
  {"id": "3", "values": {"nodes": 2, "data": "real"}, "repeat": 0, "ranks": null, "status": "out-of-memory", "why": "no | memory"}]}
)";

void all_formats(const Bench& bench) {
  const auto cells = cells_of(bench);
  const Table table = table_of(bench, cells);
  CHECK_FALSE(csv_text(bench, cells).empty());
  CHECK_FALSE(to_text(cells_json(bench, cells)).empty());
  CHECK_FALSE(markdown_text(table).empty());
  CHECK_FALSE(latex_text(table).empty());
  for (const auto& row : table.rows) CHECK(row.size() == table.columns.size());
  CHECK_FALSE(to_text(page_json(bench, cells)).empty());
  const auto same = compare(bench, bench, 0.02);
  CHECK((!same || !has_regression(*same)));
  for (const auto& network :
       {std::optional<bench::predict::Network>(), std::optional(*bench::predict::find_network("hdr"))}) {
    const auto forecast =
        bench::predict::predict(bench, {.nodes = {1, 4096}, .network = network, .bytes = 1e8});
    CHECK((forecast ? !table_of(*forecast).rows.empty() : !forecast.error().text().empty()));
  }
  if (!bench.axes.empty()) CHECK(table_across(bench, cells, bench.axes[0].key));
}

}  // namespace

TEST_CASE("a damaged bench.json") {
  test::Mutator mutator({kBench}, test::odd_values());
  for (test::Texts texts; texts.next();) {
    const auto json = parse_json(mutator.next(), "bench.json");
    if (!json) continue;
    const auto bench = parse_bench(*json, "bench.json");
    if (bench)
      all_formats(*bench);
    else
      CHECK_FALSE(bench.error().text().empty());
  }
}
