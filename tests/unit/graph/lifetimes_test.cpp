// What may share memory on a GPU: lifetimes that do not meet, and nothing else.
#include "runtime/graph/cuda/lifetimes.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "runtime/graph/cuda/flat_plan.hpp"
#include "runtime/graph/fuse.hpp"
#include "runtime/models/models.hpp"

using namespace dlrun;
using namespace dlrun::cuda;
using namespace dlrun::runtime;

namespace {

DlrunCudaPlan plan_of(const FlatPlan& flat, std::int64_t batch) {
  DlrunCudaPlan plan{};
  plan.nodes = flat.nodes.data(), plan.count = flat.nodes.size(), plan.batch = batch;
  return plan;
}

FlatPlan flat_of(const char* model, const InputShape& shape) {
  return flatten(fuse(build_model(model, shape).value()), {.precision = Precision::bf16}).value();
}
FlatPlan flat_resnet50() {
  return flat_of("resnet50", {3, 224, 224, 1000});
}

std::size_t clashes(const FlatPlan& flat) {
  const DlrunCudaPlan plan = plan_of(flat, 8);
  std::vector<Lifetime> all = value_lifetimes(plan, 2);
  const std::vector<Lifetime> gradients = gradient_lifetimes(plan, 2);
  all.insert(all.end(), gradients.begin(), gradients.end());
  const Placement placed = place(all);
  std::size_t found = 0;
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = a + 1; b < all.size(); ++b) {
      const bool in_time = all[a].first <= all[b].last && all[b].first <= all[a].last;
      const bool in_memory = placed.offsets[a] < placed.offsets[b] + all[b].bytes &&
                             placed.offsets[b] < placed.offsets[a] + all[a].bytes;
      if (all[a].bytes != 0 && all[b].bytes != 0 && in_time && in_memory) ++found;
    }
  return found;
}

}  // namespace

TEST_CASE("what is needed at the same time has memory of its own, the rest shares") {
  const Placement placed = place({{1000, 0, 2}, {500, 3, 4}, {600, 2, 3}, {400, 3, 3}, {0, 0, 9}});
  CHECK(placed.offsets[0] == 0);
  CHECK(placed.offsets[1] == 0);
  CHECK(placed.offsets[2] == 1024);
  CHECK(placed.offsets[3] == 512);
  CHECK(placed.bytes == 1624);
}

TEST_CASE("no two tensors of a model that meet in time meet in memory") {
  CHECK(clashes(flat_resnet50()) == 0);
  CHECK(clashes(flat_of("googlenet", {3, 224, 224, 1000})) == 0);
  CHECK(clashes(flat_of("inception-v3", {3, 299, 299, 1000})) == 0);
  CHECK(clashes(flat_of("caffenet", {3, 227, 227, 1000})) == 0);
}

TEST_CASE("every model that classifies has a form on a GPU") {
  for (const Model& model : models()) {
    if (model.task != Task::classify) continue;
    const std::string name(model.name);
    CAPTURE(name);
    const InputShape shape = name == "mnist-cnn" ? InputShape{} : InputShape{3, 299, 299, 10};
    CHECK(flatten(fuse(model.build(shape).value()), {}));
  }
}

TEST_CASE("what a GPU has no form of is refused by name, before a device is asked for anything") {
  const auto refusal = [](const auto& middle, const EngineOptions& options = {}) {
    GraphBuilder g("mine", {3, 8, 8, 2});
    g.softmax_cross_entropy(g.fully_connected("last", middle(g, g.input()), 2));
    const auto flat = flatten(fuse(std::move(g).finish().value()), options);
    return flat ? "no error" : flat.error().text();
  };
  CHECK(refusal([](GraphBuilder& g, Value x) {
          return g.transposed_convolution("up", x, {.filters = 8, .kernel = 2, .stride = 2});
        }) == "model 'mine': a transposed convolution has no form on a GPU\n  hint: write device: cpu");
  CHECK(refusal([](GraphBuilder& g, Value x) {
          return g.tanh(g.batch_norm("bn", x));
        }).starts_with("model 'mine': a tanh has no form on a GPU"));
  CHECK(refusal([](GraphBuilder& g, Value x) {
          return g.leaky_relu(g.max_pool(x, {}), 0.1F);
        }).starts_with("model 'mine': a leaky relu has no form on a GPU"));
  CHECK(refusal([](GraphBuilder& g, Value x) {
          return g.leaky_relu(g.convolution("c", x, {.filters = 8, .kernel = 3}), 0.1F);
        }).starts_with("model 'mine': a convolution with a leaky ReLU behind it has no form on a GPU"));
  CHECK(refusal([](GraphBuilder& g, Value x) { return g.relu(x); }, {.adam = AdamRule{}})
            .starts_with("model 'mine': the optimizer adam has no form on a GPU"));
  CHECK(flatten(fuse(dcgan({3, 64, 64, 10}).value()), {}).error().kind == dlrun::ErrorKind::unavailable);
}

TEST_CASE("buckets cover the gradients in the order in which backward completes them") {
  for (const char* model : {"resnet50", "googlenet"}) {
    const FlatPlan flat = flat_of(model, {3, 224, 224, 1000});
    std::size_t end = 0, node = flat.nodes.size();
    for (const DlrunCudaBucket& bucket : flat.final_after) {
      CHECK(bucket.offset == end);
      CHECK(bucket.node < node);
      end += bucket.length, node = bucket.node;
    }
    CHECK(end == flat.floats);
    CHECK(flat.final_after.size() == flat.buckets.size());
    // No gradient is written after its bucket has left.
    for (std::size_t index = 0; index < flat.nodes.size(); ++index)
      for (const DlrunCudaBucket& bucket : flat.final_after)
        if (flat.nodes[index].kind == DLRUN_CUDA_CONVOLUTION && flat.nodes[index].weight >= bucket.offset &&
            flat.nodes[index].weight < bucket.offset + bucket.length)
          CHECK(index >= bucket.node);
  }
}

TEST_CASE("ResNet-50's activations and their gradients at batch 256 in bf16 take less than 11 GiB") {
  const FlatPlan flat = flat_resnet50();
  const DlrunCudaPlan plan = plan_of(flat, 256);
  std::vector<Lifetime> all = value_lifetimes(plan, 2);
  const std::vector<Lifetime> gradients = gradient_lifetimes(plan, 2);
  all.insert(all.end(), gradients.begin(), gradients.end());
  const std::size_t bytes = place(all).bytes;
  CHECK(bytes < std::size_t{11} << 30);
  MESSAGE("bytes: " << bytes);
}

TEST_CASE("a batch norm right before a sum joins it, and its tensors keep their names and order") {
  const FlatPlan flat = flat_resnet50();
  std::size_t joined = 0, nothing = 0, sums = 0;
  for (const DlrunCudaNode& node : flat.nodes) {
    joined += node.kind == DLRUN_CUDA_BATCH_NORM && node.input_count == 2 ? 1 : 0;
    nothing += node.kind == DLRUN_CUDA_NOTHING ? 1 : 0;
    sums += node.kind == DLRUN_CUDA_ADD ? 1 : 0;
  }
  CHECK(joined == 16);
  CHECK(nothing == 17);  // and the one before the first pooling
  CHECK(sums == 0);
  CHECK(std::count_if(flat.nodes.begin(), flat.nodes.end(),
                      [](const DlrunCudaNode& node) { return node.kind == DLRUN_CUDA_NORM_POOL; }) == 1);
  CHECK(flat.tensors[0].info.name == "conv1.weight");
  CHECK(flat.tensors[1].info.name == "bn1.weight");
}
