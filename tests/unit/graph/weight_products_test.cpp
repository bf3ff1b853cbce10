// The gradient of weights by matrix products against its definition, in windows and maps of every kind.
#include "runtime/cpu/kernels/weight_products.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "fixture.hpp"

using namespace dlrun::runtime;
using namespace dlrun::runtime::kernels;
using namespace dlrun::runtime::test;

namespace {

WeightShape shape_of(Extents source, std::int64_t filters, std::int64_t kernel, std::int64_t kernel_width,
                     std::int64_t stride, std::int64_t padding, std::int64_t padding_width) {
  const Extents grad{source.batch, filters / source.inner,
                     (source.height + 2 * padding - kernel) / stride + 1,
                     (source.width + 2 * padding_width - kernel_width) / stride + 1, source.inner};
  return {source, grad, kernel, kernel_width, stride, padding, padding_width};
}

float at(const std::vector<float>& values, const Extents& e, std::int64_t image, std::int64_t channel,
         std::int64_t row, std::int64_t column) {
  const std::int64_t block = image * e.outer + channel / e.inner;
  return values[static_cast<std::size_t>(((block * e.height + row) * e.width + column) * e.inner +
                                         channel % e.inner)];
}

struct Weight {
  std::int64_t out, in, row, column;
};

// By its definition: the sum over images and outputs of grad times the pixel that the weight saw.
double expected(const WeightShape& s, const std::vector<float>& source, const std::vector<float>& grad,
                const Weight& w) {
  double sum = 0;
  for (std::int64_t image = 0; image < s.source.batch; ++image)
    for (std::int64_t row = 0; row < s.grad.height; ++row)
      for (std::int64_t column = 0; column < s.grad.width; ++column) {
        const std::int64_t y = row * s.stride + w.row - s.padding;
        const std::int64_t x = column * s.stride + w.column - s.padding_width;
        if (y < 0 || y >= s.source.height || x < 0 || x >= s.source.width) continue;
        sum += double{at(source, s.source, image, w.in, y, x)} * at(grad, s.grad, image, w.out, row, column);
      }
  return sum;
}

std::size_t place_of(const WeightShape& s, const Weight& w) {
  const std::int64_t in = s.source.inner, out = s.grad.inner;
  const std::int64_t blocks = w.out / out * s.source.outer + w.in / in;
  return static_cast<std::size_t>(
      (((blocks * s.kernel + w.row) * s.kernel_width + w.column) * in + w.in % in) * out + w.out % out);
}

void check(const WeightShape& s) {
  CAPTURE(s.kernel);
  CAPTURE(s.kernel_width);
  CAPTURE(s.stride);
  CAPTURE(s.source.height);
  const auto source = random_numbers(static_cast<std::size_t>(s.source.elements()), 1);
  const auto grad = random_numbers(static_cast<std::size_t>(s.grad.elements()), 2);
  const float unset = 1e9F;
  std::vector<float> gradient(static_cast<std::size_t>(s.gradient_elements()), unset);
  std::vector<float> scratch(weight_products_scratch(s), unset);
  weight_products(s, source.data(), grad.data(), gradient.data(), scratch.data());
  Weight w{};
  for (w.out = 0; w.out < s.grad.outer * s.grad.inner; ++w.out)
    for (w.in = 0; w.in < s.source.outer * s.source.inner; ++w.in)
      for (w.row = 0; w.row < s.kernel; ++w.row)
        for (w.column = 0; w.column < s.kernel_width; ++w.column)
          REQUIRE(gradient[place_of(s, w)] == doctest::Approx(expected(s, source, grad, w)).epsilon(1e-4));
}

}  // namespace

TEST_CASE("products give the gradient of the weights, whatever the window, its steps and its padding") {
  check(shape_of({2, 2, 4, 4, 16}, 48, 3, 3, 1, 1, 1));
  check(shape_of({3, 1, 8, 8, 16}, 16, 3, 3, 2, 1, 1));
  check(shape_of({2, 1, 7, 5, 16}, 32, 3, 3, 2, 1, 1));
  check(shape_of({1, 1, 9, 6, 16}, 16, 5, 2, 3, 2, 1));
  check(shape_of({2, 1, 6, 3, 8}, 16, 1, 7, 1, 0, 3));
  check(shape_of({2, 1, 3, 6, 8}, 16, 7, 1, 1, 3, 0));
  check(shape_of({2, 2, 5, 5, 16}, 16, 3, 3, 1, 0, 0));
}

TEST_CASE("a place of the window that never lies on the map has a gradient of zero") {
  check(shape_of({2, 1, 1, 1, 16}, 16, 5, 5, 1, 2, 2));
  check(shape_of({2, 1, 2, 2, 16}, 16, 7, 7, 2, 3, 3));
}

TEST_CASE("they are for many weights over few pixels of many images") {
  CHECK(prefers_weight_products(shape_of({32, 32, 4, 4, 16}, 512, 3, 3, 1, 1, 1)));
  CHECK(prefers_weight_products(shape_of({32, 16, 8, 8, 16}, 512, 3, 3, 2, 1, 1)));
  CHECK_FALSE(prefers_weight_products(shape_of({32, 4, 32, 32, 16}, 64, 3, 3, 1, 1, 1)));
  CHECK_FALSE(prefers_weight_products(shape_of({32, 32, 14, 14, 16}, 512, 3, 3, 1, 1, 1)));
  CHECK_FALSE(prefers_weight_products(shape_of({32, 32, 4, 4, 16}, 2048, 1, 1, 1, 0, 0)));
  CHECK_FALSE(prefers_weight_products(shape_of({4, 32, 4, 4, 16}, 512, 3, 3, 1, 1, 1)));
}

namespace {

Graph deep(std::int64_t stride) {
  const std::int64_t side = 4 * stride;
  GraphBuilder g("deep", {3, side, side, 5});
  Value x = g.relu(g.convolution("first", g.input(), {.filters = 256, .kernel = 3, .padding = 1}));
  x = g.relu(g.convolution(
      "many", x, {.filters = 256, .kernel = 3, .stride = stride, .padding = 1, .bias = Bias::none}));
  g.softmax_cross_entropy(g.fully_connected("scores", g.global_average_pool(x), 5));
  return finished(std::move(g));
}

bool takes_products(CpuEngine& engine) {
  for (const OperatorTime& line : engine.profile_step(0))
    if (line.name == "many" && line.description.find("products") != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("a step over 8 images, by products, has the mean gradient of four over 2, which are not") {
  for (const std::int64_t stride : {1, 2}) {
    CAPTURE(stride);
    const Graph graph = deep(stride);
    const InputShape input{3, 4 * stride, 4 * stride, 5};
    const Batch batch = random_batch(input, 8);
    const auto whole = engine_for(graph, 8);
    put(*whole, batch);
    whole->train_batch(0, nullptr);
    const State ours = gradients_of(*whole);
    CHECK(takes_products(*whole));
    State theirs;
    for (std::size_t part = 0; part < 4; ++part) {
      const auto few = engine_for(graph, 2);
      const std::size_t images = batch.images.size() / 4;
      const auto image = batch.images.begin() + static_cast<std::ptrdiff_t>(part * images);
      const auto label = batch.labels.begin() + static_cast<std::ptrdiff_t>(part * 2);
      put(*few, {{image, image + static_cast<std::ptrdiff_t>(images)}, {label, label + 2}});
      few->train_batch(0, nullptr);
      for (const auto& [name, gradient] : gradients_of(*few)) {
        Numbers& sum = theirs[name];
        sum.resize(gradient.size());
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i] / 4;
      }
      CHECK_FALSE(takes_products(*few));
    }
    for (const auto& gradient : ours) {
      const std::string& name = gradient.first;
      CAPTURE(name);
      CHECK(distance(gradient.second, theirs.at(name)) < 1e-4);
    }
  }
}
