// What a training is for decides what is measured after an epoch and reported at the end: the loop over a
// tiny model, once as a classifier and once as a GAN.
#include "runtime/train/task.hpp"

#include <doctest/doctest.h>

#include "runtime/comm/one_rank.hpp"
#include "runtime/data/synthetic.hpp"
#include "runtime/train/trainer.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "tests/unit/checkpoint/support.hpp"
#include "tests/unit/train/fake_engine.hpp"

namespace dlrun::runtime {
namespace {

using test::small_shape;

// Generates one grey, and judges every image rightly.
class FakeGan final : public test::FakeEngine, private GanEngine {
 public:
  using FakeEngine::FakeEngine;
  GanEngine* gan() override { return this; }
  Result<void> generate(std::span<float> images) override {
    std::fill(images.begin(), images.end(), 0.5F);
    return {};
  }
  BatchResult train_batch(std::uint64_t step, const std::function<void(std::size_t)>& on_bucket) override {
    (void)FakeEngine::train_batch(step, on_bucket);
    std::int64_t rows = 0;
    for (const std::int32_t label : labels()) rows += label >= 0 ? 1 : 0;
    return {.loss_sum = 0.25 * static_cast<double>(rows),
            .correct = 2 * rows,
            .generator_loss_sum = 3.0 * static_cast<double>(rows)};
  }
};

std::vector<Json> metrics_of(const std::filesystem::path& folder) {
  std::vector<Json> out;
  for (const std::string& line : split(read_file(folder / "metrics.jsonl").value(), '\n'))
    if (!line.empty()) out.push_back(parse_json(line, "metrics").value());
  return out;
}

// Two epochs of 20 samples; the lines of metrics.jsonl.
std::vector<Json> train(Engine& engine, const TrainSpec& spec, const std::filesystem::path& folder) {
  const DataParts data = *make_synthetic(small_shape, 20, 1);
  const auto comm = make_one_rank_communicator();
  Reporter reporter(ControlChannel::open("", 0), 0, {});
  REQUIRE(reporter.open_files(folder, 0));
  GradientExchange gradients = *GradientExchange::make(spec, engine, *comm);
  Trainer trainer({.spec = spec,
                   .engine = engine,
                   .comm = *comm,
                   .gradients = gradients,
                   .data = data,
                   .reporter = reporter,
                   .checkpoints = nullptr,
                   .local_requests = [] { return Requests{}; },
                   .folder = folder},
                  {});
  const auto ending = trainer.run();
  REQUIRE_MESSAGE(ending.has_value(), ending.error().text());
  return metrics_of(folder);
}

TrainSpec two_epochs() {
  TrainSpec spec;
  spec.model = "fake";
  spec.batch = 8;
  spec.epochs = 2;
  return spec;
}

std::size_t count_lines_with(const std::vector<Json>& lines, const char* key) {
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [&](const Json& line) { return line.contains(key); }));
}

}  // namespace

TEST_CASE("a classifier has one loss, and is tested after each epoch") {
  const test::Folder folder;
  test::FakeEngine engine(small_shape, 8);
  const auto lines = train(engine, two_epochs(), folder.path);
  CHECK(count_lines_with(lines, "loss") > 0);
  CHECK(count_lines_with(lines, "loss_d") == 0);
  CHECK(count_lines_with(lines, "test_accuracy") == 2);
  CHECK(!std::filesystem::exists(folder.path / "samples-epoch-0001.png"));
}

TEST_CASE("a classifier with a validation split is evaluated on that") {
  const test::Folder folder;
  test::FakeEngine engine(small_shape, 8);
  TrainSpec spec = two_epochs();
  spec.data.train_share = 0.8;
  const auto lines = train(engine, spec, folder.path);
  CHECK(count_lines_with(lines, "validation_accuracy") == 2);
  CHECK(count_lines_with(lines, "test_accuracy") == 0);
}

TEST_CASE(
    "a GAN has two losses, two answers per row, and a grid of images after each epoch instead of a test") {
  const test::Folder folder;
  FakeGan engine(small_shape, 8);
  const auto lines = train(engine, two_epochs(), folder.path);
  CHECK(count_lines_with(lines, "loss") == 0);
  CHECK(count_lines_with(lines, "test_accuracy") == 0);
  REQUIRE(count_lines_with(lines, "epoch_loss_g") == 2);
  const Json& last = lines.back();
  CHECK(last["epoch_loss_d"] == 0.25);
  CHECK(last["epoch_loss_g"] == 3);
  CHECK(last["epoch_accuracy"] == 1);
  for (const char* grid : {"samples-epoch-0001.png", "samples-epoch-0002.png"})
    CHECK(std::filesystem::exists(folder.path / grid));
}

}  // namespace dlrun::runtime
