#include "runtime/train/settings.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

TrainSpec spec_of(const std::string& more) {
  return *read_train_spec(*yaml::parse(
      "name: x\ntrain:\n  model: mnist-cnn\n  data: {format: idx, dir: /d}\n" + more, "job.yaml"));
}

std::vector<std::string> changes(const std::string& there, const std::string& here) {
  return changed_settings(settings_of(spec_of(there)), settings_of(spec_of(here)));
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a checkpoint that knows allreduce.dtype under its old name is compared all the same") {
  Settings old = settings_of(spec_of(""));
  old["allreduce.wire"] = old["allreduce.dtype"];
  old.erase("allreduce.dtype");
  CHECK(changed_settings(old, settings_of(spec_of(""))).empty());
  CHECK(changed_settings(old, settings_of(spec_of("  allreduce: {dtype: bf16}\n"))) ==
        Lines{"allreduce.dtype: f32 in the checkpoint, bf16 now"});
}

TEST_CASE("each setting that differs from the checkpoint's is one line, and a default is no difference") {
  CHECK(changes("", "").empty());
  CHECK(changes("", "  batch: 64\n  optimizer: {lr: 0.05}\n").empty());
  CHECK(changes("  optimizer: {lr: 0.01}\n", "  batch: 32\n  optimizer: {lr: 0.1}\n") ==
        Lines{"batch: 64 in the checkpoint, 32 now", "optimizer.lr: 0.01 in the checkpoint, 0.1 now"});
  CHECK(changes("  schedule: {warmup: 10steps}\n", "  precision: bf16\n  stop-at: {accuracy: 0.9}\n") ==
        Lines{"precision: f32 in the checkpoint, bf16 now",
              "schedule.warmup: 10 steps in the checkpoint, none now",
              "stop-at.accuracy: none in the checkpoint, 0.9 now"});
}

TEST_CASE("evaluations within epochs are a setting where ranks average for them") {
  const auto of = [](const std::string& more) {
    return settings_of(*read_train_spec(*yaml::parse(
        "name: x\ntrain:\n  model: gpt2\n  data: {format: synthetic, context: 8, samples: 9}\n" + more,
        "job.yaml")));
  };
  const std::string sync = "  sync: {every: 4}\n", often = "  evaluate: {every: 8steps}\n";
  CHECK(changed_settings(of(sync), of(sync + often)) ==
        Lines{"evaluate.every: none in the checkpoint, 8 steps now"});
  CHECK(changed_settings(of(""), of(often)).empty());
}

TEST_CASE("a staleness is a setting, and servers without one are not") {
  CHECK(changes("", "  parameter-server: {}\n").empty());
  CHECK(changes("", "  parameter-server: {staleness: 2}\n") ==
        Lines{"parameter-server.staleness: 0 in the checkpoint, 2 now"});
}

TEST_CASE("a part of a global batch is no setting, the whole is") {
  CHECK(changes("  global-batch: 64\n", "  global-batch: 128\n  accumulate: 2\n") ==
        Lines{"accumulate: 1 in the checkpoint, 2 now", "global-batch: 64 in the checkpoint, 128 now"});
}

TEST_CASE("another kind of momentum and other parameters without weight decay are differences") {
  CHECK(changes("  optimizer: {no-decay: vectors}\n", "  optimizer: {nesterov: true}\n") ==
        Lines{"optimizer.nesterov: false in the checkpoint, true now",
              "optimizer.no-decay: vectors in the checkpoint, none now"});
}

TEST_CASE("more epochs stretch a schedule that decays to the end, and that is said") {
  CHECK(changes("  epochs: 2\n", "  epochs: 3\n") == Lines{"epochs: 2 in the checkpoint, 3 now"});
  CHECK(changes("  epochs: 2\n  schedule: {decay: cosine}\n", "  epochs: 3\n  schedule: {decay: cosine}\n") ==
        Lines{"schedule: cosine over 2 epochs in the checkpoint, 3 now"});
}

TEST_CASE(
    "a checkpoint of an older version, without settings or with fewer, differs in nothing that it has not") {
  const Settings here = settings_of(spec_of(""));
  CHECK(changed_settings({}, here).empty());
  CHECK(changed_settings({{"batch", "64"}, {"of-another-version", "1"}}, here).empty());
}

TEST_CASE("finished under other settings is an error that names them and the way out") {
  CHECK(check_finished({}, "ckpt/step-1", "it is finished"));
  const auto error =
      check_finished({"batch: 64 in the checkpoint, 32 now"}, "ckpt/step-1", "2 epochs are complete");
  REQUIRE_FALSE(error);
  CHECK(error.error().kind == ErrorKind::input);
  CHECK(error.error().text() ==
        "ckpt/step-1: 2 epochs are complete, but with other settings than this job's: nothing was trained\n"
        "  batch: 64 in the checkpoint, 32 now\n"
        "  hint: to train with the new settings, set another folder: --set checkpoint.dir=ckpt2; or restore "
        "the settings");
}

TEST_CASE(
    "another processor or library is said in one line, once; what one of the two does not tell is not") {
  const Settings there{{"instructions", "AVX-512"}, {"threads", "4"}, {"onednn", "2.6.3"}};
  CHECK(other_arithmetic(there, there).empty());
  CHECK(other_arithmetic({}, there).empty());
  CHECK(other_arithmetic(there, {{"instructions", "AVX2"}, {"threads", "2"}, {"processor", "x"}}) ==
        "the last bits may differ from those of one run: instructions AVX-512 in the checkpoint, AVX2 now; "
        "threads 4 in the checkpoint, 2 now");
}
