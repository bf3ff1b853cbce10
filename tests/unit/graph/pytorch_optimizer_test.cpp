// Optimizers against PyTorch's: three updates of a model by gradients of its own, of all parameters; then
// every value and all state are compared by pytorch_oracle.py. The gradients are those of an engine beside it
// with the same weights.
#include <fstream>

#include <doctest/doctest.h>

#include "fixture.hpp"
#include "pytorch.hpp"
#include "runtime/train/make_cpu_engine.hpp"
#include "src/base/json.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

constexpr InputShape kGrey{1, 28, 28, 10};
constexpr std::uint64_t kUpdates = 3;
constexpr double kTolerance = 1e-5;
const UpdateStep kStep{.learning_rate = 0.02F, .weight_decay = 0.1F, .gradient_scale = 0.5F};

struct Peer {
  const char* name;  // PyTorch's
  Json arguments;    // beside the learning rate and the weight decay
  Json state;        // our suffix: its name
};

void write_values(const dlrun::test::Folder& folder, const std::string& name,
                  const std::vector<float>& values) {
  folder.write(name, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

constexpr float kAverage = 0.7F;

std::unique_ptr<Engine> model(const Optimizer& optimizer, const NoDecay& no_decay) {
  auto engine = make_cpu_engine(
      "mnist-cnn", kGrey,
      {.batch = 2, .seed = 5, .optimizer = optimizer, .no_decay = no_decay, .average = kAverage});
  REQUIRE(engine.has_value());
  put(**engine, random_batch(kGrey, 2));
  return std::move(*engine);
}

void take_weights(Engine& to, const Engine& from) {
  for (const TensorInfo& info : to.tensors())
    if (info.role == TensorInfo::Role::parameter) write(to, info.name, read(from, info.name));
}

void write_gradients(const dlrun::test::Folder& folder, Engine& beside, std::uint64_t update) {
  beside.train_batch(update, nullptr);
  for (const auto& [name, gradient] : gradients_of(beside))
    write_values(folder, fmt::format("gradient.{}.{}", update, name),
                 std::vector<float>(gradient.begin(), gradient.end()));
}

Json described(const Engine& engine, const NoDecay& no_decay) {
  Json out = Json::array();
  for (const TensorInfo& info : engine.tensors())
    if (info.role == TensorInfo::Role::parameter)
      out.push_back(
          {{"name", info.name}, {"shape", info.shape}, {"decays", !no_decay.covers(info.name, info.shape)}});
  return out;
}

void check_updates(const Optimizer& optimizer, const NoDecay& no_decay, const Peer& peer) {
  const dlrun::test::Folder folder;
  const auto engine = model(optimizer, no_decay), beside = model(momentum_sgd(0), {});
  for (const TensorInfo& info : engine->tensors())
    write_values(folder, "start." + info.name, read(*engine, info.name));
  for (std::uint64_t update = 0; update < kUpdates; ++update) {
    take_weights(*beside, *engine);
    write_gradients(folder, *beside, update);
    engine->train_batch(update, nullptr);
    UpdateStep step = kStep;
    step.updates = update;
    engine->apply(step);
  }
  for (const TensorInfo& info : engine->tensors())
    write_values(folder, "end." + info.name, read(*engine, info.name));
  Json arguments = peer.arguments;
  arguments["lr"] = kStep.learning_rate;
  arguments["weight_decay"] = kStep.weight_decay;
  const Json job = {{"optimizer", peer.name},
                    {"arguments", arguments},
                    {"state", peer.state},
                    {"scale", kStep.gradient_scale},
                    {"average", kAverage},
                    {"updates", kUpdates},
                    {"tensors", described(*engine, no_decay)}};
  folder.write("updates.json", to_text(job));
  const Result<bool> agrees = PyTorch::agrees(folder.path.string(), kTolerance);
  REQUIRE_MESSAGE(agrees, (agrees ? "" : agrees.error().text()));
  CHECK(*agrees);
}

const NoDecay kAllDecay, kVectors{.vectors = NoDecay::Vectors::exempt},
    kNamed{.names = {"conv1.weight", "fc*.bias"}};
const Json kMomentum = {{".momentum", "momentum_buffer"}},
           kAverages = {{".exp_avg", "exp_avg"}, {".exp_avg_sq", "exp_avg_sq"}};

}  // namespace

TEST_CASE("averaged weights take the place of the weights, and give it back") {
  const auto engine = model(momentum_sgd(0), {});
  for (std::uint64_t update = 0; update < 2; ++update) {
    engine->train_batch(update, nullptr);
    UpdateStep step = kStep;
    step.updates = update;
    engine->apply(step);
  }
  const std::vector<float> weights = read(*engine, "conv1.weight"),
                           averages = read(*engine, "conv1.weight.ema");
  CHECK(weights != averages);
  const double by_weights = engine->evaluate_batch().loss_sum;
  engine->swap_averages();
  CHECK(read(*engine, "conv1.weight") == averages);
  CHECK(read(*engine, "conv1.weight.ema") == weights);
  CHECK(engine->evaluate_batch().loss_sum != by_weights);
  engine->swap_averages();
  CHECK(read(*engine, "conv1.weight") == weights);
  CHECK(engine->evaluate_batch().loss_sum == by_weights);
}

TEST_CASE("SGD is PyTorch's, plain and by Nesterov, with and without parameters that do not decay") {
  const OptimizerTraits* const sgd = find_optimizer("sgd");
  check_updates({sgd, {0.8, 0}}, kAllDecay, {"SGD", {{"momentum", 0.8}}, kMomentum});
  const Peer nesterov{"SGD", {{"momentum", 0.8}, {"nesterov", true}}, kMomentum};
  for (const NoDecay& no_decay : {kAllDecay, kVectors, kNamed})
    check_updates({sgd, {0.8, 1}}, no_decay, nesterov);
}

TEST_CASE("AdamW is PyTorch's, with and without parameters that do not decay") {
  const Optimizer adamw{find_optimizer("adamw"), {0.8, 0.99, 1e-4}};
  const Peer peer{"AdamW", {{"betas", {0.8, 0.99}}, {"eps", 1e-4}}, kAverages};
  for (const NoDecay& no_decay : {kAllDecay, kVectors, kNamed}) check_updates(adamw, no_decay, peer);
}

TEST_CASE("Adam is PyTorch's, with and without parameters that do not decay") {
  const Optimizer adam{find_optimizer("adam"), {0.8, 0.99, 1e-4}};
  const Peer peer{"Adam", {{"betas", {0.8, 0.99}}, {"eps", 1e-4}}, kAverages};
  for (const NoDecay& no_decay : {kAllDecay, kVectors}) check_updates(adam, no_decay, peer);
}
