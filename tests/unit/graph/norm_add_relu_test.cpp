// Which sums of batch norms a GPU does in one pass, and what is left of the norms in its plan.
#include <cstring>

#include <doctest/doctest.h>

#include "runtime/cuda/lifetimes.hpp"
#include "runtime/cuda/lowering.hpp"
#include "runtime/graph/fuse.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

// The nodes: 0 the input, 1 and 2 convolutions, then what `sum` makes of them.
template <class Sum>
CudaPlan flat_sum(const Sum& sum) {
  GraphBuilder g("mine", {3, 8, 8, 2});
  const Value left = g.convolution("left", g.input(), {.filters = 8}),
              right = g.convolution("right", g.input(), {.filters = 8});
  g.softmax_cross_entropy(g.fully_connected("last", sum(g, left, right), 2));
  return lower(fuse(std::move(g).finish().value()), {}).value();
}

Value norm(GraphBuilder& g, const char* name, Value x) {
  return g.batch_norm(name, x);
}
Value sum_of_norms(GraphBuilder& g, Value left, Value right) {
  const Value a = norm(g, "a", left), b = norm(g, "b", right);
  return g.add(a, b);
}

}  // namespace

TEST_CASE("a sum of two batch norms reads what they read, and they keep their parameters") {
  const CudaPlan flat =
      flat_sum([](GraphBuilder& g, Value left, Value right) { return g.relu(sum_of_norms(g, left, right)); });
  const DlrunCudaNode& sum = flat.nodes[5];
  REQUIRE(is(sum, DLRUN_CUDA_NORM_SUM));
  CHECK(sum.activation == DLRUN_CUDA_RELU);
  CHECK(sum.input_count == 2);
  CHECK(sum.inputs[0] == 1);
  CHECK(sum.inputs[1] == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const DlrunCudaNode& joined = flat.nodes[sum.norms[i]];
    CHECK(sum.norms[i] == 3 + i);
    CHECK(is(joined, DLRUN_CUDA_ELIDED));
    CHECK(joined.input_count == 0);
    op::BatchNorm settings{.epsilon = 0};
    REQUIRE(joined.settings_bytes == sizeof settings);
    std::memcpy(&settings, joined.settings, sizeof settings);
    CHECK(settings.epsilon == 1e-5F);
    const std::string name = i == 0 ? "a" : "b";
    for (std::size_t tensor = 0; tensor < flat.layout.tensors().size(); ++tensor) {
      const std::string& found = flat.layout.tensors()[tensor].name;
      const std::size_t offset = flat.layout.place(tensor).offset;
      if (found == name + ".weight") CHECK(joined.weight == offset);
      if (found == name + ".bias") CHECK(joined.bias == offset);
      if (found == name + ".running_mean") CHECK(joined.running_mean == offset);
      if (found == name + ".running_var") CHECK(joined.running_variance == offset);
    }
  }
}

TEST_CASE("what two norms of a sum read stays for the way back, and their own values have no memory") {
  const CudaPlan flat =
      flat_sum([](GraphBuilder& g, Value left, Value right) { return g.relu(sum_of_norms(g, left, right)); });
  DlrunCudaPlan plan{};
  plan.nodes = flat.nodes.data(), plan.count = flat.nodes.size(), plan.batch = 4;
  const std::vector<Lifetime> values = cuda::value_lifetimes(plan, 2);
  const std::vector<Lifetime> gradients = cuda::gradient_lifetimes(plan, 2);
  const std::size_t back = 2 * plan.count - 1 - 5;
  for (const std::size_t convolution : {1, 2}) {
    CHECK(values[convolution].last == back);
    CHECK(gradients[convolution].first == back);
  }
  for (const std::size_t joined : {3, 4}) {
    CHECK(values[joined].bytes == 0);
    CHECK(gradients[joined].bytes == 0);
  }
}

TEST_CASE("batch norms whose value or parameters are wanted elsewhere are not done with a sum of two") {
  const auto joined = [](const auto& sum) {
    for (const DlrunCudaNode& node : flat_sum(sum).nodes)
      if (is(node, DLRUN_CUDA_NORM_SUM)) return true;
    return false;
  };
  CHECK(joined(sum_of_norms));
  CHECK_FALSE(joined([](GraphBuilder& g, Value left, Value right) {
    const Value read_twice = norm(g, "a", left);
    return g.concat({read_twice, g.add(read_twice, norm(g, "b", right))});
  }));
  CHECK_FALSE(joined([](GraphBuilder& g, Value left, Value right) {
    return g.add(g.relu(norm(g, "a", left)), norm(g, "b", right));
  }));
  CHECK_FALSE(joined([](GraphBuilder& g, Value left, Value right) {
    const Value twice = norm(g, "a", left);
    return g.concat({g.add(twice, twice), right});
  }));
  CHECK_FALSE(
      joined([](GraphBuilder& g, Value left, Value right) { return g.add(norm(g, "a", left), right); }));
  CHECK_FALSE(joined([](GraphBuilder& g, Value left, Value right) {
    const Value sum = sum_of_norms(g, left, right);
    g.use_weights(Weights::shared);
    const Value again = norm(g, "b", left);
    g.use_weights(Weights::own);
    return g.concat({sum, again});
  }));
}
