// What a table of a bench shows of its points.
#include "src/bench/results/table.hpp"
#include "tests/unit/bench_results/support.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::bench::results;
using test::bench_json;
using test::bench_of;
using test::done;
using test::failed;

namespace {

std::vector<std::string> texts(const std::vector<TableCell>& row) {
  std::vector<std::string> out;
  for (const TableCell& cell : row) out.push_back(cell.text);
  return out;
}

bool has_note(const Table& table, const std::string& part) {
  for (const std::string& note : table.notes)
    if (note.find(part) != std::string::npos) return true;
  return false;
}

// The weak scaling of Inception v3 on Piz Daint that was published, 1 to 8 GPUs.
const Json kScaling = bench_json({{{"key", "nodes"}, {"values", {1, 2, 4, 8}}}},
                                 {done({{"nodes", 4}}, 523.38, 0, 4), done({{"nodes", 1}}, 138.23),
                                  done({{"nodes", 2}}, 264.57, 0, 2), done({{"nodes", 8}}, 1018.18, 0, 8)});

std::string error_of(const Json& json) {
  const auto bench = parse_bench(json, "b.json");
  REQUIRE_FALSE(bench.has_value());
  CHECK_FALSE(bench.error().hint.empty());
  return bench.error().text();
}

}  // namespace

TEST_CASE("repeats are one cell with a mean and the standard deviation of a sample") {
  const Bench bench = bench_of(bench_json({{{"key", "batch"}, {"values", {32}}}},
                                          {done({{"batch", 32}}, 98), done({{"batch", 32}}, 102, 1)}));
  const auto cells = cells_of(bench);
  REQUIRE(cells.size() == 1);
  CHECK(cells[0].rate->mean == doctest::Approx(100));
  CHECK(cells[0].rate->std == doctest::Approx(2.8284));
  CHECK(with_deviation(*cells[0].rate) == "100 ± 3");
}

TEST_CASE("cells are in the order of the axes, with speed-up and efficiency against the smallest") {
  const Bench bench = bench_of(kScaling);
  const Table table = table_of(bench, cells_of(bench));
  CHECK(table.columns[1].name == "images/s");
  CHECK(texts(table.rows[0]) == std::vector<std::string>{"1", "138.2", "1", "100.0 %", "1"});
  CHECK(texts(table.rows[3]) == std::vector<std::string>{"8", "1018", "7.366", "92.1 %", "8"});
}

TEST_CASE("nodes and ranks of a node multiply, and each series has its own smallest cell") {
  Json points = Json::array();
  for (const int nodes : {2, 4})
    for (const int tasks : {1, 2})
      for (const char* dtype : {"f32", "bf16"})
        points.push_back(done({{"nodes", nodes}, {"tasks-per-node", tasks}, {"dtype", dtype}},
                              nodes * tasks * (dtype[0] == 'f' ? 10.0 : 20.0) * (nodes == 4 ? 0.5 : 1)));
  const Bench bench = bench_of(bench_json({{{"key", "nodes"}, {"values", {2, 4}}},
                                           {{"key", "tasks-per-node"}, {"values", {1, 2}}},
                                           {{"key", "dtype"}, {"values", {"f32", "bf16"}}}},
                                          points));
  for (const Cell& cell : cells_of(bench))
    CHECK(*cell.efficiency == doctest::Approx(cell.values[0] == 4 ? 0.5 : 1));
}

TEST_CASE("each size has its own number of servers, and the smallest its best one") {
  const auto cell = [](int nodes, int servers, double rate) {
    return done({{"nodes", nodes}, {"servers", servers}}, rate);
  };
  const Bench bench = bench_of(
      bench_json({{{"key", "nodes"}, {"values", {1, 4}}}, {{"key", "servers"}, {"values", {1, 2, 3}}}},
                 {cell(1, 1, 90), cell(1, 2, 100), cell(4, 3, 360)}));
  const auto cells = cells_of(bench);
  CHECK(*cells[0].efficiency == doctest::Approx(0.9));
  CHECK(*cells[2].efficiency == doctest::Approx(0.9));
}

TEST_CASE("I/O overhead is the share of the synthetic rate that real data cost") {
  const Bench bench = bench_of(
      bench_json({{{"key", "nodes"}, {"values", {8}}}, {{"key", "data"}, {"values", {"synthetic", "real"}}}},
                 {done({{"nodes", 8}, {"data", "synthetic"}}, 1018.18),
                  done({{"nodes", 8}, {"data", "real"}}, 911.84)}));
  const auto cells = cells_of(bench);
  CHECK_FALSE(cells[0].io_overhead);
  CHECK(*cells[1].io_overhead == doctest::Approx(0.1044).epsilon(0.001));
  CHECK(texts(table_of(bench, cells).rows[1])[3] == "10.4 %");
}

TEST_CASE("the best number of servers, the largest batch that fits, and why cells failed are said") {
  const Bench servers =
      bench_of(bench_json({{{"key", "nodes"}, {"values", {2, 4}}},
                           {{"key", "train.parameter-server.servers"}, {"values", {1, 2}}}},
                          {done({{"nodes", 2}, {"train.parameter-server.servers", 1}}, 20),
                           done({{"nodes", 2}, {"train.parameter-server.servers", 2}}, 15),
                           done({{"nodes", 4}, {"train.parameter-server.servers", 1}}, 21),
                           done({{"nodes", 4}, {"train.parameter-server.servers", 2}}, 30)}));
  CHECK(has_note(table_of(servers, cells_of(servers)), "best number of servers: 1 at nodes=2; 2 at nodes=4"));

  const Bench batch =
      bench_of(bench_json({{{"key", "batch"}, {"values", {64, 128, 256}}}},
                          {done({{"batch", 64}}, 900), done({{"batch", 128}}, 1000),
                           failed({{"batch", 256}}, "out-of-memory", "rank 0: CUDA error: out of memory")}));
  const Table table = table_of(batch, cells_of(batch));
  CHECK(has_note(table, "best batch: 128"));
  CHECK(has_note(table, "largest batch that fits: 128 (256 runs out of memory)"));
  CHECK(has_note(table, "batch=256: out-of-memory: rank 0: CUDA error: out of memory"));
  CHECK(table.rows[2][1].text == "out of memory");
  CHECK(table.rows[2][1].mark == Mark::failed);
}

TEST_CASE("a failed repeat of a cell that has a rate is noted, and open cells are counted") {
  Json bad = failed({{"batch", 8}}, "failed", "rank 1: exit code 3");
  bad["repeat"] = 1;
  Json open = failed({{"batch", 16}}, "pending", "");
  const Bench bench =
      bench_of(bench_json({{{"key", "batch"}, {"values", {8, 16}}}}, {done({{"batch", 8}}, 5), bad, open}));
  const Table table = table_of(bench, cells_of(bench));
  CHECK(table.rows[0][1].text == "5");
  CHECK(has_note(table, "batch=8: failed (1 of 2 repeats): rank 1: exit code 3"));
  CHECK(has_note(table, "1 of 2 cells are not measured yet"));
}

TEST_CASE("values of an axis as columns, the best of each row marked") {
  const Bench bench = bench_of(bench_json(
      {{{"key", "nodes"}, {"values", {1, 2}}}, {{"key", "train.batch"}, {"values", {32, 64}}}},
      {done({{"nodes", 1}, {"train.batch", 32}}, 10), done({{"nodes", 1}, {"train.batch", 64}}, 12),
       done({{"nodes", 2}, {"train.batch", 32}}, 18)}));
  const auto table = table_across(bench, cells_of(bench), "batch");
  REQUIRE(table);
  CHECK(table->columns[2].name == "batch=64");
  CHECK(texts(table->rows[0]) == std::vector<std::string>{"1", "10", "12"});
  CHECK(table->rows[0][2].mark == Mark::best);
  CHECK(texts(table->rows[1]) == std::vector<std::string>{"2", "18", "-"});
  const auto wrong = table_across(bench, cells_of(bench), "bacth");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().text().find("did you mean 'batch'") != std::string::npos);
}

TEST_CASE("of trainings, the final metrics are the table, and the best run is named") {
  const auto trained = [](double lr, double accuracy, int repeat) {
    Json point = done({{"lr", lr}}, 1, repeat);
    point["metrics"] = {{"test_accuracy", accuracy}, {"test_loss", 1 - accuracy}};
    point["seconds"] = 10 + repeat;
    return point;
  };
  const Bench bench = bench_of(bench_json(
      {{{"key", "lr"}, {"values", {0.1, 0.01}}}},
      {trained(0.1, 0.90, 0), trained(0.1, 0.92, 1), trained(0.01, 0.80, 0), trained(0.01, 0.80, 1)},
      "metrics"));
  const Table table = table_of(bench, cells_of(bench));
  CHECK(table.columns[1].name == "test_accuracy");
  CHECK(texts(table.rows[0]) ==
        std::vector<std::string>{"0.1", "0.9100 ± 0.0141", "0.09000 ± 0.01414", "1", "10.50 ± 0.71"});
  CHECK(has_note(table, "best run by test_accuracy: 0.9100 ± 0.0141 at lr=0.1, points/0001"));
}

TEST_CASE("trainings with several seeds are repeats of each other") {
  Json points = Json::array();
  for (const int nodes : {1, 2})
    for (const int seed : {1, 2, 3}) {
      points.push_back(done({{"nodes", nodes}, {"train.seed", seed}}, 1));
      points.back()["metrics"] = {{"test_accuracy", 0.9 + 0.01 * seed}};
      points.back()["seconds"] = 60.0 / nodes + seed;
    }
  const Bench bench = with_seeds_as_repeats(bench_of(
      bench_json({{{"key", "nodes"}, {"values", {1, 2}}}, {{"key", "train.seed"}, {"values", {1, 2, 3}}}},
                 points, "metrics")));
  const Table table = table_of(bench, cells_of(bench));
  CHECK(texts(table.rows[1]) == std::vector<std::string>{"2", "0.9200 ± 0.0100", "1", "32 ± 1"});
  const Bench alone = with_seeds_as_repeats(
      bench_of(bench_json({{{"key", "train.seed"}, {"values", {1, 2}}}},
                          {done({{"train.seed", 1}}, 100), done({{"train.seed", 2}}, 110)})));
  const Table row = table_of(alone, cells_of(alone));
  CHECK(row.rows.size() == 1);
  CHECK(texts(row.rows[0]).front() == "105 ± 7");
}

TEST_CASE("numbers have four digits, and as many as their standard deviation needs") {
  CHECK(short_number(0) == "0");
  CHECK(short_number(9219.7) == "9220");
  CHECK(short_number(0.00012345) == "0.0001234");
  CHECK(short_number(1e12) == "1.000e+12");
  CHECK(with_deviation({.mean = 1234.5, .std = 0.02, .n = 3}) == "1234 ± 0.02");
  CHECK(with_deviation({.mean = 12.3, .std = 0, .n = 3}) == "12.30 ± 0.00");
}

TEST_CASE("what is no bench.json is refused with its place and a next step") {
  CHECK(error_of(Json::array()).find("not a JSON object") != std::string::npos);
  Json json = kScaling;
  json["schema"] = 2;
  CHECK(error_of(json).find("schema 2 is not supported") != std::string::npos);
  json = kScaling;
  json["points"][2]["rate"] = "fast";
  CHECK(error_of(json).find("b.json: points[2]: field 'rate' is not a number from 0 on: \"fast\"") == 0);
  json["points"][2]["rate"] = 1e308;  // sums of such are no numbers
  CHECK(error_of(json).find("b.json: points[2]: field 'rate' is larger than 1e+15: 1e+308") == 0);
  json = kScaling;
  json["points"][0]["status"] = "finished";
  CHECK(error_of(json).find("points[0]: field 'status' has the unknown value 'finished'") !=
        std::string::npos);
  json = kScaling;
  json["points"][1]["values"]["nodes"] = Json::array();
  CHECK(error_of(json).find("the value of 'nodes' is a list") != std::string::npos);
}

TEST_CASE("a folder has its bench.json; what is damaged or not there is said with its place") {
  const test::Folder folder;
  const auto missing = read_bench(folder.path);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().text().find("bench.json") != std::string::npos);
  folder.write("bench.json", to_pretty_text(kScaling));
  CHECK(read_bench(folder.path)->points.size() == 4);
  folder.write("bench.json", "{\"schema\": 1,\n \"name\"");
  const auto torn = read_bench(folder.path);
  REQUIRE_FALSE(torn);
  CHECK(torn.error().where.find("bench.json:2:") != std::string::npos);
  CHECK_FALSE(torn.error().hint.empty());
}
