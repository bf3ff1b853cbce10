// The loop over a tiny model and ranks that are threads: order, gradient scaling, evaluation, stop at one
// step, resume with the same bits.
#include "runtime/train/trainer.hpp"

#include <doctest/doctest.h>

#include "runtime/comm/one_rank.hpp"
#include "tests/unit/train/fake_agent.hpp"
#include "tests/unit/train/trainer_job.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

// The same samples, encoded: grey pixels of 6x5 in a file, of which each epoch cuts other parts out.
DataParts encoded_parts(const Folder& folder) {
  DataParts out = *make_synthetic({1, 6, 5, 10}, 203, 1);
  for (auto [part, name] : {std::pair(&out.train, "train"), {&out.test, "test"}}) {
    const auto encoded = std::make_shared<EncodedSamples>();
    std::string content;
    for (std::uint64_t i = 0; i < part->count; ++i) {
      encoded->extents.push_back({.file = 0, .length = 30, .offset = content.size()});
      for (const std::uint8_t pixel : part->pixels(i)) content.push_back(static_cast<char>(pixel));
    }
    encoded->files = *FileSet::open({folder.write(name, content)});
    encoded->unwrap = [](EncodedSamples::Record record) -> Result<EncodedImage> {
      return EncodedImage{.bytes = record, .raw = RawShape{1, 6, 5}};
    };
    part->shape = small_shape;
    part->encoded = encoded;
  }
  return out;
}

// The same, without every fiftieth sample of the training part; or these are damaged and dropped.
DataParts parts_without_some(const Folder& folder, Damaged damaged) {
  DataParts out = encoded_parts(folder);
  const auto fewer = std::make_shared<EncodedSamples>();
  std::vector<std::uint16_t> labels;
  for (std::size_t i = 0; i < out.train.count; ++i) {
    Extent extent = out.train.encoded->extents[i];
    if (i % 50 == 0 && damaged == Damaged::refused) continue;
    if (i % 50 == 0) extent.length = 29;
    fewer->extents.push_back(extent);
    labels.push_back(out.train.labels[i]);
  }
  fewer->files = *FileSet::open({folder.path / "train"});
  fewer->unwrap = [](EncodedSamples::Record record) -> Result<EncodedImage> {
    if (record.size() != 30) return bad_input("a file: offset 7", "a pixel is missing");
    return EncodedImage{.bytes = record, .raw = RawShape{1, 6, 5}};
  };
  out.train.labels = labels;
  out.train.count = labels.size();
  out.train.damaged = damaged;
  out.train.encoded = fewer;
  return out;
}

// The same, of which all samples of a part are damaged and dropped.
DataParts parts_without_any(const Folder& folder, Dataset DataParts::*part, const char* file) {
  DataParts out = encoded_parts(folder);
  const auto none = std::make_shared<EncodedSamples>();
  none->files = *FileSet::open({folder.path / file});
  none->extents = (out.*part).encoded->extents;
  none->unwrap = [](EncodedSamples::Record) -> Result<EncodedImage> {
    return bad_input("a file", "no image");
  };
  (out.*part).encoded = none;
  (out.*part).damaged = Damaged::dropped;
  (out.*part).count = 8;
  return out;
}

}  // namespace

TEST_CASE("a run goes through all epochs, the short last step included") {
  Job job;
  const auto out = job.run();
  CHECK(*out[0].ending == Ending::finished);
  CHECK(out[0].position == Position{3 * 26, 3, 0});  // 203 samples are 25 steps of 8 and one of 3
}

TEST_CASE("a rank tells where the time of its steps goes") {
  FakeAgent agent;
  Job job;
  job.control = agent.name;
  CHECK(*job.run()[0].ending == Ending::finished);
  agent.accept();
  const std::string heard = agent.hear();
  for (const char* part : {R"("compute":)", R"("input":)", R"("wait":)"})
    CHECK_MESSAGE(heard.find(part) != std::string::npos, part);
}

TEST_CASE("the gradient is the mean over the rows that count: the split over ranks does not matter") {
  Job one, two, three;
  one.spec.batch = 12;
  two.spec.batch = 6;
  two.world = 2;
  three.spec.batch = 4;
  three.world = 3;
  const auto a = one.run(), b = two.run(), c = three.run();
  for (std::size_t i = 0; i < 160; ++i) {
    CHECK(a[0].weights[i] == doctest::Approx(b[0].weights[i]).epsilon(1e-4));
    CHECK(a[0].weights[i] == doctest::Approx(c[0].weights[i]).epsilon(1e-4));
  }
  CHECK(same_bits(b[0].weights, b[1].weights));
  CHECK(same_bits(c[0].weights, c[2].weights));
}

TEST_CASE("batches that are accumulated are one batch: positions, rate and gradients, clipped as a whole") {
  for (const std::optional<double> clip : {std::optional<double>(), std::optional(0.2)}) {
    Job whole;
    whole.spec.batch = 12;
    whole.spec.clip_norm = clip;
    whole.spec.schedule.warmup = {Interval::Unit::epochs, 1.5};
    const auto expected = whole.run();
    for (const auto& [world, batch, accumulate] : {std::array{1, 4, 3}, {2, 2, 3}, {2, 3, 2}, {3, 1, 4}}) {
      Job parts;
      parts.spec = whole.spec;
      parts.world = world;
      parts.spec.batch = batch;
      parts.spec.accumulate = accumulate;
      const auto out = parts.run();
      CHECK(out[0].position == expected[0].position);
      CHECK(out[0].epoch_loss == doctest::Approx(expected[0].epoch_loss).epsilon(1e-4));
      for (std::size_t i = 0; i < 160; ++i)
        CHECK(out[0].weights[i] == doctest::Approx(expected[0].weights[i]).epsilon(1e-4));
      CHECK(same_bits(out[0].weights, out.back().weights));
    }
  }
}

TEST_CASE("accumulated batches draw other random numbers, and an interrupted run ends with the same bits") {
  const Folder folder;
  Job whole, parts;
  whole.world = parts.world = 2;
  whole.spec.accumulate = 3;
  whole.spec.augmentation = {.crop_padding = 1, .flip = true};
  const auto expected = whole.run();
  CHECK(expected[0].position == Position{3 * 5, 3, 0});  // 203 samples are 4 steps of 48 and one of 11
  CHECK(std::vector(expected[1].steps_seen.begin(), expected[1].steps_seen.begin() + 5) ==
        std::vector<std::uint64_t>{0, 1, 2, 3, 4});
  parts.spec = whole.spec;
  parts.spec.checkpoint.folder = folder.path / "ckpt";
  for (const std::uint64_t step : {2u, 5u, 8u}) {
    parts.stop_at = step;
    for (const auto& rank : parts.run()) CHECK(rank.position.step == step);
  }
  parts.stop_at.reset();
  const auto out = parts.run();
  CHECK(same_bits(out[1].weights, expected[0].weights));
  CHECK(same_bits(out[1].momentum, expected[0].momentum));
}

TEST_CASE("rows are filled ahead batch by batch, and gradients may be kept on the device: the same bits") {
  for (const int world : {1, 2}) {
    Job plain, device;
    plain.world = device.world = world;
    plain.spec.accumulate = device.spec.accumulate = 3;
    plain.spec.augmentation = device.spec.augmentation = {.crop_padding = 1, .flip = true};
    plain.spec.data.train_share = device.spec.data.train_share = 0.9;
    device.computes_on_a_device = device.accumulates_itself = true;
    const auto a = plain.run(), b = device.run();
    CHECK(same_bits(a[0].weights, b[0].weights));
    CHECK(a[0].epoch_loss == b[0].epoch_loss);
  }
}

TEST_CASE("accumulated batches of samples that are decoded ahead: the same bits, however far ahead") {
  const Folder folder;
  Job near, far;
  for (Job* job : {&near, &far}) {
    job->data = encoded_parts(folder);
    job->spec.accumulate = 2;
    job->spec.augmentation = {.flip = true, .resized_crop = RandomResizedCrop{}};
  }
  near.spec.decoding = {.memory = 0, .workers = 1};
  far.spec.decoding = {.memory = 100 * 16, .workers = 2};
  far.computes_on_a_device = true;
  CHECK(same_bits(near.run()[0].weights, far.run()[0].weights));
}

TEST_CASE("a training that reaches its target at the end of an epoch ends well, whatever it dropped") {
  const Folder folder;
  Job job;
  job.data = parts_without_some(folder, Damaged::dropped);
  job.spec.stop_at_loss = 100;
  const auto ranks = job.run();
  REQUIRE(ranks[0].ending);
  CHECK(*ranks[0].ending == Ending::finished);
}

TEST_CASE("a damaged sample that is dropped counts neither in the gradient nor in the figures") {
  const Folder folder;
  for (const int world : {1, 2}) {
    Job dropped, without;
    dropped.data = parts_without_some(folder, Damaged::dropped);
    without.data = parts_without_some(folder, Damaged::refused);
    for (Job* job : {&dropped, &without}) {
      job->world = world;
      job->spec.batch = 203;
    }
    const auto a = dropped.run(), b = without.run();
    CHECK(a[0].position == b[0].position);
    CHECK(a[0].samples == 3 * 198);
    CHECK(b[0].samples == 3 * 198);
    CHECK(a[0].epoch_loss == doctest::Approx(b[0].epoch_loss).epsilon(1e-4));
    for (std::size_t i = 0; i < 160; ++i)
      CHECK(a[0].weights[i] == doctest::Approx(b[0].weights[i]).epsilon(1e-4));
  }
}

TEST_CASE("a part of which every sample is dropped gives no figures, and reaches no target") {
  const Folder folder;
  Job job;
  job.spec.stop_at_loss = 0.1;
  for (const auto& [part, file, what_for] :
       {std::tuple(&DataParts::train, "train", "to train on"), {&DataParts::test, "test", "to evaluate"}}) {
    job.data = parts_without_any(folder, part, file);
    const auto out = job.run();
    REQUIRE_FALSE(out[0].ending.has_value());
    CHECK(out[0].ending.error().what ==
          fmt::format("no sample is left {}: all of them are damaged, and were dropped", what_for));
  }
}

TEST_CASE("mixed images: the same bits at any number of ranks, in parts, and decoded ahead or not") {
  const Folder folder;
  Job whole, parts;
  for (Job* job : {&whole, &parts}) {
    job->data = encoded_parts(folder);
    job->shards = 4;
    job->spec.mixup = 0.4;
    job->spec.data.train_share = 0.9;
    job->spec.augmentation = {.flip = true, .resized_crop = RandomResizedCrop{}};
    job->spec.decoding = {.memory = 100 * 16, .workers = 2};
  }
  const auto expected = whole.run();
  parts.world = 3;
  parts.spec.decoding = {.memory = 0, .workers = 1};
  parts.spec.checkpoint.folder = folder.path / "ckpt";
  parts.stop_at = 4;
  CHECK(parts.run()[0].position.step == 4);
  parts.stop_at.reset();
  CHECK(same_bits(parts.run()[2].weights, expected[0].weights));
  whole.spec.mixup.reset();
  CHECK_FALSE(same_bits(whole.run()[0].weights, expected[0].weights));
}

TEST_CASE("accumulated batches of shards give the same bits at any number of ranks") {
  Job job;
  job.shards = 4;
  job.spec.batch = 4;
  job.spec.accumulate = 2;
  job.spec.schedule.scale = ScheduleSpec::Scale::linear;
  job.world = 4;
  const auto expected = job.run();
  CHECK(expected[0].position == Position{3 * 7, 3, 0});
  for (const int world : {1, 2, 3}) {
    CAPTURE(world);
    job.world = world;
    for (const auto& rank : job.run()) {
      CHECK(same_bits(rank.weights, expected[0].weights));
      CHECK(same_bits(rank.statistics, expected[0].statistics));
      CHECK(rank.epoch_loss == expected[0].epoch_loss);
    }
  }
  job.world = 5;  // as many as there are shards at most, however many batches each has
  FakeEngine engine(small_shape, 4);
  on_ranks(5, [&](Communicator& comm) {
    CHECK_FALSE(GradientExchange::make(job.spec, engine, comm, job.shards).has_value());
  });
}

TEST_CASE("a benchmark accumulates, too") {
  Job job;
  job.world = 2;
  job.spec.accumulate = 2;
  job.spec.benchmark = BenchmarkSpec{.warmup = 2, .steps = 5, .repeat = 3};
  const auto out = job.run();
  CHECK(*out[0].ending == Ending::finished);
  CHECK(out[0].position.step == 17);
}

TEST_CASE("the same seed gives the same bits, another seed others") {
  Job job;
  job.world = 2;
  const auto first = job.run(), again = job.run();
  CHECK(same_bits(first[0].weights, again[0].weights));
  job.spec.seed = 2;
  CHECK_FALSE(same_bits(first[0].weights, job.run()[0].weights));
}

TEST_CASE("parameter servers give the bits of an allreduce, wherever the tensors are") {
  Job job;
  job.world = 3;
  const auto expected = job.run();
  for (const Placement placement : {Placement::round_robin, Placement::greedy, Placement::split}) {
    job.spec.parameter_server = ParameterServerSpec{.placement = placement, .servers = 2};
    for (const auto& rank : job.run()) CHECK(same_bits(rank.weights, expected[0].weights));
  }
}

TEST_CASE("a 16-bit dtype rounds gradients, equally on all ranks, and leaves loss and counts alone") {
  Job job;
  job.world = 2;
  const auto exact = job.run();
  for (const CommDtype dtype : {CommDtype::bf16, CommDtype::f16}) {
    job.spec.allreduce.dtype = dtype;
    const auto rounded = job.run();
    CHECK(same_bits(rounded[0].weights, rounded[1].weights));
    CHECK_FALSE(same_bits(rounded[0].weights, exact[0].weights));
    CHECK(rounded[0].position == exact[0].position);
    for (std::size_t i = 0; i < 160; ++i)
      CHECK(rounded[0].weights[i] == doctest::Approx(exact[0].weights[i]).epsilon(0.02).scale(0.1));
  }
}

TEST_CASE("more servers than ranks are refused with both numbers") {
  FakeEngine engine(small_shape, 8);
  const auto comm = make_one_rank_communicator();
  TrainSpec spec;
  spec.parameter_server = ParameterServerSpec{.placement = Placement::greedy, .servers = 2};
  const auto exchange = GradientExchange::make(spec, engine, *comm);
  REQUIRE_FALSE(exchange.has_value());
  CHECK(exchange.error().what == "train.parameter-server.servers is 2, but the job has 1 rank");
}

TEST_CASE("rows filled while a device computes are those of the next step: the same bits") {
  for (const int world : {1, 2}) {
    Job plain, ahead;
    plain.world = ahead.world = world;
    ahead.spec.augmentation = plain.spec.augmentation = {.crop_padding = 1, .flip = true};
    plain.spec.data.train_share = ahead.spec.data.train_share = 0.9;  // looks at samples between epochs
    ahead.computes_on_a_device = true;
    const auto a = plain.run(), b = ahead.run();
    CHECK(same_bits(a[0].weights, b[0].weights));
    CHECK(same_bits(a[0].momentum, b[0].momentum));
  }
}

TEST_CASE("a stop that any rank asks for ends all ranks after the same step") {
  for (const int who : {0, 2}) {
    Job job;
    job.world = 3;
    job.stop_at = 5;
    job.who_wants_to_stop = who;
    for (const auto& rank : job.run()) {
      CHECK(*rank.ending == Ending::stopped);
      CHECK(rank.position.step == 5);
    }
  }
}

TEST_CASE("an interrupted run ends with the bits of an uninterrupted one") {
  const Folder folder;
  Job whole;
  whole.world = 2;
  whole.spec.schedule.decay = ScheduleSpec::Decay::cosine;
  whole.spec.schedule.warmup = {Interval::Unit::steps, 10};
  const auto expected = whole.run();
  Job parts;
  parts.world = whole.world;
  parts.spec = whole.spec;
  parts.spec.checkpoint.folder = folder.path / "ckpt";
  // Within epochs, on their border, and in the last step but one.
  for (const std::uint64_t step : {3u, 13u, 14u, 26u, 38u}) {
    parts.stop_at = step;
    for (const auto& rank : parts.run()) CHECK(rank.position.step == step);
  }
  parts.stop_at.reset();
  const auto out = parts.run();
  CHECK(*out[0].ending == Ending::finished);
  CHECK(out[0].position == expected[0].position);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(same_bits(out[rank].weights, expected[0].weights));
    CHECK(same_bits(out[rank].momentum, expected[0].momentum));
    CHECK(out[rank].epoch_loss ==
          expected[0].epoch_loss);  // of the whole epoch, of which this run had a step
  }
  // And once more: it is finished, so nothing is trained.
  const auto after = parts.run();
  CHECK(*after[0].ending == Ending::finished);
  CHECK(same_bits(after[1].weights, expected[0].weights));
}

TEST_CASE(
    "samples that are decoded ahead: the same bits for any workers, any memory, and an interrupted run") {
  const Folder folder;
  Job whole, parts;
  for (Job* job : {&whole, &parts}) {
    job->data = encoded_parts(folder);
    job->world = 2;
    job->spec.augmentation = {.flip = true, .resized_crop = RandomResizedCrop{}};
    job->spec.decoding = {.memory = 20 * 16, .workers = 1};
  }
  const auto expected = whole.run();
  CHECK(*expected[0].ending == Ending::finished);
  parts.spec.decoding = {.memory = 100 * 16, .workers = 3};
  CHECK(same_bits(parts.run()[0].weights, expected[0].weights));
  parts.spec.decoding.memory = 0;  // nothing ahead
  CHECK(same_bits(parts.run()[1].momentum, expected[0].momentum));
  parts.spec.decoding.memory = 1 << 20;
  parts.computes_on_a_device = true;
  parts.spec.checkpoint.folder = folder.path / "ckpt";
  for (const std::uint64_t step : {3u, 13u, 14u, 26u}) {
    parts.stop_at = step;
    for (const auto& rank : parts.run()) CHECK(rank.position.step == step);
  }
  parts.stop_at.reset();
  CHECK(same_bits(parts.run()[1].weights, expected[0].weights));
  whole.spec.augmentation = {};
  CHECK_FALSE(same_bits(whole.run()[0].weights, expected[0].weights));
}

TEST_CASE("shards of samples that are decoded ahead give the same bits at any number of ranks") {
  const Folder folder;
  Job one, three;
  for (Job* job : {&one, &three}) {
    job->data = encoded_parts(folder);
    job->shards = 4;
    job->spec.augmentation = {.resized_crop = RandomResizedCrop{}, .jitter = {.brightness = 0.5}};
    job->spec.decoding = {.memory = 40 * 16, .workers = 2};
  }
  three.world = 3;
  CHECK(same_bits(one.run()[0].weights, three.run()[2].weights));
}

TEST_CASE("a run goes on at another number of ranks") {
  const Folder folder;
  Job job;
  job.spec.checkpoint.folder = folder.path / "ckpt";
  job.world = 3;
  job.stop_at = 4;
  CHECK(job.run()[0].position == Position{4, 0, 96});
  job.stop_at.reset();
  job.world = 2;
  const auto out = job.run();
  CHECK(*out[0].ending == Ending::finished);
  // 107 samples of the epoch were left: 7 steps of 16; then two epochs of 13 steps.
  CHECK(out[0].position == Position{4 + 7 + 26, 3, 0});
}

// 203 samples are 6 steps of 32 and one of 11, whose shards have one row or two.
TEST_CASE("shards give the same bits at any number of ranks") {
  Job job;
  job.shards = 8;
  job.spec.batch = 4;
  job.spec.data.train_share = 0.9;
  job.spec.augmentation = {.crop_padding = 1, .flip = true};
  job.spec.schedule.scale = ScheduleSpec::Scale::linear;
  job.world = 8;
  const auto expected = job.run();
  CHECK(expected[0].position == Position{3 * 6, 3, 0});
  for (const int world : {1, 2, 3, 4, 5, 7}) {
    CAPTURE(world);
    job.world = world;
    for (const auto& rank : job.run()) {
      CHECK(same_bits(rank.weights, expected[0].weights));
      CHECK(same_bits(rank.momentum, expected[0].momentum));
      CHECK(same_bits(rank.statistics, expected[0].statistics));
      CHECK(rank.epoch_loss == expected[0].epoch_loss);
      CHECK(rank.position == expected[0].position);
    }
  }
  job.shards = job.world = 4;
  CHECK_FALSE(same_bits(job.run()[0].weights, expected[0].weights));
}

TEST_CASE("shards give the same bits where each job of a chain has other ranks") {
  Job job;
  job.shards = 6;
  job.world = 6;
  const auto expected = job.run();
  const Folder folder;
  job.spec.checkpoint.folder = folder.path / "ckpt";
  const std::vector<std::pair<std::uint64_t, int>> jobs = {{3, 4}, {5, 1}, {6, 6}, {11, 2}};
  for (const auto& [until, world] : jobs) {
    job.stop_at = until;
    job.world = world;
    CHECK(job.run()[0].position.step == until);
  }
  job.stop_at.reset();
  job.world = 3;
  const auto out = job.run();
  CHECK(out[2].position == expected[0].position);
  CHECK(same_bits(out[2].weights, expected[0].weights));
  CHECK(same_bits(out[0].statistics, expected[0].statistics));
}

TEST_CASE("fewer shards than ranks are refused with both numbers") {
  FakeEngine engine(small_shape, 8);
  on_ranks(3, [&](Communicator& comm) {
    const auto exchange = GradientExchange::make(TrainSpec{}, engine, comm, 2);
    REQUIRE_FALSE(exchange.has_value());
    CHECK(exchange.error().what == "the job has 3 ranks, but the training has 2 shards");
  });
}

TEST_CASE("a benchmark of shards takes its steps, too") {
  Job job;
  job.world = 2;
  job.shards = 5;
  job.spec.benchmark = BenchmarkSpec{.warmup = 2, .steps = 5, .repeat = 3};
  const auto out = job.run();
  CHECK(*out[0].ending == Ending::finished);
  CHECK(out[0].position.step == 17);
}

TEST_CASE("a loss that is no number ends the run at once, with the step") {
  Job job;
  job.poison_after = 7;
  const auto out = job.run();
  REQUIRE_FALSE(out[0].ending.has_value());
  CHECK(out[0].ending.error().what.find("the loss is nan at step 8 (epoch 1): training diverged") == 0);
  CHECK(out[0].ending.error().hint.find("train.optimizer.lr") != std::string::npos);
}

TEST_CASE("weights that the last step made no numbers are no result") {
  Job job;
  job.poison_after = std::size_t{3} * 26;
  const auto out = job.run();
  REQUIRE_FALSE(out[0].ending.has_value());
  CHECK(out[0].ending.error().what ==
        "test_loss is nan after the last step, 78 (epoch 3): training diverged");
}

TEST_CASE("a run whose checkpoint had diverged is told to remove it") {
  const Folder folder;
  Job job;
  job.spec.checkpoint.folder = folder.path / "ckpt";
  job.poison_after = 3;
  job.stop_at = 3;
  CHECK(*job.run()[0].ending == Ending::stopped);
  job.poison_after = 0;
  job.stop_at.reset();
  const auto out = job.run();
  REQUIRE_FALSE(out[0].ending.has_value());
  CHECK(out[0].ending.error().what.find("at step 4 ") != std::string::npos);
  CHECK(out[0].ending.error().hint.find("the checkpoint that this run started from") == 0);
}

TEST_CASE("the validation split is never trained on") {
  Job job;
  job.world = 2;
  job.spec.data.train_share = 0.9;
  const auto out = job.run();
  CHECK(*out[0].ending == Ending::finished);
  CHECK(out[0].position == Position{3 * 12, 3, 0});  // 183 of 203 samples: 11 steps of 16 and one of 7
}

TEST_CASE("a run stops where the test accuracy that was asked for is reached, and stays stopped") {
  const Folder folder;
  Job job;
  job.spec.epochs = 50;
  job.spec.stop_at_accuracy = 0.5;
  job.spec.checkpoint.folder = folder.path / "ckpt";
  const auto out = job.run();
  CHECK(*out[0].ending == Ending::finished);
  CHECK(out[0].position.epoch < 50);
  CHECK(job.run()[0].position == out[0].position);
}

TEST_CASE("a benchmark takes its warm-up and its windows of steps, and stops where it is asked to") {
  Job job;
  job.world = 2;
  job.spec.benchmark = BenchmarkSpec{.warmup = 2, .steps = 5, .repeat = 3};
  auto out = job.run();
  CHECK(*out[0].ending == Ending::finished);
  CHECK(out[0].position.step == 17);
  job.stop_at = 4;
  out = job.run();
  CHECK(*out[1].ending == Ending::stopped);
  CHECK(out[1].position.step == 4);
}

TEST_CASE("the norm of all gradients is clipped, and is not where it is small") {
  Job plain, wide, narrow, two;
  wide.spec.clip_norm = 1e6;
  narrow.spec.clip_norm = two.spec.clip_norm = 0.05;
  narrow.spec.epochs = plain.spec.epochs = wide.spec.epochs = two.spec.epochs = 1;
  // Weights move by the rate times the norm at most: one step, no momentum yet.
  for (Job* job : {&plain, &wide, &narrow, &two}) {
    job->spec.optimizer.weight_decay = 0;
    job->stop_at = 1;
  }
  two.world = 2;
  two.spec.batch = 4;
  FakeEngine fresh(small_shape, 8);
  std::vector<float> start(160);
  REQUIRE(fresh.read_tensor(0, start).has_value());
  const auto moved = [&](Job& job) {
    const std::vector<float> end = job.run()[0].weights;
    double sum = 0;
    for (std::size_t i = 0; i < end.size(); ++i)
      sum += (end[i] - start[i]) * static_cast<double>(end[i] - start[i]);
    return std::sqrt(sum);
  };
  const double free = moved(plain);
  CHECK(moved(wide) == doctest::Approx(free));
  CHECK(free > 0.1 * 0.05);
  const double clipped = moved(narrow);
  CHECK(clipped < 0.1 * 0.05);  // the biases have their part of the norm
  CHECK(clipped > 0.1 * 0.05 * 0.8);
  CHECK(moved(two) == doctest::Approx(clipped).epsilon(1e-4));
}
