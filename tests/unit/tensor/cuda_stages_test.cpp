// What a stage of a pipeline gives its GPU: the state that its CPU would have, borders that compute nothing
// and need no memory, and who adds and counts what two stages have.
#include <algorithm>

#include <doctest/doctest.h>

#include "runtime/cpu/cpu_engine.hpp"
#include "runtime/cuda/lifetimes.hpp"
#include "runtime/cuda/lowering.hpp"
#include "runtime/graph/fuse.hpp"
#include "runtime/graph/roles.hpp"
#include "runtime/graph/stages.hpp"
#include "runtime/models/models.hpp"
#include "runtime/train/pipeline_links.hpp"
#include "tensor_models.hpp"
#include "tests/unit/graph/gpu_plan.hpp"
#include "tests/unit/tensor/same_state.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

CudaPlan stage_of(const Graph& whole, const StageRank& rank, const EngineOptions& options = {}) {
  return lower(fuse(cut_graph(whole, rank).value()), options).value();
}

}  // namespace

TEST_CASE("a stage's GPU has the state that its CPU would have, with the same first values") {
  PipelineLinks links;
  const EngineOptions options{
      .batch = 1, .seed = 3, .optimizer = default_optimizer("adam"), .stage_links = &links};
  for (const Graph& whole : {gpt_like(41), llama_like(), fully_connected_model()})
    for (const int stage : {0, 1, 2}) {
      const StageRank rank{stage, 3};
      const auto cpu = compile(cut_graph(whole, rank).value(), options).value();
      check_same_state(stage_of(whole, rank, options).layout, *cpu, options.seed);
    }
}

TEST_CASE("a stage wants the gradient of what it gets, and what it gives lies where it is") {
  for (const Graph& whole : {gpt_like(41), llama_like(), fully_connected_model()}) {
    const CudaPlan middle = stage_of(whole, {1, 3});
    const DlrunCudaNode &first = middle.nodes.front(), &last = middle.nodes.back();
    REQUIRE(is(first, "stage_input"));
    REQUIRE(is(last, "stage_output"));
    CHECK(first.needs_gradient == 1);
    CHECK((last.facts & DLRUN_CUDA_IN_PLACE) != 0);
    CHECK(middle.nodes[last.inputs[0]].needs_gradient == 1);
    const DlrunCudaPlan plan = plan_of(middle, 4);
    const std::size_t end = middle.nodes.size() - 1;
    const Lifetime sent = cuda::value_lifetimes(plan, 2)[last.inputs[0]];
    CHECK(sent.last >= end);  // until the forward pass is done
    const std::size_t holder = cuda::gradient_holders(plan)[last.inputs[0]];
    const Lifetime received = cuda::gradient_lifetimes(plan, 2)[holder];
    CHECK(received.bytes > 0);
    CHECK(received.first <= end + 1);  // from the start of the backward pass on
    const std::size_t outgoing = cuda::gradient_holders(plan)[0];
    CHECK(cuda::gradient_lifetimes(plan, 2)[outgoing].bytes ==
          static_cast<std::size_t>(4 * first.channels * first.height * first.width * 2));
  }
}

TEST_CASE("no two tensors of a stage overlap in both time and memory") {
  for (const Graph& whole : {gpt_like(41), llama_like(), fully_connected_model(),
                             build_model("resnet18", {3, 64, 64, 10}).value()})
    for (const int stage : {0, 1, 2})
      CHECK(clashes(stage_of(whole, {stage, 3}, {.precision = Precision::bf16})) == 0);
}

TEST_CASE("buckets of weights that two stages have wait, and the first stage counts these") {
  const EngineOptions options{.bucket_bytes = 256};
  for (const int stage : {0, 1, 2}) {
    CAPTURE(stage);
    const CudaPlan flat = stage_of(gpt_like(41), {stage, 3}, options);
    std::size_t waiting = 0, copies = 0, copied = flat.tensors.size();
    for (const DlrunCudaBucket& bucket : flat.buckets) waiting += bucket.waits == 0 ? 0 : 1;
    for (std::size_t i = 0; i < flat.tensors.size(); ++i)
      if (flat.tensors[i].is_copy != 0) ++copies, copied = i;
    CHECK(waiting == (stage == 1 ? 0 : 1));
    REQUIRE(copies == (stage == 2 ? 1 : 0));
    if (copies > 0) CHECK(flat.layout.parameters()[copied].name == "wte.weight");
  }
  for (const DlrunCudaBucket& bucket : stage_of(llama_like(), {0, 2}, options).buckets)
    CHECK(bucket.waits == 0);
}

TEST_CASE("a stage knows the rows of the data that it does not read") {
  for (const int stage : {0, 1}) {
    const Graph tokens = cut_graph(gpt_like(41), {stage, 2}).value();
    CHECK(kind_of_rows(tokens) == SampleKind::tokens);
    CHECK(shape_of_rows(tokens).positions() == 8);
    const Graph images = cut_graph(fully_connected_model(), {stage, 2}).value();
    CHECK(kind_of_rows(images) == SampleKind::image);
    CHECK(shape_of_rows(images) == Shape{3, 4, 4});
  }
}
