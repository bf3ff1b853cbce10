// The table of optimizers, and what each row promises to engines and job files.
#include "runtime/optim/optimizer.hpp"

#include <cstring>

#include <doctest/doctest.h>

#include "fixture.hpp"
#include "runtime/cpu/kernels/kernels.hpp"

using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

constexpr std::size_t kCount = 64, kRow = 16;

// Numbers of one parameter that an optimizer updates.
struct Subject {
  std::vector<float> values = random_numbers(kCount, 1), gradients = random_numbers(kCount, 2);
  std::vector<float> state[kMaxStateSlots] = {std::vector<float>(kCount), std::vector<float>(kCount)};
  UpdateRange range(std::size_t begin, std::size_t end) {
    return {values.data() + begin,
            gradients.data() + begin,
            {state[0].data() + begin, state[1].data() + begin},
            end - begin};
  }
};

const UpdateStep kStep{.learning_rate = 0.1F, .weight_decay = 0.01F, .gradient_scale = 0.5F, .updates = 3};

}  // namespace

TEST_CASE("every optimizer has a name, defaults that a job file may give, and a place for its state") {
  for (const OptimizerTraits* traits : optimizers()) {
    CAPTURE(std::string(traits->name));
    CHECK(find_optimizer(traits->name) == traits);
    CHECK(traits->state.size() <= kMaxStateSlots);
    REQUIRE(traits->hyperparameters.size() <= kMaxHyperparameters);
    for (const Hyperparameter& of : traits->hyperparameters) {
      CHECK(of.lowest <= of.fallback);
      CHECK(of.fallback <= of.highest);
    }
  }
  CHECK(find_optimizer("sdg") == nullptr);
}

TEST_CASE("an optimizer's identity has all its numbers") {
  CHECK(momentum_sgd(0.5).identity() == "sgd momentum=0.5");
  CHECK(default_optimizer("adam").identity() == "adam beta1=0.9 beta2=0.999 epsilon=1e-08");
}

TEST_CASE("an update in parts is the update of the whole, to the bit") {
  for (const OptimizerTraits* traits : optimizers()) {
    CAPTURE(std::string(traits->name));
    const Factors factors = default_optimizer(traits->name).factors(kStep);
    Subject whole, parts;
    traits->update(whole.range(0, kCount), factors);
    traits->update(parts.range(0, 32), factors);
    traits->update(parts.range(32, kCount), factors);
    CHECK(whole.values == parts.values);
    CHECK(whole.values != Subject().values);
    for (std::size_t slot = 0; slot < traits->state.size(); ++slot)
      CHECK(whole.state[slot] == parts.state[slot]);
  }
}

TEST_CASE("an update that writes the interleaved copy leaves the same bits, and the copy is the values'") {
  for (const OptimizerTraits* traits : optimizers()) {
    if (traits->update_and_interleave == nullptr) continue;
    CAPTURE(std::string(traits->name));
    const Factors factors = default_optimizer(traits->name).factors(kStep);
    Subject plain, both;
    std::vector<kernels::Bf16> written(kCount), expected(kCount);
    traits->update(plain.range(0, kCount), factors);
    traits->update_and_interleave(both.range(0, kCount), {written.data(), kRow}, factors);
    kernels::interleave(expected.data(), plain.values.data(), kCount, kRow);
    CHECK(both.values == plain.values);
    CHECK(both.state[0] == plain.state[0]);
    CHECK(std::memcmp(written.data(), expected.data(), kCount * sizeof(kernels::Bf16)) == 0);
  }
}
