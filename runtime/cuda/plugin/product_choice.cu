// See product_choice.hpp. The trial's arrays are freed behind it; where they have no room, the expected form
// is taken.
#include <algorithm>

#include "runtime/cuda/plugin/product_choice.hpp"

namespace dlrun::cuda {
namespace {

constexpr int kCandidates = 16;
constexpr double kLeastOperations = 1e10;  // of a product that is timed
constexpr float kLeastGain = 0.98F;        // of the time, or the expected one stays

// Numbers in [-1, 1): products of zeros are faster than others.
template <class T>
void fill(Device& device, T* to, std::int64_t count) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    std::uint32_t bits = static_cast<std::uint32_t>(i) * 2654435761U;
    bits = (bits ^ (bits >> 16)) * 0x7feb352dU;
    put(to[i], static_cast<float>((bits ^ (bits >> 15)) >> 8) * 0x1p-23F - 1);
  });
}

void compare(Device& device, int* differ, const std::uint32_t* left, const std::uint32_t* right,
             std::int64_t count) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    if (left[i] != right[i]) *differ = 1;
  });
}

class Trial {
 public:
  Trial(Device& device, const Product& product, const Product::Size& size, float prior)
      : device_(device), product_(product), prior_(prior), stream_(device.main) {
    const std::int64_t row_b = size.step_b != 0                  ? size.step_b
                               : size.b == Product::Lies::turned ? size.n
                                                                 : size.k;
    const std::int64_t columns_b = size.b == Product::Lies::turned ? size.k : size.n;
    const std::int64_t result = size.n * (size.step_d != 0 ? size.step_d : size.m);
    bytes_ = static_cast<std::size_t>(result) *
             (size.result == Product::Result::f32 ? sizeof(float) : device.size());
    matrices_.a = filled(size.m * size.k), matrices_.b = filled(row_b * columns_b);
    if (prior != 0) matrices_.c = zeros(bytes_);
    if (size.also == Product::Also::row_bias || size.also == Product::Also::gelu)
      matrices_.numbers = filled(size.m);
    if (size.also == Product::Also::gelu || size.also == Product::Also::gelu_back)
      matrices_.inner = filled(result);
    expected_ = zeros(bytes_), other_ = zeros(bytes_);
    differ_ = static_cast<int*>(zeros(sizeof(int)));
    stream_.workspace = zeros(Product::kWorkspace), stream_.workspace_bytes = Product::kWorkspace;
  }

  // Milliseconds of the form that others are compared with.
  float time_expected(const cublasLtMatmulAlgo_t& form) {
    matrices_.d = expected_;
    check(run(form), "a product");
    return time(form);
  }
  // None where it does not run, or gives other bits.
  std::optional<float> time_alike(const cublasLtMatmulAlgo_t& form) {
    matrices_.d = other_;
    if (run(form) != CUBLAS_STATUS_SUCCESS || !is_alike()) return std::nullopt;
    return time(form);
  }

 private:
  cublasStatus_t run(const cublasLtMatmulAlgo_t& form) const {
    return product_.run(stream_, form, matrices_, prior_);
  }
  float time(const cublasLtMatmulAlgo_t& form) const {
    return milliseconds_of(device_.stream, [&] { check(run(form), "a product"); });
  }
  // Memory is cleared on a stream for which device.stream does not wait.
  void* zeros(std::size_t bytes) {
    void* const made = memory_.device(bytes, "a trial of a product");
    check(cudaStreamSynchronize(nullptr), "clearing memory");
    return made;
  }
  void* filled(std::int64_t count) {
    void* const made = zeros(static_cast<std::size_t>(count) * device_.size());
    by_type(device_, [&](auto zero) { fill(device_, static_cast<decltype(zero)*>(made), count); });
    return made;
  }
  bool is_alike() {
    check(cudaMemsetAsync(differ_, 0, sizeof(int), device_.stream), "comparing products");
    compare(device_, differ_, static_cast<const std::uint32_t*>(expected_),
            static_cast<const std::uint32_t*>(other_),
            static_cast<std::int64_t>(bytes_ / sizeof(std::uint32_t)));
    int seen = 0;
    check(cudaMemcpyAsync(&seen, differ_, sizeof seen, cudaMemcpyDeviceToHost, device_.stream),
          "comparing products");
    check(cudaStreamSynchronize(device_.stream), "comparing products");
    return seen == 0;
  }

  Device& device_;
  const Product& product_;
  float prior_;
  Stream stream_;
  Memory memory_;
  std::size_t bytes_ = 0;
  Product::Matrices matrices_{};
  void *expected_ = nullptr, *other_ = nullptr;
  int* differ_ = nullptr;
};

std::string key_of(const Product::Size& size, float prior) {
  std::string out;
  for (const std::int64_t part :
       {size.m, size.n, size.k, size.step_b, size.step_d, static_cast<std::int64_t>(size.a),
        static_cast<std::int64_t>(size.b), static_cast<std::int64_t>(size.result),
        static_cast<std::int64_t>(size.also), std::int64_t{prior != 0}})
    out += std::to_string(part) + " ";
  return out;
}

// The number of the one to be taken.
std::size_t fastest_alike(Device& device, const Product& product, const Product::Size& size, float prior,
                          const std::vector<cublasLtMatmulHeuristicResult_t>& found) {
  Trial trial(device, product, size, prior);
  std::size_t best = 0;
  float least = trial.time_expected(found[0].algo) * kLeastGain;
  for (std::size_t i = 1; i < found.size(); ++i) {
    const std::optional<float> time = trial.time_alike(found[i].algo);
    if (time && *time < least) least = *time, best = i;
  }
  return best;
}

// A trial that has no room leaves the expected one.
std::size_t number_of_choice(Device& device, const Product& product, const Product::Size& size, float prior,
                             const std::vector<cublasLtMatmulHeuristicResult_t>& found) {
  const double operations =
      2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
  if (device.by_shape || operations < kLeastOperations) return 0;
  try {
    return fastest_alike(device, product, size, prior, found);
  } catch (const Failure&) {
    cudaGetLastError();
    return 0;
  }
}

}  // namespace

std::optional<cublasLtMatmulAlgo_t> choose_product(Device& device, const Product& product,
                                                   const Product::Size& size, float prior) {
  const std::string key = key_of(size, prior);
  if (const auto known = device.products.find(key); known != device.products.end()) return known->second;
  const std::vector<cublasLtMatmulHeuristicResult_t> found = product.candidates(device.main, kCandidates);
  if (found.empty()) return std::nullopt;
  const cublasLtMatmulHeuristicResult_t& chosen =
      found[number_of_choice(device, product, size, prior, found)];
  device.main.workspace_bytes = std::max(device.main.workspace_bytes, chosen.workspaceSize);
  device.products.emplace(key, chosen.algo);
  return chosen.algo;
}

}  // namespace dlrun::cuda
