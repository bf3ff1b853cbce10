// The Engine's contract on the two models: named state, buckets, spare slots, repeatability, errors, and that
// training lowers the loss.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <doctest/doctest.h>

#include "fixture.hpp"
#include "runtime/models/models.hpp"
#include "runtime/train/make_cpu_engine.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

constexpr InputShape kGrey{1, 28, 28, 10};
constexpr InputShape kColour{3, 16, 16, 10};  // a quarter of CIFAR's pixels: quicker, same code

InputShape shape_for(const std::string& model) {
  return model == "mnist-cnn" ? kGrey : kColour;
}

std::unique_ptr<Engine> engine_named(const std::string& model, const EngineOptions& options) {
  auto engine = make_cpu_engine(model, shape_for(model), options);
  INFO((engine ? std::string() : engine.error().text()));
  REQUIRE(engine.has_value());
  return *std::move(engine);
}

std::size_t parameters_of(const Engine& engine) {
  std::size_t count = 0;
  for (const TensorInfo& info : engine.tensors())
    if (info.role == TensorInfo::Role::parameter) count += info.elements();
  return count;
}

std::vector<float> all_state(const Engine& engine) {
  std::vector<float> state;
  for (const TensorInfo& info : engine.tensors()) {
    const std::vector<float> values = read(engine, info.name);
    state.insert(state.end(), values.begin(), values.end());
  }
  return state;
}

void train(Engine& engine, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t step = from; step < to; ++step) {
    engine.train_batch(step, nullptr);
    engine.apply({.learning_rate = 0.05F, .weight_decay = 1e-4F});
  }
}

}  // namespace

TEST_CASE("the models have the parameters that they are known for") {
  CHECK(parameters_of(*engine_named("mnist-cnn", {.batch = 1})) == 3'274'634);
  CHECK(parameters_of(*engine_named("resnet18-cifar", {.batch = 1})) == 11'173'962);
}

TEST_CASE("tensors have PyTorch's names, and momentum its own") {
  const auto engine = engine_named("resnet18-cifar", {.batch = 1});
  std::vector<std::string> names;
  for (const TensorInfo& info : engine->tensors()) names.push_back(info.name);
  for (const char* name :
       {"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var",
        "layer1.0.conv1.weight", "layer2.0.downsample.0.weight", "layer2.0.downsample.1.running_var",
        "layer4.1.bn2.bias", "fc.weight", "fc.bias", "fc.weight.momentum"})
    CHECK(std::count(names.begin(), names.end(), name) == 1);
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("state goes out and comes back exactly, into another engine too") {
  for (const std::string model : {"mnist-cnn", "resnet18-cifar"}) {
    const Precision precision = model == "mnist-cnn" ? Precision::f32 : precisions_here().back();
    const auto first = engine_named(model, {.batch = 2, .precision = precision, .seed = 1});
    const auto second = engine_named(model, {.batch = 4, .precision = precision, .seed = 2});
    scramble(*first);
    for (const TensorInfo& info : first->tensors()) write(*second, info.name, read(*first, info.name));
    CHECK(all_state(*first) == all_state(*second));
  }
}

TEST_CASE("a plain tensor is written where PyTorch would have it") {
  const auto engine = engine_named("mnist-cnn", {.batch = 1});
  std::vector<float> values(1024 * 3136);
  std::iota(values.begin(), values.end(), 0.0F);
  write(*engine, "fc1.weight", values);
  CHECK(read(*engine, "fc1.weight") == values);
}

TEST_CASE("values of the wrong size are refused by name") {
  const auto engine = engine_named("mnist-cnn", {.batch = 1});
  const auto wrong =
      engine->write_tensor(tensor_index(*engine, "fc2.weight"), std::vector<float>(100 * 1024));
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().text() ==
        "tensor 'fc2.weight' has 10240 numbers, not 102400\n"
        "  hint: the values are from another model or another number of classes");
}

TEST_CASE("first weights are equal on all ranks, differ with the seed, and lie within PyTorch's bounds") {
  const auto one = engine_named("mnist-cnn", {.batch = 1, .seed = 7, .rank = 0});
  const auto two = engine_named("mnist-cnn", {.batch = 1, .seed = 7, .rank = 1});
  const auto other = engine_named("mnist-cnn", {.batch = 1, .seed = 8});
  CHECK(all_state(*one) == all_state(*two));
  CHECK(all_state(*one) != all_state(*other));
  for (const auto& [name, fan_in] :
       {std::pair{"conv1.weight", 25.0}, {"conv2.bias", 800.0}, {"fc1.weight", 3136.0}}) {
    const std::vector<float> values = read(*one, name);
    const double bound = 1 / std::sqrt(fan_in);
    double square = 0;
    for (const float value : values) {
      REQUIRE(std::abs(value) <= bound);
      square += value * value;
    }
    if (values.size() > 500)  // a uniform distribution's deviation is bound / sqrt(3)
      CHECK(std::sqrt(square / static_cast<double>(values.size())) ==
            doctest::Approx(bound / std::sqrt(3.0)).epsilon(0.05));
  }
}

TEST_CASE("buckets cover the gradients in the order in which they become final") {
  for (const std::string model : {"mnist-cnn", "resnet18-cifar"}) {
    const auto engine = engine_named(model, {.batch = 2, .bucket_bytes = 1u << 20});
    const auto buckets = engine->buckets();
    REQUIRE(buckets.size() > 1);
    std::size_t end = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      CHECK(buckets[i].offset == end);
      end = buckets[i].offset + buckets[i].length;
      if (i + 1 < buckets.size()) CHECK(buckets[i].length * sizeof(float) >= 1u << 20);
    }
    CHECK(end == engine->gradients().size());
    put(*engine, random_batch(shape_for(model), 2));
    std::vector<std::size_t> order;
    std::vector<float> when_final;
    engine->train_batch(0, [&](std::size_t bucket) {
      order.push_back(bucket);
      const auto slice = engine->gradients().subspan(buckets[bucket].offset, buckets[bucket].length);
      when_final.insert(when_final.end(), slice.begin(), slice.end());
    });
    std::vector<std::size_t> expected(buckets.size());
    std::iota(expected.begin(), expected.end(), std::size_t{0});
    CHECK(order == expected);
    CHECK(std::equal(when_final.begin(), when_final.end(), engine->gradients().begin()));
  }
}

TEST_CASE("spare slots end the last bucket and are left alone") {
  const auto engine = engine_named("mnist-cnn", {.batch = 2});
  put(*engine, random_batch(kGrey, 2));
  const auto spare = engine->spare_slots();
  REQUIRE(spare.size() >= 8);
  CHECK(spare.data() + spare.size() == engine->gradients().data() + engine->gradients().size());
  CHECK(engine->buckets().back().length >= spare.size());
  std::iota(spare.begin(), spare.end(), 1.0F);
  train(*engine, 0, 2);
  for (std::size_t i = 0; i < spare.size(); ++i) CHECK(spare[i] == static_cast<float>(i + 1));
}

TEST_CASE("the same seed gives the same bits, in one run and over a restart") {
  for (const std::string model : {"mnist-cnn", "resnet18-cifar"})
    for (const Precision precision : precisions_here()) {
      const EngineOptions options{
          .batch = 4, .precision = precision, .seed = 11, .optimizer = momentum_sgd(0.9)};
      const Batch batch = random_batch(shape_for(model), 4);
      const auto whole = engine_named(model, options), again = engine_named(model, options);
      put(*whole, batch);
      put(*again, batch);
      train(*whole, 0, 4);
      train(*again, 0, 2);
      const auto resumed = engine_named(model, options);
      for (const TensorInfo& info : again->tensors()) write(*resumed, info.name, read(*again, info.name));
      put(*resumed, batch);
      train(*resumed, 2, 4);
      train(*again, 2, 4);
      CHECK(all_state(*whole) == all_state(*again));
      CHECK(all_state(*whole) == all_state(*resumed));
    }
}

TEST_CASE("training on one batch lowers the loss") {
  for (const std::string model : {"mnist-cnn", "resnet18-cifar"})
    for (const Precision precision : precisions_here()) {
      CAPTURE(model);
      const auto engine =
          engine_named(model, {.batch = 8, .precision = precision, .optimizer = momentum_sgd(0.9)});
      put(*engine, random_batch(shape_for(model), 8));
      const double before = engine->train_batch(0, nullptr).loss_sum / 8;
      CHECK(before == doctest::Approx(std::log(10.0)).epsilon(0.5));
      train(*engine, 0, 30);
      CHECK(engine->train_batch(30, nullptr).loss_sum / 8 < 0.5 * before);
    }
}

TEST_CASE("a row labelled -1 counts nothing, in evaluation and in the gradient") {
  const auto engine = engine_named("mnist-cnn", {.batch = 4});
  Batch batch = random_batch(kGrey, 4);
  put(*engine, batch);
  const BatchResult full = engine->evaluate_batch();
  double sum = 0;
  std::int64_t correct = 0;
  for (std::size_t row = 0; row < 4; ++row) {
    std::fill(engine->labels().begin(), engine->labels().end(), -1);
    engine->labels()[row] = batch.labels[row];
    const BatchResult one = engine->evaluate_batch();
    sum += one.loss_sum;
    correct += one.correct;
  }
  CHECK(sum == doctest::Approx(full.loss_sum));
  CHECK(correct == full.correct);
  std::fill(engine->labels().begin(), engine->labels().end(), -1);
  CHECK(engine->train_batch(0, nullptr).loss_sum == 0);
  for (const float gradient : engine->gradients()) REQUIRE(gradient == 0);
}

TEST_CASE("a frozen parameter has no gradient, and so no part in the norm of all, and keeps its value") {
  const auto all = engine_named("mnist-cnn", {.batch = 2}),
             some = engine_named("mnist-cnn", {.batch = 2, .frozen = {"conv1.*", "fc1.weight"}});
  for (Engine* engine : {all.get(), some.get()}) {
    put(*engine, random_batch(kGrey, 2));
    engine->train_batch(0, nullptr);
  }
  const auto squares = [](const auto& numbers) {
    return std::transform_reduce(numbers.begin(), numbers.end(), 0.0, std::plus<>(),
                                 [](double x) { return x * x; });
  };
  const double left = squares(some->gradients());
  double others = 0, frozen = 0;
  for (const auto& [name, gradient] : gradients_of(*all))
    (name.starts_with("conv1.") || name == "fc1.weight" ? frozen : others) += squares(gradient);
  REQUIRE(frozen > 0.01 * others);
  CHECK(left == doctest::Approx(others).epsilon(1e-6));
  const std::vector<float> before = read(*some, "fc1.weight"), other = read(*some, "fc1.bias");
  train(*some, 0, 2);
  CHECK(read(*some, "fc1.weight") == before);
  CHECK(read(*some, "fc1.bias") != other);
}

TEST_CASE("the update is momentum SGD with weight decay and a scale for the gradient") {
  const auto engine = engine_named("mnist-cnn", {.batch = 2, .optimizer = momentum_sgd(0.9)});
  put(*engine, random_batch(kGrey, 2));
  const std::vector<float> weight = read(*engine, "conv2.weight");
  engine->train_batch(0, nullptr);
  const UpdateStep step{.learning_rate = 0.1F, .weight_decay = 0.01F, .gradient_scale = 0.5F};
  engine->apply({.learning_rate = 0});
  const std::vector<float> gradient = read(*engine, "conv2.weight.momentum");
  engine->apply(step);
  const std::vector<float> after = read(*engine, "conv2.weight");
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const double velocity = 0.9 * gradient[i] + (0.5 * gradient[i] + 0.01 * weight[i]);
    REQUIRE(after[i] == doctest::Approx(weight[i] - 0.1 * velocity).epsilon(1e-5));
  }
}

TEST_CASE("the update by Adam is PyTorch's: means of gradients and squares, corrected while they are young") {
  const auto engine =
      engine_named("mnist-cnn", {.batch = 2, .optimizer = {find_optimizer("adam"), {0.5, 0.99, 1e-6}}});
  put(*engine, random_batch(kGrey, 2));
  std::vector<double> mean(10, 0.0), square(10, 0.0), weight;
  for (const float value : read(*engine, "fc2.bias")) weight.push_back(value);
  for (std::uint64_t updates = 0; updates < 3; ++updates) {
    engine->train_batch(updates, nullptr);
    // The bias' gradient: the scores' sum, at the arena's begin, as backward begins there.
    const GradientSlice slice = [&] {
      for (const GradientSlice& each : engine->gradient_slices())
        if (each.name == "fc2.bias") return each;
      return GradientSlice{};
    }();
    const std::vector<float> gradient(
        engine->gradients().begin() + static_cast<std::ptrdiff_t>(slice.offset),
        engine->gradients().begin() + static_cast<std::ptrdiff_t>(slice.offset) + 10);
    engine->apply({.learning_rate = 0.01F, .weight_decay = 0.1F, .gradient_scale = 0.5F, .updates = updates});
    const std::vector<float> after = read(*engine, "fc2.bias");
    for (std::size_t i = 0; i < 10; ++i) {
      const double decayed = 0.5 * gradient[i] + 0.1 * weight[i];
      mean[i] = 0.5 * mean[i] + 0.5 * decayed;
      square[i] = 0.99 * square[i] + 0.01 * decayed * decayed;
      const auto count = static_cast<double>(updates + 1);
      weight[i] -= 0.01 * mean[i] / (1 - std::pow(0.5, count)) /
                   (std::sqrt(square[i] / (1 - std::pow(0.99, count))) + 1e-6);
      CHECK(after[i] == doctest::Approx(weight[i]).epsilon(1e-4));
    }
  }
  CHECK(read(*engine, "fc2.bias.exp_avg").size() == 10);
  CHECK(read(*engine, "fc2.bias.exp_avg_sq")[3] == doctest::Approx(square[3]).epsilon(1e-4));
}

TEST_CASE("a GAN has as many parameters in each network as PyTorch's example, with its names") {
  const auto engine = make_cpu_engine("dcgan", {3, 64, 64, 10}, {.batch = 1});
  REQUIRE(engine.has_value());
  std::size_t generator = 0, discriminator = 0;
  for (const TensorInfo& info : (*engine)->tensors())
    if (info.role == TensorInfo::Role::parameter)
      (info.name.starts_with("generator.") ? generator : discriminator) += info.elements();
  CHECK(generator == 3'576'704);
  CHECK(discriminator == 2'765'568);
  CHECK((*engine)->tensors()[tensor_index(**engine, "generator.0.weight")].shape ==
        std::vector<std::int64_t>{100, 512, 4, 4});
  CHECK((*engine)->tensors()[tensor_index(**engine, "discriminator.11.weight")].shape ==
        std::vector<std::int64_t>{1, 512, 4, 4});
}

TEST_CASE(
    "no convolution of a GAN is left to oneDNN's reference loops, not even at its image of three channels") {
  for (const Graph& graph : {*dcgan({3, 32, 32, 10}), *dcgan({1, 28, 28, 10}), *cosmogan({1, 32, 32, 10})})
    for (const Precision precision : precisions_here()) {
      CAPTURE(graph.model);
      const auto engine = compile(graph, {.batch = 2, .precision = precision});
      REQUIRE(engine.has_value());
      for (const OperatorTime& line : (*engine)->profile_step(0))
        if (line.operations > 0) {
          CAPTURE(line.name);
          if (can_compute(Precision::bf16))  // with AVX2 some of their f32 passes have no other loops
            CHECK(line.description.find("ref") == std::string::npos);
        }
    }
}

TEST_CASE(
    "a GAN trains with the same bits in one run and over a restart, and its noise differs by step and rank") {
  constexpr InputShape shape{1, 16, 16, 10};
  const auto made = [&](int rank) {
    auto engine = make_cpu_engine(
        "dcgan", shape,
        {.batch = 4, .seed = 11, .rank = rank, .optimizer = {find_optimizer("adam"), {0.5, 0.999, 1e-8}}});
    REQUIRE(engine.has_value());
    put(**engine, random_batch(shape, 4));
    return *std::move(engine);
  };
  const auto steps = [](Engine& engine, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t step = from; step < to; ++step) {
      engine.train_batch(step, nullptr);
      engine.apply({.learning_rate = 2e-4F, .updates = step});
    }
  };
  const auto whole = made(0), again = made(0), resumed = made(0), other = made(1);
  steps(*whole, 0, 4);
  steps(*again, 0, 2);
  for (const TensorInfo& info : again->tensors()) write(*resumed, info.name, read(*again, info.name));
  steps(*resumed, 2, 4);
  CHECK(all_state(*whole) == all_state(*resumed));
  REQUIRE(whole->gan() != nullptr);
  std::vector<float> images(4 * 256), same(4 * 256);
  REQUIRE(whole->gan()->generate(images).has_value());
  whole->train_batch(9, nullptr);  // moves the running statistics, which the images are made with ...
  for (const TensorInfo& info : resumed->tensors()) write(*whole, info.name, read(*resumed, info.name));
  REQUIRE(whole->gan()->generate(same).has_value());  // ... and nothing else
  CHECK(images == same);
  for (const float pixel : images) REQUIRE(std::abs(pixel) <= 1);
  CHECK_FALSE(whole->gan()->generate(std::span(images).first(100)).has_value());
  const double loss = again->train_batch(7, nullptr).generator_loss_sum;
  CHECK(again->train_batch(8, nullptr).generator_loss_sum != loss);
  for (const TensorInfo& info : again->tensors()) write(*other, info.name, read(*again, info.name));
  CHECK(other->train_batch(7, nullptr).generator_loss_sum !=
        again->train_batch(7, nullptr).generator_loss_sum);
}

TEST_CASE("dropout differs between steps and ranks, and not otherwise") {
  const auto loss = [](int rank, std::uint64_t step) {
    const auto engine = engine_named("mnist-cnn", {.batch = 4, .rank = rank});
    put(*engine, random_batch(kGrey, 4));
    return engine->train_batch(step, nullptr).loss_sum;
  };
  CHECK(loss(0, 3) == loss(0, 3));
  CHECK(loss(0, 3) != loss(0, 4));
  CHECK(loss(0, 3) != loss(1, 3));
}

TEST_CASE("ranks that differ in anything that matters have another plan hash") {
  const auto hash = [](const std::string& model, const EngineOptions& options) {
    return engine_named(model, options)->plan_hash();
  };
  const std::uint64_t reference = hash("mnist-cnn", {.batch = 2});
  CHECK(hash("mnist-cnn", {.batch = 2, .rank = 1}) == reference);
  CHECK(hash("mnist-cnn", {.batch = 3}) != reference);
  if (can_compute(Precision::bf16))
    CHECK(hash("mnist-cnn", {.batch = 2, .precision = Precision::bf16}) != reference);
  CHECK(hash("mnist-cnn", {.batch = 2, .seed = 2}) != reference);
  CHECK(hash("mnist-cnn", {.batch = 2, .bucket_bytes = 1000}) != reference);
}

TEST_CASE("bf16 on a processor without AVX-512 is refused with the reason") {
  const auto engine = make_cpu_engine("mnist-cnn", {}, {.batch = 1, .precision = Precision::bf16});
  REQUIRE(engine.has_value() == can_compute(Precision::bf16));
  if (!engine)
    CHECK(engine.error().text() ==
          "this processor cannot compute in bf16: oneDNN needs AVX-512 for it\n  hint: try precision f32");
}

TEST_CASE("an unknown model is named with the nearest one") {
  const auto engine = make_cpu_engine("mnist-cn", {}, {});
  REQUIRE_FALSE(engine.has_value());
  CHECK(engine.error().text() == "there is no model 'mnist-cn'\n  hint: did you mean 'mnist-cnn'?");
}

TEST_CASE("shapes that a model cannot take are refused before any memory is taken") {
  const auto text = [](const InputShape& shape, std::int64_t batch) {
    const auto engine = make_cpu_engine("mnist-cnn", shape, {.batch = batch});
    return engine ? std::string("taken") : engine.error().text();
  };
  CHECK(
      text({1, 1, 1, 10}, 1) ==
      "model 'mnist-cnn' cannot take images of 1x1x1 (channels x height x width) in 10 classes: max pooling "
      "sees 1 pixels, less than its window of 2\n  hint: choose a model for images of this size, or other "
      "data");
  for (const InputShape& shape : {InputShape{0, 28, 28, 10},
                                  {1, 28, 28, -1},
                                  {1, 1 << 15, 28, 10},
                                  {1 << 14, 1 << 14, 1 << 14, 10},
                                  {1, 28, 28, std::int64_t{1} << 40}})
    CHECK(text(shape, 1).find("each extent must be between 1 and 16384") != std::string::npos);
  CHECK(text({1, 28, 28, 10}, 0).find("a batch of 0 images cannot be") != std::string::npos);
  CHECK(text({3, 30, 30, 7}, 2) == "taken");
  CHECK(text({1, 1 << 13, 1 << 13, 10}, 1 << 20) != "taken");  // more memory than there is
}

TEST_CASE("a rank's arenas stay far below half of what PyTorch takes for the same model (479 MB)") {
  for (const Precision precision : precisions_here())
    CHECK(engine_named("mnist-cnn", {.batch = 64, .precision = precision})->memory_bytes() < 60u << 20);
}
