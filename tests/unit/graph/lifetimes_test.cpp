// Only tensors with disjoint lifetimes share memory on a GPU.
#include "runtime/cuda/lifetimes.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "runtime/cuda/lowering.hpp"
#include "runtime/graph/fuse.hpp"
#include "runtime/models/models.hpp"
#include "tests/unit/graph/gpu_plan.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using cuda::gradient_holders, cuda::gradient_lifetimes, cuda::kPackingAlignment, cuda::value_lifetimes;
using runtime::test::clashes, runtime::test::plan_of;

namespace {

CudaPlan in_bf16(const char* model, const InputShape& shape) {
  return lower(fuse(build_model(model, shape).value()), {.precision = Precision::bf16}).value();
}
CudaPlan flat_resnet50() {
  return in_bf16("resnet50", {3, 224, 224, 1000});
}

}  // namespace

TEST_CASE("what is needed at the same time has memory of its own, the rest shares") {
  const Packing placed = pack({{1000, 0, 2}, {500, 3, 4}, {600, 2, 3}, {400, 3, 3}, {0, 0, 9}}, 256);
  CHECK(placed.offsets[0] == 0);
  CHECK(placed.offsets[1] == 0);
  CHECK(placed.offsets[2] == 1024);
  CHECK(placed.offsets[3] == 512);
  CHECK(placed.bytes == 1624);
}

TEST_CASE("no two tensors of a model overlap in both time and memory") {
  CHECK(clashes(flat_resnet50()) == 0);
  CHECK(clashes(in_bf16("googlenet", {3, 224, 224, 1000})) == 0);
  CHECK(clashes(in_bf16("inception-v3", {3, 299, 299, 1000})) == 0);
  CHECK(clashes(in_bf16("caffenet", {3, 227, 227, 1000})) == 0);
  CHECK(clashes(in_bf16("dcgan", {3, 64, 64, 10})) == 0);
  CHECK(clashes(in_bf16("cosmogan", {1, 64, 64, 10})) == 0);
}

TEST_CASE("what is detached has no memory of its own, and stays for those that read it there") {
  const CudaPlan flat = in_bf16("dcgan", {3, 64, 64, 10});
  const std::vector<Lifetime> lives = value_lifetimes(plan_of(flat, 8), 2);
  const auto detached = std::find_if(flat.nodes.begin(), flat.nodes.end(),
                                     [](const DlrunCudaNode& node) { return is(node, "detach"); }) -
                        flat.nodes.begin();
  const Lifetime& alone = lives[static_cast<std::size_t>(detached)];
  const Lifetime& images = lives[flat.nodes[static_cast<std::size_t>(detached)].inputs[0]];
  CHECK(alone.bytes == 0);
  CHECK(images.bytes == 8 * 3 * 64 * 64 * 2);
  CHECK(images.last >= alone.last);
  // The first convolution that reads it looks at it again on the way back.
  CHECK(alone.last >= 2 * flat.nodes.size() - 1 - static_cast<std::size_t>(detached + 1));
}

TEST_CASE("a gradient that a loss leaves in the forward pass lives from there, also where others add to it") {
  GraphBuilder g("mine", {3, 8, 8, 2});
  const Value first = g.fully_connected("first", g.input(), 2);
  g.auxiliary_loss(first, 0.5F);
  g.softmax_cross_entropy(g.fully_connected("last", first, 2));
  const CudaPlan flat = lower(fuse(std::move(g).finish().value()), {}).value();
  REQUIRE(is(flat.nodes[2], "softmax_cross_entropy"));
  CHECK(gradient_lifetimes(plan_of(flat, 8), 4)[1].first == 2);
}

namespace {

// A trunk with two branches; `first` makes the end of the first of them, from what the branch has and the
// trunk.
template <class First>
CudaPlan two_branches(const First& first) {
  GraphBuilder g("mine", token_sequences(8, 50));
  const Value trunk = g.embedding("tokens", g.input(), {.features = 16});
  const Value sum = g.add(trunk, first(g, g.layer_norm("norm1", trunk), trunk));
  const Value end = g.add(g.linear("last", g.layer_norm("norm2", sum), {.outputs = 16}), sum);
  g.vocabulary_loss("scores", end, {}, Weights::own);
  return lower(fuse(std::move(g).finish().value()), {}).value();
}

}  // namespace

TEST_CASE("one gradient goes down a residual trunk, in one place") {
  const CudaPlan flat = two_branches(
      [](GraphBuilder& g, Value branch, Value) { return g.linear("first", branch, {.outputs = 16}); });
  // input, trunk, norm1, first (which joins the) sum, norm2, last (which joins the) end, loss
  const DlrunCudaPlan plan = plan_of(flat, 8);
  CHECK(gradient_holders(plan) == std::vector<std::size_t>{0, 7, 2, 3, 7, 5, 6, 7, 8});
  const std::vector<Lifetime> lives = gradient_lifetimes(plan, 4);
  CHECK(lives[1].bytes == 0);
  CHECK(lives[7].bytes == 8 * 8 * 16 * 4);
  // From the loss, which leaves it, to the trunk's own backward.
  CHECK(lives[7].first == 8);
  CHECK(lives[7].last >= 2 * flat.nodes.size() - 1 - 1);
  CHECK(clashes(flat) == 0);
}

TEST_CASE("a gradient that a branch changes, or that the trunk gets too early, is no sum's own") {
  const CudaPlan changes =
      two_branches([](GraphBuilder& g, Value branch, Value) { return g.apply(op::Gelu{}, {branch}); });
  CHECK(gradient_holders(plan_of(changes, 8))[1] == 1);
  const CudaPlan early = two_branches([](GraphBuilder& g, Value branch, Value trunk) {
    const Value end = g.linear("first", branch, {.outputs = 16});
    g.vocabulary_loss("early", trunk, {}, Weights::own);
    return end;
  });
  CHECK(gradient_holders(plan_of(early, 8))[1] == 1);
}

TEST_CASE("ResNet-50's activations and their gradients at batch 256 in bf16 take less than 11 GiB") {
  const CudaPlan flat = flat_resnet50();
  const DlrunCudaPlan plan = plan_of(flat, 256);
  std::vector<Lifetime> all = value_lifetimes(plan, 2);
  const std::vector<Lifetime> gradients = gradient_lifetimes(plan, 2);
  all.insert(all.end(), gradients.begin(), gradients.end());
  const std::size_t bytes = pack(all, kPackingAlignment).bytes;
  CHECK(bytes < std::size_t{11} << 30);
  MESSAGE("bytes: " << bytes);
}
