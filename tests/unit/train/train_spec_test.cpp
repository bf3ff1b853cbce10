#include "runtime/train/train_spec.hpp"

#include <doctest/doctest.h>

#include "runtime/train/gpu_decoder.hpp"
#include "runtime/train/model_checks.hpp"
#include "runtime/train/startup.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

const std::string data = "  data: {format: idx, dir: /data}\n";

Result<TrainSpec> read(const std::string& train, const std::string& rest = "") {
  return read_train_spec(*yaml::parse("name: x\ntrain:\n" + train + rest, "job.yaml"));
}

std::string refusal(const std::string& train, const std::string& rest = "") {
  const auto spec = read(train, rest);
  REQUIRE_FALSE(spec.has_value());
  CHECK(spec.error().kind == ErrorKind::input);
  return spec.error().text();
}

const std::string model = "  model: mnist-cnn\n";

}  // namespace

TEST_CASE("a whole section is read, and defaults fill the rest") {
  const auto spec = read(model + data + R"(  batch: 32
  epochs: 12
  optimizer: {name: sgd, lr: 0.1, momentum: 0.8, weight-decay: 1e-4}
  schedule: {warmup: 200steps, decay: cosine, scale-lr: linear}
  precision: bf16
  allreduce: {bucket: 4MiB, dtype: f32}
  seed: 7
)",
                         "checkpoint: {dir: /ckpt, every: 10min, keep: 2}\n");
  REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
  CHECK(spec->batch == 32);
  CHECK(spec->epochs == 12);
  CHECK(spec->optimizer.weight_decay == doctest::Approx(1e-4));
  CHECK(spec->schedule.warmup.amount == 200);
  CHECK(spec->schedule.scale == ScheduleSpec::Scale::linear);
  CHECK(spec->precision == Precision::bf16);
  CHECK(spec->allreduce.bucket_bytes == 4u << 20);
  CHECK(spec->seed == 7);
  CHECK(spec->checkpoint.every->unit == Interval::Unit::time);
  CHECK(spec->checkpoint.every->amount == 600);
  const auto least = read(model + data);
  CHECK(least->batch == 64);
  CHECK_FALSE(least->benchmark.has_value());
  CHECK(least->checkpoint.folder.empty());
}

TEST_CASE("a trace of some steps") {
  CHECK_FALSE(read(model + data)->trace.has_value());
  const auto spec = read(model + data + "  trace: {skip: 0, steps: 5}\n");
  REQUIRE(spec.has_value());
  CHECK((spec->trace->skip == 0 && spec->trace->steps == 5));
  CHECK(read(model + data + "  trace: {}\n")->trace->steps == 20);
  CHECK(refusal(model + data + "  trace: {steps: 0}\n").find("train.trace.steps") != std::string::npos);
  CHECK(refusal(model + data + "  trace: {step: 5}\n").find("did you mean 'steps'?") != std::string::npos);
}

TEST_CASE("intervals of training: steps, epochs, time") {
  const auto every = [](const std::string& text) {
    return read(model + data, "checkpoint: {dir: c, every: " + text + "}\n")->checkpoint.every;
  };
  CHECK(every("50steps")->unit == Interval::Unit::steps);
  CHECK(every("1epoch")->unit == Interval::Unit::epochs);
  CHECK(every("0.5epochs")->amount == 0.5);
  CHECK(every("90s")->amount == 90);
  const auto bad = [](const std::string& text) {
    return refusal(model + data, "checkpoint: {dir: c, every: " + text + "}\n");
  };
  CHECK(bad("50") ==
        "job.yaml:5:29: checkpoint.every: '50' is neither steps, epochs nor a time\n  hint: write it as "
        "200steps, 1epoch or 10min");
  CHECK(bad("0steps").find("not a positive whole number of steps") != std::string::npos);
  CHECK(bad("1.5steps").find("not a positive whole number of steps") != std::string::npos);
}

TEST_CASE("mistakes are named with their place and the nearest valid name") {
  CHECK(refusal(model + data + "  batchs: 3\n") ==
        "job.yaml:5:3: unknown key 'batchs' in 'train'\n  hint: did you mean 'batch'?");
  CHECK(refusal("  model: mnist-cn\n" + data) ==
        "job.yaml:3:10: train.model: 'mnist-cn' is not known\n  hint: did you mean 'mnist-cnn'?");
  CHECK(refusal(model + data + "  precision: bf61\n")
            .find("job.yaml:5:14: train.precision: 'bf61' is not known") == 0);
  CHECK(refusal(model + data + "  batch: 0\n").find("job.yaml:5:10: train.batch") == 0);
  CHECK(refusal(model + "  data: {format: idx}\n").find("'train.data.dir' is missing") != std::string::npos);
  CHECK(refusal(data).find("'train.model' is missing") != std::string::npos);
  CHECK(refusal(model + data, "checkpoint: {every: 50steps}\n").find("checkpoint.dir is not") !=
        std::string::npos);
  CHECK(refusal(model + data + "  epochs: 2\n  benchmark: {steps: 5}\n").find("exclude each other") !=
        std::string::npos);
}

TEST_CASE("tf32 is refused where the job says that there is no GPU") {
  CHECK(
      refusal(model + data + "  precision: tf32\n  device: cpu\n").find("train.precision tf32 needs a GPU") !=
      std::string::npos);
}

TEST_CASE("Adam has betas where SGD has momentum") {
  const auto spec = read(model + data + "  optimizer: {name: adam, lr: 2e-4, beta1: 0.5, beta2: 0.99}\n");
  REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
  CHECK(spec->optimizer.learning_rate == 2e-4);
  CHECK(spec->optimizer.optimizer.identity() == "adam beta1=0.5 beta2=0.99 epsilon=1e-08");
  CHECK(read(model + data + "  optimizer: {name: adam}\n")->optimizer.learning_rate == 1e-3);
  const auto sgd = read(model + data + "  optimizer: {lr: 0.1}\n");
  REQUIRE(sgd.has_value());
  CHECK(sgd->optimizer.optimizer.identity() == "sgd momentum=0.9");
  CHECK(refusal(model + data + "  optimizer: {name: adam, beta1: 1}\n").find("1 is out of range") !=
        std::string::npos);
  CHECK(refusal(model + data + "  optimizer: {name: adam, momentum: 0.9}\n").find("momentum") !=
        std::string::npos);
}

TEST_CASE("LARS has a momentum and a trust coefficient, LAMB what Adam has") {
  const auto lars =
      read(model + data + "  optimizer: {name: lars, momentum: 0.8, trust-coefficient: 0.01}\n");
  REQUIRE_MESSAGE(lars.has_value(), lars.error().text());
  CHECK(lars->optimizer.optimizer.identity() == "lars momentum=0.8 trust-coefficient=0.01");
  CHECK(read(model + data + "  optimizer: {name: lamb}\n")->optimizer.optimizer.identity() ==
        "lamb beta1=0.9 beta2=0.999 epsilon=1e-06");
}

TEST_CASE("AdamW decays by default as PyTorch's does, and Nesterov is a flag of SGD that needs a momentum") {
  const auto adamw = read(model + data + "  optimizer: {name: adamw, beta2: 0.99}\n");
  REQUIRE_MESSAGE(adamw.has_value(), adamw.error().text());
  CHECK(adamw->optimizer.optimizer.identity() == "adamw beta1=0.9 beta2=0.99 epsilon=1e-08");
  CHECK(adamw->optimizer.weight_decay == 0.01);
  CHECK(read(model + data + "  optimizer: {name: adamw, weight-decay: 0}\n")->optimizer.weight_decay == 0);
  CHECK(read(model + data)->optimizer.weight_decay == 0);
  const auto sgd = read(model + data + "  optimizer: {nesterov: true}\n");
  REQUIRE_MESSAGE(sgd.has_value(), sgd.error().text());
  CHECK(sgd->optimizer.optimizer.identity() == "sgd momentum=0.9 nesterov");
  CHECK(refusal(model + data + "  optimizer: {nesterov: true, momentum: 0}\n") ==
        "job.yaml:5:14: train.optimizer: nesterov needs a momentum above 0");
  CHECK(refusal(model + data + "  optimizer: {nesterov: 1}\n").find("job.yaml:5:25: ") == 0);
  CHECK(refusal(model + data + "  optimizer: {name: adam, nesterov: true}\n").find("nesterov") !=
        std::string::npos);
}

TEST_CASE("parameters without weight decay: those of one dimension, and those of some names") {
  const auto of = [](const std::string& value) {
    const auto spec = read(model + data + "  optimizer: {no-decay: " + value + "}\n");
    REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
    return spec->optimizer.no_decay;
  };
  CHECK(read(model + data)->optimizer.no_decay.text() == "none");
  CHECK(of("vectors").covers("fc.bias", {10}));
  CHECK_FALSE(of("vectors").covers("fc.weight", {10, 20}));
  const NoDecay both = of("[vectors, embed.*]");
  CHECK(both.text() == "vectors embed.*");
  CHECK(both.covers("embed.weight", {10, 20}));
  CHECK_FALSE(of("[embed.*]").covers("fc.bias", {10}));
  CHECK(refusal(model + data + "  optimizer: {no-decay: {a: b}}\n").find("job.yaml:5:25: ") == 0);
}

TEST_CASE("a global batch is divided by ranks or shards, and by the batches of an update") {
  const auto batch = [](const std::string& more, int ranks) {
    auto spec = read(model + data + more);
    REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
    const Result<void> done = divide_global_batch(*spec, ranks);
    REQUIRE_MESSAGE(done.has_value(), done.error().text());
    return spec->batch;
  };
  CHECK(batch("  global-batch: 8192\n", 32) == 256);
  CHECK(batch("  global-batch: 8192\n  accumulate: 4\n", 32) == 64);
  CHECK(batch("  global-batch: 64\n  shards: 4\n  accumulate: 2\n", 3) == 8);
  CHECK(batch("  batch: 32\n  accumulate: 2\n", 3) == 32);
  auto spec = read(model + data + "  global-batch: 8192\n  accumulate: 2\n");
  const Result<void> done = divide_global_batch(*spec, 3);
  REQUIRE_FALSE(done.has_value());
  CHECK(done.error().text() ==
        "job.yaml:5:17: train.global-batch 8192 cannot be divided by 3 ranks x accumulate 2\n  hint: a "
        "multiple "
        "of 6 can: 8196");
  spec = read(model + data + "  global-batch: 4194304\n");
  CHECK(divide_global_batch(*spec, 2).error().text().find("the maximum is 1048576") != std::string::npos);
  CHECK(divide_global_batch(*spec, 4).has_value());
}

TEST_CASE("what a global batch cannot be is refused where it stands") {
  CHECK(refusal(model + data + "  batch: 8\n  global-batch: 64\n") ==
        "job.yaml:6:17: train.batch and train.global-batch are both set\n  hint: keep one of the two");
  CHECK(refusal(model + data + "  global-batch: 64\n  shards: auto\n").find("job.yaml:5:17: ") == 0);
  CHECK(refusal(model + data + "  global-batch: 64\n  shards: 5\n").find("divided by 5 shards\n") !=
        std::string::npos);
  CHECK(refusal(model + data + "  global-batch: 63\n  accumulate: 2\n") ==
        "job.yaml:5:17: train.global-batch 63 cannot be divided by train.accumulate 2");
  CHECK(refusal(model + data + "  accumulate: 0\n").find("job.yaml:5:15: train.accumulate") == 0);
}

TEST_CASE("a global batch has one rate, whatever the ranks are") {
  CHECK(
      refusal(model + data + "  global-batch: 256\n  schedule: {scale-lr: linear}\n") ==
      "job.yaml:6:24: train.schedule.scale-lr scales the rate of one batch by the batches of an update, and "
      "train.global-batch sets the whole\n  hint: remove scale-lr, and write in train.optimizer.lr the rate "
      "for a global batch of 256");
  CHECK(read(model + data + "  global-batch: 256\n  schedule: {scale-lr: none}\n").has_value());
  CHECK(read(model + data + "  batch: 256\n  schedule: {scale-lr: linear}\n").has_value());
}

TEST_CASE("the patterns of parameters keep their places") {
  const auto spec = read(model + data + "  freeze: conv1.*\n  optimizer: {no-decay: [vectors, fc.*]}\n");
  REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
  REQUIRE(spec->patterns.size() == 2);
  CHECK((spec->patterns[0].key == "train.freeze" && spec->patterns[0].where == "job.yaml:5:11"));
  CHECK((spec->patterns[1].pattern == "fc.*" && spec->patterns[1].where == "job.yaml:6:35"));
}

TEST_CASE("no momentum is 1: it would never forget a gradient") {
  for (const char* name : {"sgd", "lars"})
    CHECK(refusal(model + data + "  optimizer: {name: " + name + ", momentum: 1}\n")
              .find("train.optimizer.momentum: 1 is out of range") != std::string::npos);
}

TEST_CASE("label smoothing is a part of the target, of a model with classes") {
  CHECK(read(model + data)->label_smoothing == 0);
  CHECK(read(model + data + "  label-smoothing: 0.1\n")->label_smoothing == 0.1);
  CHECK(refusal(model + data + "  label-smoothing: 1\n").find("job.yaml:5:20: train.label-smoothing") == 0);
  CHECK(refusal("  model: dcgan\n" + data + "  label-smoothing: 0.1\n").find("job.yaml:5:20: ") == 0);
  CHECK(
      refusal("  model: gpt2\n  data: {format: tokens, dir: /data}\n  label-smoothing: 0.1\n")
          .find("job.yaml:5:20: train.label-smoothing is for classification, and gpt2 is a language model") ==
      0);
}

TEST_CASE("an average of the weights has a decay below 1") {
  CHECK_FALSE(read(model + data)->ema.has_value());
  CHECK(read(model + data + "  ema: 0.999\n")->ema == 0.999);
  CHECK(refusal(model + data + "  ema: 1\n").find("job.yaml:5:8: train.ema") == 0);
}

TEST_CASE("mixup has the alpha of its distribution") {
  CHECK_FALSE(read(model + data)->mixup.has_value());
  CHECK(read(model + data + "  mixup: 0.2\n")->mixup == 0.2);
  CHECK(refusal(model + data + "  mixup: 0\n").find("job.yaml:5:10: train.mixup") == 0);
}

TEST_CASE("ranks whose jobs differ in a setting of the training are told apart") {
  const auto of = [](const std::string& more) {
    const auto spec = read(model + data + more);
    REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
    return job_checksum(*spec);
  };
  CHECK(of("") == of("  batch: 64\n"));
  for (const char* other :
       {"  batch: 32\n", "  optimizer: {nesterov: true}\n", "  optimizer: {no-decay: vectors}\n",
        "  optimizer: {no-decay: ['*.bias']}\n", "  accumulate: 2\n", "  label-smoothing: 0.1\n",
        "  ema: 0.99\n", "  mixup: 0.2\n"})
    CHECK_MESSAGE(of(other) != of(""), other);
}

TEST_CASE(
    "a GAN's pixels are scaled to -1..1 unless the job sets mean or std, and it has no accuracy to stop at") {
  const auto spec = read("  model: dcgan\n" + data);
  REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
  CHECK(spec->conversion.mean == std::vector<double>{0.5});
  CHECK(spec->conversion.std_dev == std::vector<double>{0.5});
  CHECK(read("  model: dcgan\n  data: {format: cifar10, dir: /data, mean: 0.4, std: 1}\n")->conversion.mean ==
        std::vector<double>{0.4, 0.4, 0.4});
  CHECK(read(model + data)->conversion.mean.empty());
  CHECK(refusal("  model: dcgan\n" + data + "  stop-at: {accuracy: 0.9}\n")
            .find("train.stop-at needs an accuracy, which dcgan, a GAN, does not have") != std::string::npos);
}

TEST_CASE("tokens: what images have is unknown, and evaluation within epochs is theirs alone") {
  const std::string tokens = "  data: {format: tokens, dir: /data, context: 64}\n";
  const auto spec =
      read(model + tokens + "  evaluate: {every: 500steps, batches: 20}\n  stop-at: {loss: 1.5}\n");
  REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
  CHECK(spec->evaluate->every == 500);
  CHECK(spec->evaluate->batches == 20);
  CHECK(spec->stop_at_loss == 1.5);
  CHECK_FALSE(spec->stop_at_accuracy.has_value());
  CHECK(spec->target_text() == "stop-at.loss 1.5");
  CHECK_FALSE(read(model + tokens + "  evaluate: {every: 1step}\n")->evaluate->batches.has_value());
  CHECK(read(model + tokens + "  stop-at: {loss: 2, accuracy: 0.5}\n")->target_text() ==
        "stop-at.accuracy 0.5 and stop-at.loss 2");
  CHECK(refusal(model + tokens + "  evaluate: {every: 1epoch}\n")
            .find("train.evaluate.every must be in steps") != std::string::npos);
  CHECK(refusal(model + data + "  evaluate: {every: 5steps}\n").find("is supported for tokens only") !=
        std::string::npos);
  CHECK(refusal(model + tokens + "  stop-at: {}\n")
            .find("job.yaml:5:12: train.stop-at needs accuracy or loss") == 0);
  CHECK(refusal(model + tokens + "  stop-at: {perplexity: 100}\n").find("unknown key 'perplexity'") !=
        std::string::npos);
  CHECK(refusal(model + "  data: {format: tokens, dir: /data, mean: 0.5}\n").find("unknown key 'mean'") !=
        std::string::npos);
  CHECK(refusal(model + "  data: {format: synthetic, context: 1000000, samples: 1000000}\n")
            .find("asks for more than 2147483648 synthetic tokens") != std::string::npos);
}

TEST_CASE("what a training cannot be is refused by name, with what there is") {
  CHECK(refusal(model + data + "  optimizer: {name: rprop}\n")
            .find("unknown optimizer 'rprop'\n  hint: valid names: sgd, adam, adamw, lars, lamb") !=
        std::string::npos);
  CHECK(refusal(model + "  data: {format: images}\n").find("'train.data.dir' is missing") !=
        std::string::npos);
  CHECK(refusal(model + "  data: {format: images, dir: /x, size: [1, 2, 3]}\n")
            .find("train.data.size must be a number, or [height, width]") != std::string::npos);
  CHECK(refusal(model + "  data: {format: list, dir: /x}\n").find("'train.data.list' is missing") !=
        std::string::npos);
  CHECK(
      refusal("  model: {layers: [relu]}\n" + data).find("the last layer must give a score for each class") !=
      std::string::npos);
  CHECK(read(model + "  data: {format: idx, dir: /x, train: 0.9}\n")->data.train_share == 0.9);
  CHECK(refusal(model + "  data: {format: idx, dir: /x, train: 1.5}\n")
            .find("train.data.train: 1.5 is out of range") != std::string::npos);
}

TEST_CASE("allreduce: an algorithm of the table, a bucket and a dtype") {
  const auto least = read(model + data);
  CHECK(least->allreduce.choice.is_auto());
  CHECK(least->allreduce.dtype == CommDtype::f32);
  const auto with = [](const std::string& keys) {
    return read(model + data + "  allreduce: {" + keys + "}\n");
  };
  for (const std::string& name : allreduce_names()) {
    const auto spec = with("algorithm: " + name);
    REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
    CHECK(spec->allreduce.choice.algorithm == find_allreduce(name));
    CHECK(spec->parameter_server.has_value() == (name == "parameter-server"));
  }
  CHECK(with("dtype: bf16")->allreduce.dtype == CommDtype::bf16);
  CHECK(with("algorithm: direct, dtype: f16")->allreduce.dtype == CommDtype::f16);
  const auto refused = [](const std::string& keys) {
    return refusal(model + data + "  allreduce: {" + keys + "}\n");
  };
  CHECK(refused("dtype: fp8").find("train.allreduce.dtype: 'fp8' is not known") != std::string::npos);
  CHECK(refused("algorithm: rings").find("did you mean 'ring'?") != std::string::npos);
  CHECK(refused("algorithm: halving").find("train.allreduce.algorithm: 'halving' is not known") !=
        std::string::npos);
  CHECK(refused("algorithm: ring, dtype: bf16") ==
        "job.yaml:5:26: train.allreduce.algorithm ring sends f32, and train.allreduce.dtype asks for bf16\n  "
        "hint: "
        "write algorithm: direct or auto, or dtype: f32");
}

TEST_CASE("wire, the old name of dtype, is still read, with one warning") {
  const auto spec = read(model + data + "  allreduce: {wire: bf16}\n");
  REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
  CHECK(spec->allreduce.dtype == CommDtype::bf16);
  CHECK(spec->warnings ==
        std::vector<std::string>{"train.allreduce.wire is the old name of train.allreduce.dtype"});
  CHECK(read(model + data + "  allreduce: {dtype: bf16}\n")->warnings.empty());
  CHECK(refusal(model + data + "  allreduce: {wire: bf16, dtype: f32}\n")
            .find("train.allreduce has both dtype and wire, its old name\n  hint: keep dtype") !=
        std::string::npos);
  CHECK(refusal(model + data + "  allreduce: {wires: bf16}\n").find("unknown key 'wires'") !=
        std::string::npos);
}

TEST_CASE("the optimizer's state is on all ranks, or in parts where the rest of the job allows it") {
  using State = OptimizerSpec::State;
  const std::string sharded = "  optimizer: {name: adamw, state: sharded}\n";
  CHECK(read(model + data)->optimizer.state == State::replicated);
  CHECK(read(model + data + sharded)->optimizer.state == State::sharded);
  CHECK(read(model + data + "  optimizer: {state: replicated}\n")->optimizer.state == State::replicated);
  const auto refused = [&](const std::string& more, const std::string& why) {
    const std::string text = refusal(model + data + sharded + more);
    CHECK_MESSAGE(text.find(why) != std::string::npos, text);
  };
  CHECK(refusal(model + data + "  optimizer: {state: shared}\n").find("train.optimizer.state") !=
        std::string::npos);
  refused("  parameter-server: {}\n", "train.optimizer.state is sharded, and train.parameter-server is set");
  refused("  allreduce: {algorithm: ring}\n", "gradients are summed by a reduce-scatter");
  const auto on_gpus = [&](const std::string& more, const ModelRank& rank, const std::string& why) {
    const auto checked = check_model_settings(*read(model + data + more + "  device: cuda\n"), rank);
    const std::string text = checked ? "no error" : checked.error().text();
    CHECK_MESSAGE(text.find(why) != std::string::npos, text);
  };
  on_gpus(sharded, {}, "no error");
  on_gpus("", first_of(2, 1), "no error");
  on_gpus(sharded + "  shards: 4\n", {}, "train.optimizer.state is sharded and train.shards is set");
  on_gpus("  shards: 4\n", first_of(2, 1), "parallel.tensor is above 1 and train.shards is set");
  on_gpus(sharded, first_of(2, 1, SequenceParallel::on), "no error");
  on_gpus(sharded + "  shards: 4\n", first_of(2, 1), "train.optimizer.state is sharded and train.shards is");
  on_gpus("", first_of(1, 2), "no error");
  on_gpus(sharded, first_of(1, 2), "no error");
  on_gpus("", first_of(2, 2), "no error");
  on_gpus(
      "", first_of(2, 2, SequenceParallel::on),
      "parallel.pipeline is above 1 and parallel.sequence is on, which is not supported together on GPUs");
  on_gpus(sharded, first_of(2, 2),
          "parallel.pipeline and parallel.tensor are above 1 and train.optimizer.state is sharded, which");
  on_gpus("  optimizer: {name: lamb}\n", first_of(1, 2), "no error");
  on_gpus("  optimizer: {name: lamb}\n", first_of(2, 2),
          "parallel.tensor is above 1 and train.optimizer is lamb");
  on_gpus("  shards: 4\n", first_of(1, 2), "sums of shards have no pipelines so far");
  on_gpus("  allreduce: {dtype: bf16}\n", first_of(1, 2),
          "parallel.pipeline is above 1 and train.allreduce.dtype is bf16, which is not supported");
  on_gpus("  shards: 4\n", {}, "no error");
  on_gpus("  optimizer: {name: lamb, state: sharded}\n", {}, "and train.optimizer is lamb");
  on_gpus(sharded + "  allreduce: {dtype: bf16}\n", {},
          "train.allreduce.dtype is bf16, which is not supported");
  CHECK(refusal("  model: dcgan\n" + data + sharded).find("dcgan is a GAN") != std::string::npos);
  CHECK(read(model + data + sharded + "  shards: 4\n").has_value());
}

TEST_CASE("shards: a number, or the ranks of the first start") {
  CHECK_FALSE(read(model + data)->shards.has_value());
  CHECK(read(model + data + "  shards: 8\n")->shards->count == 8);
  CHECK_FALSE(read(model + data + "  shards: auto\n")->shards->count.has_value());
  CHECK(refusal(model + data + "  shards: 0\n").find("train.shards") != std::string::npos);
  CHECK(refusal(model + data + "  shards: all\n").find("train.shards") != std::string::npos);
  CHECK(refusal(model + data + "  shards: 8\n  allreduce: {algorithm: ring}\n")
            .find("train.shards is set, and train.allreduce.algorithm is 'ring': shards are added in an "
                  "order of their own") != std::string::npos);
  CHECK(refusal(model + data + "  shards: 8\n  allreduce: {dtype: bf16}\n")
            .find("train.allreduce.dtype is bf16: sums of shards are sent as f32") != std::string::npos);
  CHECK(refusal(model + data + "  shards: 8\n  parameter-server: {}\n").find("parameter servers") !=
        std::string::npos);
  CHECK(read(model + data + "  shards: 8\n  device: cuda\n")->shards->count == 8);
  CHECK(refusal("  model: dcgan\n" + data + "  shards: 8\n").find("dcgan is a GAN") != std::string::npos);
}

TEST_CASE("parameter servers") {
  CHECK_FALSE(read(model + data)->parameter_server.has_value());
  const auto servers = read(model + data + "  parameter-server: {placement: split, servers: 3}\n");
  REQUIRE_MESSAGE(servers.has_value(), servers.error().text());
  CHECK(servers->parameter_server->placement == Placement::split);
  CHECK(servers->parameter_server->servers == 3);
  CHECK(read(model + data + "  parameter-server: {}\n")->parameter_server->placement == Placement::greedy);
  CHECK(refusal(model + data + "  parameter-server: {placement: greed}\n").find("did you mean 'greedy'?") !=
        std::string::npos);
  CHECK(refusal(model + data + "  parameter-server: {servers: 0}\n").find("servers") != std::string::npos);
  CHECK(read(model + data + "  allreduce: {dtype: bf16}\n  parameter-server: {}\n")->allreduce.dtype ==
        CommDtype::bf16);
  CHECK(refusal(model + data + "  allreduce: {algorithm: ring}\n  parameter-server: {}\n")
            .find("train.parameter-server is set, and train.allreduce.algorithm is 'ring'") !=
        std::string::npos);
  const auto both =
      read(model + data + "  allreduce: {algorithm: parameter-server}\n  parameter-server: {servers: 2}\n");
  REQUIRE_MESSAGE(both.has_value(), both.error().text());
  CHECK(both->parameter_server->servers == 2);
}

TEST_CASE("synthetic data and how pixels become numbers") {
  const auto spec = read(
      "  model: resnet18-cifar\n  data: {format: synthetic, shape: [3, 32, 32], samples: 100, mean: 0.5, "
      "std: [0.2, 0.2, 0.3], augment: [crop, flip]}\n");
  REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
  CHECK(spec->data.source->channels() == 3);
  CHECK(spec->conversion.mean == std::vector<double>{0.5, 0.5, 0.5});
  CHECK(spec->augmentation.crop_padding == 4);
  CHECK(spec->augmentation.flip);
  CHECK(refusal(model + "  data: {format: idx, dir: x, mean: [1, 2]}\n")
            .find("train.data.mean has 2 numbers for 1 channel") != std::string::npos);
}

TEST_CASE("images decoded by a GPU are cut out at random, and nothing more") {
  const auto with = [](const std::string& keys) {
    return "  model: resnet18\n  data: {format: images, dir: /d, size: 224, " + keys + "}\n";
  };
  const std::string right = with("augment: [random-resized-crop, flip], decode: nvjpeg, workers: 2");
  const auto spec = read(right);
  REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
  CHECK(spec->decoding.by == DecodeOptions::By::device);
  CHECK(read(with("augment: [random-resized-crop]"))->decoding.by == DecodeOptions::By::processors);
  for (const std::string other : {"crop: 2", "color-jitter: {hue: 0.1}"})
    CHECK(refusal(with("augment: {random-resized-crop: true, " + other + "}, decode: nvjpeg"))
              .find("train.data.decode is nvjpeg, which does not do crop and color-jitter") !=
          std::string::npos);
  CHECK(refusal(with("augment: [flip], decode: nvjpeg"))
            .find("train.data.decode is nvjpeg, and train.data.augment has no random-resized-crop") !=
        std::string::npos);
  const auto on_cpu = check_model_settings(*read(right + "  device: cpu\n"), {});
  REQUIRE_FALSE(on_cpu.has_value());
  CHECK(on_cpu.error().what == "train.data.decode is nvjpeg, and this rank computes on the CPU");
  CHECK(on_cpu.error().where == read(right)->places.at("data.decode"));
  CHECK(on_cpu.error().hint == "set train.device to cuda, or leave train.data.decode out");
}

TEST_CASE("communication in fewer steps: every and from, and what it does not go with") {
  const std::string sync = "  sync: {every: 8, from: 2epochs}\n";
  const auto spec = read(model + data + sync);
  REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
  CHECK(spec->sync->every == 8);
  CHECK(spec->sync->from == Interval{Interval::Unit::epochs, 2});
  CHECK(read(model + data + "  sync: {every: 2}\n")->sync->from.amount == 0);
  CHECK_FALSE(read(model + data)->sync.has_value());
  const auto of = [&](const std::string& more) { return refusal(model + data + more); };
  CHECK(of("  sync: {from: 1epoch}\n").find("every") != std::string::npos);
  CHECK(of("  sync: {every: 1}\n").find("train.sync.every") != std::string::npos);
  CHECK(of("  sync: {every: 4, from: 10min}\n").find("must be in steps or epochs") != std::string::npos);
  CHECK(of("  sync: {every: 4, until: 3}\n").find("until") != std::string::npos);
  for (const auto& [more, what] : {std::pair{"  shards: 4\n", "train.shards is set"},
                                   {"  parameter-server: {servers: 1}\n", "train.parameter-server is set"},
                                   {"  optimizer: {state: sharded}\n", "train.optimizer.state is sharded"},
                                   {"  benchmark: {steps: 5}\n", "train.benchmark measures"}}) {
    const std::string text = of(sync + more);
    CHECK_MESSAGE(text.find(fmt::format("train.sync is set, and {}", what)) != std::string::npos, text);
  }
  CHECK(refusal("  model: dcgan\n" + data + sync).find("train.sync is set, and dcgan is a GAN") !=
        std::string::npos);
}
