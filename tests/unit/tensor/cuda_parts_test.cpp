// What a rank of a tensor group, or one with a part of the optimizer's state, gives its GPU: its part of each
// parameter and of the state, who adds what the group has once, and where sums over the group lie.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/cpu/cpu_engine.hpp"
#include "runtime/cuda/lifetimes.hpp"
#include "runtime/cuda/lowering.hpp"
#include "runtime/graph/fuse.hpp"
#include "runtime/graph/split.hpp"
#include "runtime/models/models.hpp"
#include "tensor_models.hpp"
#include "tests/unit/graph/gpu_plan.hpp"
#include "tests/unit/tensor/same_state.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

constexpr auto kOn = SequenceParallel::on;

CudaPlan part_of(const Graph& whole, const TensorRank& rank, const EngineOptions& options = {}) {
  return lower(fuse(split_graph(whole, rank).value()), options).value();
}
CudaPlan part_of(const Graph& whole, int part, int parts, const EngineOptions& options = {}) {
  return part_of(whole, TensorRank{part, parts}, options);
}

std::size_t only(const CudaPlan& flat, std::string_view kind) {
  std::size_t found = flat.nodes.size();
  for (std::size_t index = 0; index < flat.nodes.size(); ++index)
    if (is(flat.nodes[index], kind)) found = std::min(found, index);
  REQUIRE(found < flat.nodes.size());
  return found;
}

bool leaves_terms(const DlrunCudaNode& node) {
  return (node.facts & DLRUN_CUDA_LEAVES_TERMS) != 0;
}

}  // namespace

TEST_CASE("a rank's GPU has the part of the state that its CPU would have, with the same first values") {
  const EngineOptions options{.batch = 1, .seed = 3, .optimizer = default_optimizer("adam")};
  for (const Graph& whole : {gpt_like(41), llama_like(), fully_connected_model()})
    for (const int part : {0, 1}) {
      const auto cpu = compile(split_graph(whole, {part, 2}).value(), options).value();
      const CudaPlan flat = part_of(whole, part, 2, options);
      check_same_state(flat.layout, *cpu, options.seed);
      for (std::size_t i = 0; i < flat.layout.tensors().size(); ++i) {
        const DeviceOrder& order = flat.orders[flat.layout.place(i).owner];
        CHECK(order.filters * order.channels * order.pixels == flat.layout.tensors()[i].elements());
      }
    }
}

TEST_CASE("biases and positions are added by one rank of a group, and columns' biases by all") {
  for (const int part : {0, 1}) {
    const CudaPlan flat = part_of(gpt_like(41), part, 2, {.batch = 2});
    int terms = 0;
    for (std::size_t index = 0; index + 1 < flat.nodes.size(); ++index) {
      if (!is(flat.nodes[index], "linear")) continue;
      const bool is_term = is(flat.nodes[index + 1], "tensor_sum");
      CHECK(leaves_terms(flat.nodes[index]) == (is_term && part == 1));
      terms += is_term ? 1 : 0;
    }
    CHECK(terms == 4);  // out and down of two layers
    const DlrunCudaNode &table = flat.nodes[only(flat, "embedding")],
                        &loss = flat.nodes[only(flat, "vocabulary_loss")];
    CHECK(leaves_terms(table) == (part == 1));
    for (const DlrunCudaNode* node : {&table, &loss}) {
      CHECK(node->parts == 2);
      CHECK(node->tokens == 41);
      CHECK(node->first_token == (part == 0 ? 0 : 21));
    }
  }
}

TEST_CASE("dropout behind a divided layer is told its part of the features, and other dropout none") {
  for (const int part : {0, 1}) {
    const CudaPlan flat = part_of(fully_connected_model(), part, 2);
    std::vector<std::pair<std::int64_t, std::int64_t>> seen;
    for (const DlrunCudaNode& node : flat.nodes)
      if (is(node, "dropout")) seen.emplace_back(node.part, node.parts);
    CHECK(seen == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1}, {part, 2}});
  }
}

TEST_CASE("parameters that a group divides are told from those that all of its ranks have") {
  const CudaPlan flat = part_of(gpt_like(), 0, 2);
  for (std::size_t i = 0; i < flat.tensors.size(); ++i) {
    const ParameterSpec& of = flat.layout.parameters()[i];
    CAPTURE(of.name);
    CHECK(flat.tensors[i].share == (of.of ? DLRUN_CUDA_PART : DLRUN_CUDA_WHOLE));
  }
  const auto parts = std::count_if(flat.tensors.begin(), flat.tensors.end(),
                                   [](const DlrunCudaTensor& one) { return one.share == DLRUN_CUDA_PART; });
  CHECK(parts > 0);
  CHECK(parts < static_cast<std::ptrdiff_t>(flat.tensors.size()));
}

TEST_CASE("sums over a group need no memory of their own, and gradients pass them on their way") {
  const CudaPlan flat = part_of(gpt_like(), 0, 2, {.precision = Precision::bf16});
  const DlrunCudaPlan plan = plan_of(flat, 4);
  const auto values = cuda::value_lifetimes(plan, 2), gradients = cuda::gradient_lifetimes(plan, 2);
  const auto holders = cuda::gradient_holders(plan);
  int sums = 0, copies = 0;
  for (std::size_t index = 0; index < plan.count; ++index) {
    const DlrunCudaNode& node = flat.nodes[index];
    const bool is_sum = is(node, "tensor_sum");
    if (!is_sum && !is(node, "tensor_copy")) continue;
    (is_sum ? sums : copies) += 1;
    CHECK(values[index].bytes == 0);
    CHECK(holders[node.inputs[0]] == holders[index]);
    CHECK(gradients[node.inputs[0]].bytes == 0);
  }
  CHECK(sums == 5);    // the embedding, and two of each layer
  CHECK(copies == 5);  // two of each layer, and the loss
  // Behind a sum, one gradient goes down the trunk as without a group.
  const std::size_t end = only(flat, "layer_norm");
  const std::size_t trunk = flat.nodes[end].inputs[0];
  CHECK(is(flat.nodes[trunk], "tensor_sum"));
  std::vector<std::size_t> adds;
  for (std::size_t index = 0; index < plan.count; ++index)
    if (is(flat.nodes[index], "add")) adds.push_back(index);
  REQUIRE(adds.size() == 4);
  for (const std::size_t add : adds) {
    CHECK((flat.nodes[add].facts & DLRUN_CUDA_PASSES_GRADIENT) != 0);
    CHECK(holders[trunk] == holders[add]);
  }
}

TEST_CASE("a rank's slice of the positions is told to what works on it, and so is who adds what") {
  const Graph whole = gpt_like(41, ", dropout: 0.1");
  for (const int part : {0, 1}) {
    const CudaPlan flat = part_of(whole, TensorRank{part, 2, kOn}, {.batch = 2});
    std::map<std::string, int> seen;
    for (std::size_t index = 0; index < flat.nodes.size(); ++index) {
      const DlrunCudaNode& node = flat.nodes[index];
      const bool gathers = is(node, "tensor_gather"), scatters = is(node, "tensor_scatter");
      ++seen[node.kind];
      CAPTURE(index);
      const bool on_slice = is(node, "layer_norm") || is(node, "add") || is(node, "dropout");
      CHECK(node.slices == (gathers || scatters || on_slice ? 2 : 1));
      CHECK(node.slice == (node.slices == 2 ? part : 0));
      if (!is(node, "vocabulary_loss")) CHECK(node.height == (on_slice || scatters ? 4 : 8));
      if (gathers || scatters) CHECK(node.in_height == (gathers ? 4 : 8));
      if (scatters && is(flat.nodes[index - 1], "linear"))
        CHECK(leaves_terms(flat.nodes[index - 1]) == (part == 1));
    }
    CHECK(seen["tensor_scatter"] == 5);  // the embedding, and two of each layer
    CHECK(seen["tensor_gather"] == 5);   // two of each layer, and the loss
    CHECK(seen["tensor_sum"] + seen["tensor_copy"] == 0);
  }
}

TEST_CASE("gradients of parameters that work on slices are terms, others are whole or parts") {
  const CudaPlan flat = part_of(gpt_like(), TensorRank{0, 2, kOn});
  std::map<DlrunCudaShare, int> counted;
  for (std::size_t i = 0; i < flat.tensors.size(); ++i) {
    const ParameterSpec& of = flat.layout.parameters()[i];
    CAPTURE(of.name);
    const bool is_norm = of.name.find("ln_") != std::string::npos;
    ++counted[flat.tensors[i].share];
    CHECK((flat.tensors[i].share == DLRUN_CUDA_TERM) == is_norm);
    CHECK((flat.tensors[i].share == DLRUN_CUDA_PART) == of.of.has_value());
  }
  CHECK(counted[DLRUN_CUDA_TERM] == 10);  // scale and shift of two norms of each layer, and of the last one
  CHECK(counted[DLRUN_CUDA_WHOLE] == 5);  // positions, and the biases of rows
}

namespace {

// Values, gradients, and values that are gathered again.
struct Memory {
  std::vector<Lifetime> all;
  std::size_t bytes;
};
Memory memory_of(const CudaPlan& flat, std::int64_t batch) {
  const DlrunCudaPlan plan = plan_of(flat, batch);
  Memory out{cuda::value_lifetimes(plan, 2), 0};
  for (const auto& more : {cuda::gradient_lifetimes(plan, 2), cuda::restored_lifetimes(plan, 2)})
    out.all.insert(out.all.end(), more.begin(), more.end());
  out.bytes = pack(out.all, cuda::kPackingAlignment).bytes;
  return out;
}

}  // namespace

TEST_CASE("gathered positions are there for their layers, and until the way back only the slice is") {
  const CudaPlan flat = part_of(gpt_like(), TensorRank{1, 2, kOn}, {.precision = Precision::bf16});
  const std::size_t count = flat.nodes.size();
  const std::vector<Lifetime> all = memory_of(flat, 4).all;
  const auto backward_of = [count](std::size_t index) { return 2 * count - 1 - index; };
  int again = 0;
  for (std::size_t index = 0; index < count; ++index) {
    const DlrunCudaNode& node = flat.nodes[index];
    const Lifetime &value = all[index], &restored = all[2 * count + index];
    if ((node.facts & DLRUN_CUDA_GATHERED_AGAIN) == 0) {
      CHECK(restored.bytes == 0);
      continue;
    }
    ++again;
    REQUIRE(is(node, "tensor_gather"));
    const std::size_t reader = cuda::last_reader(plan_of(flat, 4), index);
    CHECK(value.last == reader);
    CHECK(restored.bytes == value.bytes);
    CHECK(restored.first == backward_of(reader));
    CHECK(restored.last >= backward_of(reader));
    CHECK(all[node.inputs[0]].last >= backward_of(index));
    CHECK(all[node.inputs[0]].bytes == value.bytes / 2);
  }
  CHECK(again == 4);  // the loss leaves its gradient in the forward pass, and reads nothing on the way back
}

TEST_CASE("one gradient goes down the trunk of a model whose ranks have slices") {
  const CudaPlan flat = part_of(gpt_like(), TensorRank{0, 2, kOn}, {.precision = Precision::bf16});
  const auto holders = cuda::gradient_holders(plan_of(flat, 4));
  int adds = 0;
  for (std::size_t index = 0; index < flat.nodes.size(); ++index) {
    if (!is(flat.nodes[index], "add")) continue;
    ++adds;
    for (const std::size_t input : {flat.nodes[index].inputs[0], flat.nodes[index].inputs[1]})
      CHECK(holders[input] == holders[index]);
  }
  CHECK(adds == 4);
}

TEST_CASE("slices of the positions take less of a GPU's memory than whole values") {
  const Graph whole = graph_of("transformer: {layers: 4, heads: 8, features: 64}", token_sequences(128, 40));
  const EngineOptions options{.precision = Precision::bf16};
  struct Case {
    int parts;
    double most;
  };
  for (const Case& one : {Case{2, 0.9}, Case{4, 0.7}, Case{8, 0.5}}) {
    CAPTURE(one.parts);
    const auto bytes = [&](SequenceParallel sequence) {
      const CudaPlan flat = part_of(whole, TensorRank{0, one.parts, sequence}, options);
      return static_cast<double>(memory_of(flat, 8).bytes);
    };
    const double share = bytes(kOn) / bytes(SequenceParallel::off);
    CHECK(share < one.most);
    MESSAGE("share: " << share);
  }
}

TEST_CASE("the ranks of a data group have the sums of each gradient once, those of a divided model, too") {
  const EngineOptions all{.optimizer = default_optimizer("adamw")};
  for (const int parts : {1, 2}) {
    std::vector<std::size_t> ends;
    for (const int rank : {0, 1, 2}) {
      EngineOptions options = all;
      options.bucket_bytes = 8 << 10;
      options.state_part = StatePart{rank, 3};
      const Graph whole = gpt_like(41, ", hidden: 200");
      const CudaPlan flat =
          parts == 1 ? lower(fuse(whole), options).value() : part_of(whole, TensorRank{1, 2, kOn}, options);
      ends.resize(flat.tensors.size());
      for (std::size_t i = 0; i < flat.tensors.size(); ++i) {
        const DlrunCudaTensor& one = flat.tensors[i];
        CHECK(one.own_begin <= one.own_end);
        if (one.own_begin == one.own_end) continue;
        CHECK(one.own_begin == ends[i]);
        ends[i] = one.own_end;
        // It is what the rank updates.
        CHECK(std::any_of(flat.owned.begin(), flat.owned.end(), [&](const DlrunCudaOwned& own) {
          return own.offset <= one.offset + one.own_begin &&
                 one.offset + one.own_end <= own.offset + own.length;
        }));
      }
      if (rank == 2)
        for (std::size_t i = 0; i < flat.tensors.size(); ++i) CHECK(ends[i] == flat.tensors[i].length);
    }
  }
  for (const DlrunCudaTensor& one : part_of(gpt_like(), 0, 2, all).tensors) {
    CHECK(one.own_begin == 0);
    CHECK(one.own_end == one.length);
  }
}

TEST_CASE("ranks have parts of the optimizer's state that make the whole, at rows of weights") {
  const Graph whole = gpt_like(1000, ", hidden: 200");
  const auto plan_of = [&](std::optional<StatePart> part) {
    return lower(fuse(whole), {.bucket_bytes = 8 << 10,
                               .optimizer = default_optimizer("adamw"),
                               .average = 0.5F,
                               .state_part = part})
        .value();
  };
  CHECK(plan_of({}).owned.empty());
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    std::size_t sum = 0, largest = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const CudaPlan flat = plan_of(StatePart{rank, ranks});
      REQUIRE(flat.owned.size() == flat.buckets.size());
      std::size_t state = 0;
      for (std::size_t bucket = 0; bucket < flat.owned.size(); ++bucket) {
        const DlrunCudaOwned& own = flat.owned[bucket];
        CHECK(own.state == state);
        CHECK(own.offset % DLRUN_CUDA_SLICE_ALIGNMENT == 0);
        CHECK(own.offset ==
              flat.buckets[bucket].offset + flat.layout.borders()[bucket][static_cast<std::size_t>(rank)]);
        state += own.length;
      }
      CHECK(state == flat.layout.state_floats());
      sum += state, largest = std::max(largest, state);
      for (std::size_t i = 0; i < flat.layout.tensors().size(); ++i) {
        const TensorInfo& info = flat.layout.tensors()[i];
        if (info.role != TensorInfo::Role::momentum) continue;
        CAPTURE(info.name);
        const DeviceOrder& order = flat.orders[flat.layout.place(i).owner];
        CHECK(info.elements() % (order.channels * order.pixels) == 0);
        if (info.elements() == 0) continue;
        // Its first number, in the arena of the state and in the whole parameter.
        const TensorBox box = info.boxes().front();
        const auto row = static_cast<std::size_t>(box.first[0]);
        const std::size_t in_arena = flat.layout.slice(flat.layout.place(i).owner).offset +
                                     row * (info.shape.size() > 1 ? order.channels * order.pixels : 1);
        const auto own = std::find_if(flat.owned.begin(), flat.owned.end(), [&](const DlrunCudaOwned& one) {
          return one.offset <= in_arena && in_arena < one.offset + one.length;
        });
        REQUIRE(own != flat.owned.end());
        CHECK(flat.layout.place(i).offset == own->state + (in_arena - own->offset));
      }
    }
    const std::size_t all = plan_of({}).layout.floats() - kSpareSlots;
    CHECK(sum == all);
    CHECK(largest < all / static_cast<std::size_t>(ranks) * 6 / 5 + 1);
  }
}

TEST_CASE("parts of the state of filters over volumes are whole filters") {
  const InputShape shape{.channels = 2, .height = 8, .width = 8, .depth = 8, .targets = 2};
  const Graph whole = cosmoflow(shape).value();
  std::map<std::string, std::size_t> elements, all;
  for (const int rank : {0, 1, 2}) {
    const CudaPlan flat = lower(fuse(whole), {.bucket_bytes = 8 << 10,
                                              .optimizer = default_optimizer("adamw"),
                                              .state_part = StatePart{rank, 3}})
                              .value();
    for (std::size_t i = 0; i < flat.layout.tensors().size(); ++i) {
      const TensorInfo& info = flat.layout.tensors()[i];
      if (info.role != TensorInfo::Role::momentum) continue;
      CAPTURE(info.name);
      CHECK((info.shape.size() == 1 ||
             info.elements() % flat.orders[flat.layout.place(i).owner].floats_of_filter() == 0));
      elements[info.name] += info.elements();
      all[info.name] = elements_of(info.shape);
    }
  }
  CHECK(elements == all);
}
