// A graph as the list that goes to a GPU: that everything has a form, that the state is the CPU's, and who
// shares what.
#include <algorithm>

#include <doctest/doctest.h>

#include "fixture.hpp"
#include "runtime/cuda/lowering.hpp"
#include "runtime/graph/fuse.hpp"
#include "runtime/models/models.hpp"
#include "runtime/train/make_cpu_engine.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

CudaPlan flat_of(const char* model, const InputShape& shape, const EngineOptions& options = {}) {
  return lower(fuse(build_model(model, shape).value()), options).value();
}

std::vector<const DlrunCudaNode*> nodes_of(const CudaPlan& flat, std::string_view kind) {
  std::vector<const DlrunCudaNode*> found;
  for (const DlrunCudaNode& node : flat.nodes)
    if (is(node, kind)) found.push_back(&node);
  return found;
}

// The state of the same model on the CPU: the same names, shapes and first values.
void check_against_cpu(const char* model, const InputShape& shape) {
  CAPTURE(model);
  const EngineOptions options{.batch = 1, .seed = 3, .optimizer = default_optimizer("adam")};
  const auto cpu = make_cpu_engine(model, shape, options).value();
  const CudaPlan flat = flat_of(model, shape, options);
  const StateLayout& layout = flat.layout;
  REQUIRE(layout.tensors().size() == cpu->tensors().size());
  for (std::size_t i = 0; i < layout.tensors().size(); ++i) {
    const TensorInfo& info = layout.tensors()[i];
    CAPTURE(info.name);
    CHECK(info.name == cpu->tensors()[i].name);
    CHECK(info.shape == cpu->tensors()[i].shape);
    CHECK(info.role == cpu->tensors()[i].role);
    if (info.role == TensorInfo::Role::parameter) {
      const DeviceOrder& order = flat.orders[layout.place(i).owner];
      REQUIRE(order.filters * order.channels * order.planes * order.pixels == info.elements());
    }
    if (info.role == TensorInfo::Role::momentum) continue;
    std::vector<float> ours(info.elements()), theirs(ours.size());
    layout.first_values(i, options.seed, ours);
    REQUIRE(cpu->read_tensor(i, theirs));
    CHECK(ours == theirs);
  }
}

}  // namespace

TEST_CASE("a GPU knows which parameters have no weight decay, and that each fills whole slices") {
  const CudaPlan all = flat_of("mnist-cnn", {1, 28, 28, 10});
  EngineOptions options;
  options.no_decay = {.vectors = NoDecay::Vectors::exempt, .names = {"conv1.weight"}};
  const CudaPlan some = flat_of("mnist-cnn", {1, 28, 28, 10}, options);
  REQUIRE(some.tensors.size() == some.layout.parameters().size());
  for (std::size_t i = 0; i < some.tensors.size(); ++i) {
    const ParameterSpec& of = some.layout.parameters()[i];
    CAPTURE(of.name);
    CHECK(all.tensors[i].decays == 1);
    CHECK(some.tensors[i].decays == (of.shape.size() == 1 || of.name == "conv1.weight" ? 0 : 1));
    CHECK(some.tensors[i].offset % DLRUN_CUDA_SLICE_ALIGNMENT == 0);
    CHECK(some.tensors[i].length % DLRUN_CUDA_SLICE_ALIGNMENT == 0);
  }
}

TEST_CASE("every model of images and texts has a form on a GPU") {
  for (const Model& model : models()) {
    const std::string name(model.name);
    CAPTURE(name);
    InputShape shape{3, 299, 299, 10};
    if (name == "cosmoflow") shape = {.channels = 4, .height = 32, .width = 32, .depth = 32, .targets = 4};
    if (name == "mnist-cnn") shape = {};
    if (model.purpose == Purpose::generate) shape = {3, 64, 64, 10};
    if (model.purpose == Purpose::continue_text) shape = token_sequences(16, 50257);
    CHECK(lower(fuse(model.build(shape).value()), {}));
  }
}

TEST_CASE("what a GPU has no form of is refused by name, before a device is asked for anything") {
  GraphBuilder g("mine", {3, 8, 8, 2});
  const std::vector<Value> many(DLRUN_CUDA_MAX_INPUTS + 1, g.input());
  g.softmax_cross_entropy(g.fully_connected("last", g.concat(many), 2));
  const auto flat = lower(fuse(std::move(g).finish().value()), {});
  REQUIRE_FALSE(flat);
  CHECK(flat.error().text() ==
        "model 'mine': a concat of so many values is not supported on GPUs\n  hint: write device: cpu");
  CHECK(flat.error().kind == dlrun::ErrorKind::unavailable);
}

TEST_CASE("a volume's height counts all of its planes, and windows are told how many there are") {
  const InputShape shape{.channels = 2, .height = 8, .width = 9, .depth = 12, .targets = 2};
  const CudaPlan flat = flat_of("cosmoflow", shape);
  CHECK(flat.nodes[0].height == 12 * 8);
  const DlrunCudaNode &convolution = *nodes_of(flat, "convolution")[0],
                      &pool = *nodes_of(flat, "max_pool")[0];
  CHECK(convolution.in_depth == 12);
  CHECK(convolution.depth == 12);
  CHECK(convolution.height == 12 * 8);
  CHECK(pool.in_depth == 12);
  CHECK(pool.depth == 6);
  CHECK(pool.height == 6 * 4);
  CHECK(pool.width == 4);
  const DlrunCudaNode& first_vector = *nodes_of(flat, "fully_connected")[0];
  CHECK(first_vector.in_depth == 0);
  CHECK(first_vector.in_channels == 32 * 6 * 4 * 4);
}

TEST_CASE("a convolution's bias and activation wait for the pooling behind it") {
  const InputShape shape{.channels = 2, .height = 16, .width = 16, .depth = 16, .targets = 2};
  const CudaPlan flat = flat_of("cosmoflow", shape);
  const auto convolutions = nodes_of(flat, "convolution"), pools = nodes_of(flat, "max_pool");
  REQUIRE(convolutions.size() == pools.size());
  for (std::size_t i = 0; i < pools.size(); ++i) {
    CHECK(convolutions[i]->activation == DLRUN_CUDA_NO_ACTIVATION);
    CHECK(convolutions[i]->bias == DLRUN_CUDA_NOWHERE);
    CHECK((convolutions[i]->facts & DLRUN_CUDA_BACKWARD_READS_OUTPUT) == 0);
    CHECK(pools[i]->activation == DLRUN_CUDA_LEAKY_RELU);
    CHECK(pools[i]->slope == convolutions[i]->slope);
    CHECK(pools[i]->bias != DLRUN_CUDA_NOWHERE);
    CHECK((pools[i]->facts & DLRUN_CUDA_BACKWARD_READS_OUTPUT) != 0);
  }
}

TEST_CASE("a convolution that others read, too, keeps its bias and activation") {
  GraphBuilder g("mine", {3, 8, 8, 2});
  const Value x = g.relu(g.convolution("c", g.input(), {.filters = 8, .kernel = 1}));
  const Value both = g.concat(std::vector<Value>{g.flatten(g.max_pool(x, {})), g.flatten(x)});
  g.softmax_cross_entropy(g.fully_connected("last", both, 2));
  const CudaPlan flat = lower(fuse(std::move(g).finish().value()), {}).value();
  CHECK(nodes_of(flat, "convolution")[0]->activation == DLRUN_CUDA_RELU);
  CHECK(nodes_of(flat, "convolution")[0]->bias != DLRUN_CUDA_NOWHERE);
  CHECK(nodes_of(flat, "max_pool")[0]->bias == DLRUN_CUDA_NOWHERE);
}

TEST_CASE("a batch norm does not join the pooling of a volume behind it") {
  GraphBuilder g("mine", {.channels = 2, .height = 8, .width = 8, .classes = 2, .depth = 8});
  const Value x = g.batch_norm("norm", g.convolution("c", g.input(), {.filters = 8, .kernel = 1}));
  g.softmax_cross_entropy(g.fully_connected("last", g.max_pool(x, {}), 2));
  const CudaPlan flat = lower(fuse(std::move(g).finish().value()), {}).value();
  CHECK(nodes_of(flat, DLRUN_CUDA_NORM_POOL).empty());
}

TEST_CASE("a model's state on a GPU is the CPU's: names, shapes, first values, Adam's means") {
  check_against_cpu("dcgan", {3, 32, 32, 10});
  check_against_cpu("cosmogan", {1, 32, 32, 10});
  check_against_cpu("mnist-cnn", {});
  check_against_cpu("cosmoflow", {.channels = 2, .height = 8, .width = 8, .depth = 8, .targets = 2});
}

TEST_CASE("weights go into the device's order and back") {
  const DeviceOrder order{.filters = 2, .channels = 3, .pixels = 2};
  const std::vector<float> plain{0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121};
  std::vector<float> device(12), back(12);
  to_device(order, plain, device);
  CHECK(device == std::vector<float>{0, 10, 20, 1, 11, 21, 100, 110, 120, 101, 111, 121});
  to_plain(order, device, back);
  CHECK(back == plain);
}

TEST_CASE("filters over volumes have the channels of all planes of a pixel side by side") {
  // Numbers tell filter, channel, plane and pixel.
  const DeviceOrder order{.filters = 2, .channels = 2, .pixels = 2, .planes = 3};
  std::vector<float> plain, wanted;
  for (const int filter : {0, 1000})
    for (const int channel : {0, 100})
      for (const int plane : {0, 10, 20})
        for (const int pixel : {0, 1}) plain.push_back(static_cast<float>(filter + channel + plane + pixel));
  for (const int filter : {0, 1000})
    for (const int pixel : {0, 1})
      for (const int plane : {0, 10, 20})
        for (const int channel : {0, 100})
          wanted.push_back(static_cast<float>(filter + channel + plane + pixel));
  std::vector<float> device(plain.size()), back(plain.size());
  to_device(order, plain, device);
  CHECK(device == wanted);
  to_plain(order, device, back);
  CHECK(back == plain);
}

TEST_CASE("a GAN's discriminator learns from two passes, is held in the third, and is one set of weights") {
  const CudaPlan flat = flat_of("dcgan", {3, 32, 32, 10});
  const auto convolutions = nodes_of(flat, "convolution");
  REQUIRE(convolutions.size() == 3 * 4);
  for (std::size_t layer = 0; layer < 4; ++layer) {
    const DlrunCudaNode &real = *convolutions[layer], &made = *convolutions[4 + layer],
                        &judged = *convolutions[8 + layer];
    CHECK(real.weight == made.weight);
    CHECK(real.weight == judged.weight);
    // Backward comes to the made images before the real ones.
    CHECK(made.learning == DLRUN_CUDA_GRAD_WRITE);
    CHECK(real.learning == DLRUN_CUDA_GRAD_ACCUMULATE);
    CHECK(judged.learning == DLRUN_CUDA_FROZEN);
  }
  const auto norms = nodes_of(flat, "batch_norm");
  REQUIRE(norms.size() == 2 + 3 + 2 + 2);  // real, generator, made, judged
  CHECK(norms[0]->running_mean == norms[5]->running_mean);
  CHECK(norms[0]->running_mean == norms[7]->running_mean);
  CHECK(norms[0]->learning == DLRUN_CUDA_GRAD_ACCUMULATE);
  CHECK(norms[2]->learning == DLRUN_CUDA_GRAD_WRITE);
  CHECK(norms[7]->learning == DLRUN_CUDA_FROZEN);
  for (const DlrunCudaNode* node : nodes_of(flat, "transposed_convolution")) {
    CHECK(node->learning == DLRUN_CUDA_GRAD_WRITE);
    CHECK(node->needs_gradient == 1);
  }
}

TEST_CASE("a GAN's gradients end at the images that are detached, and both its losses are told") {
  const CudaPlan flat = flat_of("dcgan", {3, 32, 32, 10}, {.batch = 8, .rank = 3});
  CHECK(flat.nodes[0].needs_gradient == 0);
  CHECK(nodes_of(flat, "detach")[0]->needs_gradient == 0);
  const DlrunCudaNode& noise = *nodes_of(flat, "noise")[0];
  CHECK(noise.needs_gradient == 0);
  CHECK(noise.first_row == 24);
  CHECK(flat.random_uses[noise.rng_key].of == Randomness::samples);
  const auto losses = nodes_of(flat, "sigmoid_cross_entropy");
  REQUIRE(losses.size() == 3);
  CHECK(losses[0]->report == DLRUN_CUDA_REPORTED);
  CHECK(losses[1]->report == DLRUN_CUDA_REPORTED);
  CHECK(losses[2]->report == DLRUN_CUDA_OF_GENERATOR);
}

TEST_CASE("of several softmax losses the last is told") {
  const CudaPlan flat = flat_of("googlenet", {3, 224, 224, 10});
  const auto losses = nodes_of(flat, "softmax_cross_entropy");
  REQUIRE(losses.size() == 3);
  CHECK(losses[0]->report == DLRUN_CUDA_UNREPORTED);
  CHECK(losses[2]->report == DLRUN_CUDA_REPORTED);
}

TEST_CASE("buckets cover the gradients in the order in which backward completes them") {
  for (const char* model : {"resnet50", "googlenet", "cosmogan"}) {
    const CudaPlan flat = flat_of(model, {3, 224, 224, 1000});
    std::size_t end = 0, node = flat.nodes.size();
    for (const DlrunCudaBucket& bucket : flat.buckets) {
      CHECK(bucket.offset == end);
      CHECK(bucket.node <= node);
      end += bucket.length, node = bucket.node;
    }
    CHECK(end == flat.layout.floats());
    CHECK(flat.buckets.size() == flat.layout.buckets().size());
    // No gradient is written after its bucket has left.
    for (std::size_t index = 0; index < flat.nodes.size(); ++index)
      for (const DlrunCudaBucket& bucket : flat.buckets)
        if (is(flat.nodes[index], "convolution") && flat.nodes[index].weight >= bucket.offset &&
            flat.nodes[index].weight < bucket.offset + bucket.length)
          CHECK(index >= bucket.node);
  }
}

TEST_CASE("a batch norm right before a sum joins it, and its tensors keep their names and order") {
  const CudaPlan flat = flat_of("resnet50", {3, 224, 224, 1000});
  std::size_t joined = 0, nothing = 0, sums = 0;
  for (const DlrunCudaNode& node : flat.nodes) {
    joined += is(node, "batch_norm") && node.input_count == 2 ? 1 : 0;
    nothing += is(node, DLRUN_CUDA_ELIDED) ? 1 : 0;
    sums += is(node, "add") ? 1 : 0;
  }
  CHECK(joined == 12);   // the first block of a stage ends in a sum of two
  CHECK(nothing == 21);  // of those both, and the one before the first pooling
  CHECK(sums == 0);
  CHECK(std::count_if(flat.nodes.begin(), flat.nodes.end(),
                      [](const DlrunCudaNode& node) { return is(node, DLRUN_CUDA_NORM_POOL); }) == 1);
  CHECK(flat.layout.tensors()[0].name == "conv1.weight");
  CHECK(flat.layout.tensors()[1].name == "bn1.weight");
}
