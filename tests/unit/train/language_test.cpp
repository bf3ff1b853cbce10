// A language model in the loop: its losses, perplexity and rates as tokens, evaluation within an epoch and on
// some batches alone, a target loss, and the same bits after a resume in the middle of an epoch.
#include "runtime/train/language.hpp"

#include <doctest/doctest.h>

#include "runtime/checkpoint/file_system.hpp"
#include "runtime/comm/one_rank.hpp"
#include "runtime/data/synthetic.hpp"
#include "runtime/train/resume.hpp"
#include "runtime/train/trainer.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "tests/unit/checkpoint/support.hpp"
#include "tests/unit/train/fake_agent.hpp"
#include "tests/unit/train/fake_language_engine.hpp"
#include "tests/unit/train/thread_ranks.hpp"

namespace dlrun::runtime {
namespace {

const InputShape kSequences = token_sequences(8, 20);

// One training over the fake model; each run() is a process of its own in miniature.
struct LanguageJob {
  DataParts data = *make_synthetic(kSequences, 203, 1);
  TrainSpec spec;
  int world = 1;
  std::optional<std::uint64_t> stop_at;
  std::filesystem::path folder;  // of metrics
  std::string control = {};      // the agent's socket

  LanguageJob() {
    spec.model = "fake";
    spec.batch = 8;
    spec.epochs = 2;
    spec.optimizer = {.learning_rate = 4, .weight_decay = 0};
  }

  struct Outcome {
    Result<Ending> ending = Ending::stopped;
    Position position;
    std::vector<float> weights = std::vector<float>(400);
  };

  std::vector<Outcome> run() {
    std::vector<Outcome> out(static_cast<std::size_t>(world));
    test::on_ranks(world,
                   [&](Communicator& comm) { rank(comm, out[static_cast<std::size_t>(comm.rank())]); });
    for (const Outcome& outcome : out)
      REQUIRE_MESSAGE(outcome.ending.has_value(), outcome.ending.error().text());
    return out;
  }

  void rank(Communicator& comm, Outcome& out) {
    test::FakeLanguageEngine engine(kSequences, spec.batch);
    Reporter reporter(ControlChannel::open(control, comm.rank()), comm.rank(), {});
    if (comm.rank() == 0 && !folder.empty()) REQUIRE(reporter.open_files(folder, 0));
    const auto files = real_file_system();
    std::unique_ptr<Checkpointing> checkpoints;
    std::optional<LoadedCheckpoint> chosen;
    if (comm.rank() == 0 && !spec.checkpoint.folder.empty()) {
      Manifest facts = test::manifest_at(0, engine);
      facts.identity.samples = data.train.count;
      facts.tokenizer = "a tokenizer";
      checkpoints = *Checkpointing::open(spec.checkpoint, *files, engine, facts,
                                         {.process = this_process(), .job = {}, .run = "language"}, reporter);
      chosen = *checkpoints->choose(reporter);
    }
    const Position start = resume(engine, comm, chosen ? &*chosen : nullptr)->position;
    Trainer* running = nullptr;
    GradientExchange gradients = *GradientExchange::make(spec, engine, comm);
    Trainer trainer({.spec = spec,
                     .engine = engine,
                     .comm = comm,
                     .gradients = gradients,
                     .data = data,
                     .reporter = reporter,
                     .checkpoints = checkpoints.get(),
                     .local_requests =
                         [&] {
                           return Requests{.save = false,
                                           .stop = stop_at && running->position().step + 1 >= *stop_at};
                         },
                     .folder = folder},
                    start);
    running = &trainer;
    out.ending = spec.benchmark ? trainer.run_benchmark(*spec.benchmark) : trainer.run();
    out.position = trainer.position();
    REQUIRE(engine.read_tensor(0, out.weights).has_value());
  }
};

std::vector<Json> lines_with(const std::filesystem::path& folder, const char* key) {
  std::vector<Json> out;
  for (const std::string& line : split(read_file(folder / "metrics.jsonl").value(), '\n'))
    if (const auto json = parse_json(line, "metrics"); !line.empty() && json->contains(key))
      out.push_back(*json);
  return out;
}

}  // namespace

TEST_CASE("a perplexity is short, however far off the model is") {
  CHECK(perplexity_text(18.2049) == "18.20");
  CHECK(perplexity_text(999999.125) == "999999.12");
  CHECK(perplexity_text(5184705528587072045056.0) == "5.18e+21");
}

TEST_CASE("a language model learns, is validated after each epoch, and counts tokens") {
  const test::Folder folder;
  LanguageJob job;
  job.folder = folder.path;
  job.run();
  const auto epochs = lines_with(folder.path, "validation_perplexity");
  REQUIRE(epochs.size() == 2);
  CHECK(epochs[0]["step"] == 26);  // 203 sequences in batches of 8
  for (const Json& line : epochs) {
    const double loss = line["validation_loss"].get<double>();
    CHECK(line["validation_perplexity"].get<double>() == doctest::Approx(std::exp(loss)).epsilon(1e-4));
    CHECK(line["validation_accuracy"].get<double>() > 0.2);  // 0.5 follow from the one before, of 20
    CHECK(line["validation_accuracy"].get<double>() <= 0.65);
    CHECK(line.contains("epoch_perplexity"));
  }
  CHECK(epochs[1]["validation_loss"] < epochs[0]["validation_loss"]);
  CHECK(epochs[1]["validation_loss"] < 2.4);  // log 20 is 3.0
  const auto rates = lines_with(folder.path, "tokens_per_s");
  CHECK(rates.size() >= 3);
  CHECK(lines_with(folder.path, "images_per_s").empty());
  CHECK(rates.back()["accuracy"].get<double>() <= 1);
}

TEST_CASE("within an epoch a language model is validated every so many steps, on so many batches") {
  const test::Folder all_folder, some_folder;
  LanguageJob job;
  job.spec.evaluate = EvaluateSpec{.every = 10, .batches = {}};
  job.folder = all_folder.path;
  const auto with = job.run();
  const auto all = lines_with(all_folder.path, "validation_loss");
  std::vector<std::uint64_t> steps;
  for (const Json& line : all) steps.push_back(line["step"]);
  CHECK(steps == std::vector<std::uint64_t>{10, 20, 26, 30, 40, 50, 52});
  CHECK(all[0].contains("epoch_loss") == false);
  CHECK(all[2].contains("epoch_loss"));
  job.spec.evaluate->batches = 1;
  job.folder = some_folder.path;
  const auto some = job.run();
  const auto few = lines_with(some_folder.path, "validation_loss");
  REQUIRE(few.size() == all.size());
  CHECK(few[0]["validation_loss"] != all[0]["validation_loss"]);
  CHECK(few[2]["validation_loss"] == all[2]["validation_loss"]);  // of the epoch: everything
  job.spec.evaluate.reset();
  job.folder.clear();
  CHECK(job.run()[0].weights == with[0].weights);  // to look changes nothing
}

TEST_CASE("a training of tokens that is stopped in the middle of an epoch ends with the same bits") {
  LanguageJob job;
  const auto whole = job.run();
  const test::Folder folder;
  job.spec.checkpoint.folder = folder.path;
  job.stop_at = 17;
  CHECK(job.run()[0].position == Position{.step = 17, .epoch = 0, .seen = 136});
  CHECK(read_file(folder.path / "step-00000017" / "tokenizer.json").value() == "a tokenizer");
  job.stop_at.reset();
  const auto resumed = job.run();
  CHECK(resumed[0].position == whole[0].position);
  CHECK(resumed[0].weights == whole[0].weights);
}

TEST_CASE("ranks share the sequences and the evaluation") {
  const test::Folder one_folder, two_folder;
  LanguageJob one, two;
  one.spec.batch = 8;
  two.spec.batch = 4;
  two.world = 2;
  one.folder = one_folder.path;
  two.folder = two_folder.path;
  const auto alone = one.run(), shared = two.run();
  CHECK(shared[0].weights == shared[1].weights);
  for (std::size_t i = 0; i < alone[0].weights.size(); ++i)
    CHECK(shared[0].weights[i] == doctest::Approx(alone[0].weights[i]).epsilon(1e-3));
  CHECK(
      lines_with(two_folder.path, "validation_loss").back()["validation_loss"].get<double>() ==
      doctest::Approx(lines_with(one_folder.path, "validation_loss").back()["validation_loss"].get<double>())
          .epsilon(1e-4));
}

TEST_CASE("a validation split and a target loss") {
  const test::Folder folder;
  LanguageJob job;
  job.folder = folder.path;
  job.spec.data.train_share = 0.75;
  job.spec.epochs = 50;
  job.spec.stop_at_loss = 2.4;
  job.data.test.count = 0;  // there are no validation files
  const auto out = job.run();
  CHECK(out[0].position.epoch < 50);
  const auto lines = lines_with(folder.path, "validation_loss");
  CHECK(lines.back()["validation_loss"].get<double>() <= 2.4);
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) CHECK(lines[i]["validation_loss"].get<double>() > 2.4);
}

TEST_CASE("beside a validation split, validation files are the test set of the end") {
  test::FakeAgent agent;
  LanguageJob job;
  job.control = agent.name;
  job.spec.data.train_share = 0.75;
  job.run();
  agent.accept();
  const std::string told = agent.hear();
  CHECK(test::contains(told, "\"test_loss\""));
  CHECK(test::contains(told, "\"validation_loss\""));
}

TEST_CASE("a benchmark of a language model counts tokens") {
  LanguageJob job;
  job.spec.benchmark = BenchmarkSpec{.warmup = 1, .steps = 3, .repeat = 2};
  job.run();
  const BenchmarkFigures figures{.steps = {}, .unit = unit_of(kSequences), .ranks = {{1e-3, 0, 0}}};
  const Json json = figures.to_json();
  CHECK(json.contains("tokens_per_s"));
  CHECK(json["input"].contains("tokens_per_s_repeated_batch"));
  CHECK(to_pretty_text(json).find("images") == std::string::npos);
  for (const std::string& line : figures.lines()) CHECK(line.find("images") == std::string::npos);
}

}  // namespace dlrun::runtime
