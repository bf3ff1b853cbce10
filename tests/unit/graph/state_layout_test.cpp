// The layout of a model's state that both devices have: order, buckets, names, first values.
#include "runtime/engine/state_layout.hpp"

#include <doctest/doctest.h>

using namespace dlrun::runtime;

namespace {

ParameterSpec parameter(const char* name, std::size_t node, std::size_t floats) {
  return {
      .name = name, .shape = {static_cast<std::int64_t>(floats)}, .node = node, .floats = floats, .bound = 1};
}

// Nodes 1 and 2 have parameters, node 1 a statistic too.
StateLayout small(const char* optimizer, std::size_t bucket_bytes) {
  StateLayout layout;
  layout.declare(parameter("a.weight", 1, 20));
  layout.declare(parameter("a.bias", 1, 3));
  layout.declare(StatisticSpec{"a.running_mean", 3, 0.5F});
  layout.declare(parameter("b.weight", 2, 16));
  layout.finish(*find_optimizer(optimizer), bucket_bytes);
  return layout;
}

std::vector<std::string> names_of(const StateLayout& layout) {
  std::vector<std::string> names;
  for (const TensorInfo& info : layout.tensors()) names.push_back(info.name);
  return names;
}

}  // namespace

TEST_CASE("ranks have parts of the state that make it whole, cut at blocks of rows") {
  std::size_t all = 0;
  std::vector<std::size_t> rows;
  for (int rank = 0; rank < 3; ++rank) {
    StateLayout layout;
    ParameterSpec matrix{.name = "w", .shape = {10, 32}, .node = 1, .floats = 320};
    matrix.cuts = {.floats = 64, .axis = 0, .rows = 2};
    layout.declare(matrix);
    layout.declare(parameter("b", 1, 10));  // it is not cut
    layout.finish(*find_optimizer("adam"), 1 << 20, StateLayout::Averages::none, StatePart{rank, 3});
    REQUIRE(layout.borders().size() == 1);
    CHECK(layout.borders()[0] == std::vector<std::size_t>{0, 128, 256, 336});
    all += layout.state_floats();
    const TensorInfo& exp_avg = layout.tensors()[2];
    REQUIRE(exp_avg.held.has_value());
    REQUIRE(exp_avg.held->size() == 1);
    CHECK(exp_avg.held->front() == slice_along({10, 32}, 0, 4 * rank, rank == 2 ? 2 : 4));
    CHECK(layout.tensors()[3].held->size() == (rank == 2 ? 1 : 0));
    CHECK_FALSE(layout.tensors()[0].held.has_value());  // weights are on all ranks
  }
  CHECK(all == 336);
}

TEST_CASE("parameters lie from the last node to the first, each in whole cache lines") {
  const StateLayout layout = small("sgd", 1 << 20);
  CHECK(layout.slice(2).offset == 0);
  CHECK(layout.slice(0).offset == 16);
  CHECK(layout.slice(0).length == 32);
  CHECK(layout.slice(1).offset == 48);
  CHECK(layout.floats() == 64 + kSpareSlots);
  const auto slices = layout.gradient_slices();
  REQUIRE(slices.size() == 3);
  CHECK(slices[0].name == "b.weight");
  CHECK(slices[2].name == "a.bias");
}

TEST_CASE("a bucket is closed once it holds enough, and the last one has the spare slots") {
  const StateLayout layout = small("sgd", 16 * sizeof(float));
  REQUIRE(layout.buckets().size() == 3);
  CHECK(layout.buckets()[0].length == 16);
  CHECK(layout.buckets()[1].length == 32);
  CHECK(layout.buckets()[2].length == 16 + kSpareSlots);
  CHECK(layout.final_after(2) == std::pair<std::size_t, std::size_t>(0, 1));
  CHECK(layout.final_after(1) == std::pair<std::size_t, std::size_t>(1, 3));
  CHECK(layout.final_after(0) == std::pair<std::size_t, std::size_t>(3, 3));
  CHECK(small("sgd", 1 << 20).buckets().size() == 1);
}

TEST_CASE("the spare slots are a bucket of their own where a model has no parameters") {
  StateLayout layout;
  layout.finish(*find_optimizer("sgd"), 1 << 20);
  REQUIRE(layout.buckets().size() == 1);
  CHECK(layout.buckets()[0].length == kSpareSlots);
}

TEST_CASE("an average of the weights is one more slot of state, behind the optimizer's") {
  StateLayout layout;
  layout.declare(ParameterSpec{.name = "a.weight", .shape = {2}, .floats = 2});
  layout.finish(*find_optimizer("adam"), 1 << 20, StateLayout::Averages::kept);
  REQUIRE(layout.tensors().size() == 4);
  CHECK(layout.tensors()[3].name == "a.weight.ema");
  CHECK(layout.tensors()[3].role == TensorInfo::Role::momentum);
  CHECK(layout.place(3).slot == 2);
}

TEST_CASE("the optimizer names its state, slot by slot") {
  CHECK(names_of(small("sgd", 1 << 20)) == std::vector<std::string>{"a.weight", "a.bias", "b.weight",
                                                                    "a.running_mean", "a.weight.momentum",
                                                                    "a.bias.momentum", "b.weight.momentum"});
  const StateLayout adam = small("adam", 1 << 20);
  CHECK(adam.tensors().size() == 3 + 1 + 2 * 3);
  CHECK(adam.tensors()[4].name == "a.weight.exp_avg");
  CHECK(adam.tensors()[9].name == "b.weight.exp_avg_sq");
  CHECK(adam.place(9).slot == 1);
  CHECK(adam.place(9).offset == adam.place(2).offset);
}

TEST_CASE("first values are of the seed and the name, and a statistic's are its constant") {
  const StateLayout layout = small("sgd", 1 << 20);
  std::vector<float> one(20), two(20), other(20), statistic(3);
  layout.first_values(0, 7, one);
  layout.first_values(0, 7, two);
  layout.first_values(0, 8, other);
  layout.first_values(3, 7, statistic);
  CHECK(one == two);
  CHECK(one != other);
  CHECK(statistic == std::vector<float>(3, 0.5F));
}

TEST_CASE("a tensor of another size is refused by name") {
  const auto wrong = small("sgd", 1 << 20).check_size(1, 4);
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().what == "tensor 'a.bias' has 3 numbers, not 4");
}

TEST_CASE("the hash tells another order, another bucket and another device's layout") {
  const auto hash = [](std::size_t bucket_bytes, const char* form) {
    StateLayout layout;
    ParameterSpec spec = parameter("w", 0, 64);
    spec.form = form;
    layout.declare(spec);
    layout.declare(parameter("v", 1, 64));
    layout.finish(*find_optimizer("sgd"), bucket_bytes);
    return layout.hash(1);
  };
  CHECK(hash(1 << 20, "a") == hash(1 << 20, "a"));
  CHECK(hash(1 << 20, "a") != hash(16, "a"));
  CHECK(hash(1 << 20, "a") != hash(1 << 20, "b"));
}
