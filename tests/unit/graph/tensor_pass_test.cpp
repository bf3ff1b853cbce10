// LARS and LAMB, whose updates look at whole tensors: a case by hand, and three updates of a model against
// the papers' formulas in double. The gradients are those of an engine beside it with the same weights.
#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include "fixture.hpp"
#include "runtime/optim/optimizer.hpp"
#include "runtime/train/make_cpu_engine.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

constexpr InputShape kGrey{1, 28, 28, 10};
const UpdateStep kStep{.learning_rate = 0.02F, .weight_decay = 0.1F, .gradient_scale = 0.5F};

double norm(const Numbers& of) {
  double sum = 0;
  for (const double number : of) sum += number * number;
  return std::sqrt(sum);
}

// A tensor of the model, in double; `first` and `second` are the optimizer's state.
struct Followed {
  Numbers weight, first, second;
};

// LARS, algorithm 1; a bias as momentum SGD.
void update_by_lars(Followed& of, const Numbers& gradient, bool is_vector, std::uint64_t) {
  const double decay = is_vector ? 0 : 0.1;
  const double ratio = is_vector ? 1 : 0.01 * norm(of.weight) / (norm(gradient) + decay * norm(of.weight));
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    of.first[i] = 0.8 * of.first[i] + 0.02 * ratio * (gradient[i] + decay * of.weight[i]);
    of.weight[i] -= of.first[i];
  }
}

// LAMB, algorithm 2.
void update_by_lamb(Followed& of, const Numbers& gradient, bool is_vector, std::uint64_t updates) {
  const auto count = static_cast<double>(updates + 1);
  Numbers along(gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    of.first[i] = 0.5 * of.first[i] + 0.5 * gradient[i];
    of.second[i] = 0.99 * of.second[i] + 0.01 * gradient[i] * gradient[i];
    const double mean = of.first[i] / (1 - std::pow(0.5, count)),
                 square = of.second[i] / (1 - std::pow(0.99, count));
    along[i] = mean / (std::sqrt(square) + 1e-6) + (is_vector ? 0 : 0.1) * of.weight[i];
  }
  const double ratio = is_vector ? 1 : norm(of.weight) / norm(along);
  for (std::size_t i = 0; i < gradient.size(); ++i) of.weight[i] -= 0.02 * ratio * along[i];
}

std::unique_ptr<Engine> model(const Optimizer& optimizer) {
  auto engine = make_cpu_engine("mnist-cnn", kGrey, {.batch = 2, .seed = 5, .optimizer = optimizer});
  REQUIRE(engine.has_value());
  put(**engine, random_batch(kGrey, 2));
  return std::move(*engine);
}

// Whether the rule is the optimizer's, on every parameter of a model.
template <class Rule>
void check_updates(const Optimizer& optimizer, const Rule& rule) {
  const auto engine = model(optimizer), beside = model(momentum_sgd(0));
  std::map<std::string, Followed> followed;
  for (std::uint64_t updates = 0; updates < 3; ++updates) {
    for (const TensorInfo& info : beside->tensors())
      if (info.role == TensorInfo::Role::parameter) write(*beside, info.name, read(*engine, info.name));
    engine->train_batch(updates, nullptr);
    beside->train_batch(updates, nullptr);
    UpdateStep step = kStep;
    step.updates = updates;
    engine->apply(step);
    for (auto& [tensor, of_tensor] : gradients_of(*beside)) {
      const std::string name = tensor;  // clang 14 captures no structured bindings
      auto gradient = of_tensor;
      CAPTURE(name);
      Followed& of = followed[name];
      if (updates == 0) {
        const std::vector<float> before = read(*beside, name);
        of = {{before.begin(), before.end()}, Numbers(before.size()), Numbers(before.size())};
      }
      for (double& number : gradient) number *= 0.5;
      rule(of, gradient, name.ends_with(".bias"), updates);
      const std::vector<float> after = read(*engine, name);
      for (std::size_t i = 0; i < after.size(); ++i)
        REQUIRE(after[i] == doctest::Approx(of.weight[i]).epsilon(1e-4).scale(0.01));
    }
  }
}

}  // namespace

TEST_CASE("LARS by hand: |w| = 5, |g| = 1, so that the ratio is 0.03 / (1 + 0.1 * 5)") {
  const Optimizer lars{find_optimizer("lars"), {0.5, 0.03 / 5}};
  const Factors common =
      lars.factors({.learning_rate = 0.5F, .weight_decay = 0.1F, .gradient_scale = 2, .updates = 0});
  std::vector<float> values{3, 4}, gradients{0.3F, 0.4F}, momentum{0.001F, 0};
  const UpdateRange range{values.data(), gradients.data(), {momentum.data(), nullptr}, 2};
  const TensorSums sums = lars.traits->tensor_pass->measure(range, common);
  CHECK(sums[0] == doctest::Approx(25));
  CHECK(sums[1] == doctest::Approx(1));
  lars.traits->update(range, lars.traits->tensor_pass->adapt(common, sums));
  // The rate is 0.5 * 0.02, the decayed gradient (0.6 + 0.3, 0.8 + 0.4).
  CHECK(momentum[0] == doctest::Approx(0.0005 + 0.009));
  CHECK(momentum[1] == doctest::Approx(0.012));
  CHECK(values[0] == doctest::Approx(3 - 0.0095));
  CHECK(values[1] == doctest::Approx(4 - 0.012));
}

TEST_CASE("a tensor of zeros, or without a gradient, has a ratio of 1") {
  const Optimizer lars{find_optimizer("lars"), {0.9, 0.001}};
  const Factors common = lars.factors(kStep);
  CHECK(lars.traits->tensor_pass->adapt(common, {0, 4}) == common);
  CHECK(lars.traits->tensor_pass->adapt(common, {4, 0}) == common);
  CHECK(lars.traits->tensor_pass->adapt(common, {4, 4}) != common);
}

TEST_CASE("the update by LARS is the paper's, biases left out") {
  check_updates({find_optimizer("lars"), {0.8, 0.01}}, update_by_lars);
}

TEST_CASE("the update by LAMB is the paper's, biases left out") {
  check_updates({find_optimizer("lamb"), {0.5, 0.99, 1e-6}}, update_by_lamb);
}
