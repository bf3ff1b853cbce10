// The GPU's engine against the CPU's: both start from the same values and see the same batch. One update with
// rate 1 and no momentum shows the gradient as what a parameter lost. What is wrong is counted and told.
#pragma once

#include <string>
#include <vector>

#include "runtime/cuda/cuda_engine.hpp"

namespace dlrun::runtime::gpu {

struct Case {
  std::string name;
  InputShape input;
  Result<Graph> (*build)(const InputShape&);
  double deep = 1;  // factor on the loss in evaluation, after an update by raw gradients
  // A deep net has millions of ReLUs, and one whose input is 0 but for rounding may fall to the other side:
  // the CPU's own noise shows that only where it is disturbed by more. Its update is small, else nothing sane
  // is left to evaluate.
  double disturbance = 1e-6;
  float rate = 1;
  std::int64_t batch = 16;
  // Another graph that comes to the same, where the CPU has no form of what is to be seen.
  Result<Graph> (*on_gpu)(const InputShape&) = nullptr;
};

// A convolution, what `body` makes of it, and a classifier.
template <class Body>
Result<Graph> graph_of(const InputShape& input, const Body& body) {
  GraphBuilder g("case", input);
  Value x = body(g, g.convolution("first", g.input(), {.filters = 16, .kernel = 3, .padding = 1}));
  g.use_weights(Weights::own);
  x = g.fully_connected("last", x, input.classes);
  g.softmax_cross_entropy(x);
  return std::move(g).finish();
}

const std::vector<Case>& operator_cases();  // and models that classify
const std::vector<Case>& norm_sum_cases();  // of batch norms that are done with the sum behind them
const std::vector<Case>& science_cases();   // of volumes, and of targets in place of labels
const std::vector<Case>& sequence_cases();  // of tokens
const std::vector<Case>& gan_cases();       // what GANs are made of, and GANs

// Counts, and prints where it is wrong.
void expect(bool right, const std::string& what);
int failures();

std::string name_of(Precision precision);
void fill(Engine& engine, std::uint64_t batch_number, std::int64_t classes, double disturbance = 0);
double distance(std::span<const float> left, std::span<const float> right, double floor);

Result<void> compare(const CudaLibrary& library, const Case& of, Precision precision);
// Several updates by each optimizer.
Result<void> compare_optimizers(const CudaLibrary& library, Precision precision);
// Stages of pipelines against whole models.
Result<void> compare_stages(const CudaLibrary& library, Precision precision);
// What sums over ranks need of a GPU.
Result<void> compare_dtypes(const CudaLibrary& library);
// JPEGs decoded on the GPU.
Result<void> compare_jpegs(const CudaLibrary& library);

}  // namespace dlrun::runtime::gpu
