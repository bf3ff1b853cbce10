// test-products: every form of a product that the GPU's engine may choose, as each pass of a convolution of
// one pixel uses it, against sums on the host; and each gives the same bits twice. Needs a GPU.
#include <cstdio>
#include <cstring>

#include "runtime/cuda/plugin/product_choice.hpp"

namespace {

using namespace dlrun::cuda;
using Lies = Product::Lies;

int failures = 0;
void expect(bool right, const std::string& what) {
  if (right) return;
  ++failures;
  std::printf("  FAILED: %s\n", what.c_str());
}

// Small whole numbers, so that f32, TF32 and bf16 sum them without rounding.
float number_at(std::size_t i) {
  return static_cast<float>((i * 2654435761U >> 7) % 5) - 2;
}

template <class T>
struct Matrix {
  std::vector<T> host;
  T* device;
  Matrix(Memory& memory, std::int64_t count, float (*value)(std::size_t))
      : host(static_cast<std::size_t>(count)),
        device(static_cast<T*>(memory.device(host.size() * sizeof(T), "a matrix"))) {
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = T(value(i));
    send();
  }
  void send() { check(cudaMemcpy(device, host.data(), bytes(), cudaMemcpyHostToDevice), "a copy"); }
  std::vector<T> read() const {
    std::vector<T> out(host.size());
    check(cudaMemcpy(out.data(), device, bytes(), cudaMemcpyDeviceToHost), "a copy");
    return out;
  }
  std::size_t bytes() const { return host.size() * sizeof(T); }
};

std::size_t place(std::int64_t row, std::int64_t column, std::int64_t rows, std::int64_t columns, Lies lies) {
  return static_cast<std::size_t>(lies == Lies::plain ? column * rows + row : row * columns + column);
}

template <class T>
bool is_right(const Product::Size& s, const Matrix<T>& a, const Matrix<T>& b, const Matrix<T>& d,
              float prior) {
  const std::vector<T> there = d.read();
  for (std::int64_t m = 0; m < s.m; ++m)
    for (std::int64_t n = 0; n < s.n; ++n) {
      double sum = prior * static_cast<float>(d.host[place(m, n, s.m, s.n, Lies::plain)]);
      for (std::int64_t k = 0; k < s.k; ++k)
        sum += static_cast<float>(a.host[place(m, k, s.m, s.k, s.a)]) *
               static_cast<float>(b.host[place(k, n, s.k, s.n, s.b)]);
      const float wanted = static_cast<float>(T(static_cast<float>(sum)));
      if (static_cast<float>(there[place(m, n, s.m, s.n, Lies::plain)]) != wanted) return false;
    }
  return true;
}

template <class T>
std::size_t try_size(Device& device, const Product::Size& size, float prior, const std::string& name) {
  Memory memory;
  device.main.workspace = memory.device(Product::kWorkspace, "workspace");
  device.main.workspace_bytes = Product::kWorkspace;
  Matrix<T> a(memory, size.m * size.k, number_at), b(memory, size.k * size.n, number_at),
      d(memory, size.m * size.n, number_at);
  const Product product(device, size, name);
  const Product::Matrices matrices{a.device, b.device, d.device};
  const auto candidates = product.candidates(device.main);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::string which = name + ", form " + std::to_string(i);
    const auto once = [&] {
      d.send();
      check(product.run(device.main, candidates[i].algo, matrices, prior), which);
      check(cudaStreamSynchronize(device.main.stream), which.c_str());
      return d.read();
    };
    const std::vector<T> first = once();
    expect(is_right(size, a, b, d, prior), which + " is wrong");
    const std::vector<T> second = once();
    expect(std::memcmp(first.data(), second.data(), d.bytes()) == 0, which + " does not repeat its bits");
  }
  return candidates.size();
}

// Forward, the gradient of the weights and that of the data: of 64 to 256 channels, and of a few odd ones.
void try_passes(Device& device, std::int64_t in, std::int64_t out, std::int64_t pixels, const char* type) {
  const struct {
    const char* name;
    Product::Size size;
    float prior;
  } passes[] = {{"forward", {out, pixels, in, Lies::turned, Lies::plain}, 0},
                {"weights", {in, out, pixels, Lies::plain, Lies::turned}, 0},
                {"data", {in, pixels, out, Lies::plain, Lies::plain}, 0},
                {"data into a sum", {in, pixels, out, Lies::plain, Lies::plain}, 1}};
  for (const auto& pass : passes) {
    const std::string name = std::string(type) + " " + pass.name + " of " + std::to_string(in) + " to " +
                             std::to_string(out) + " at " + std::to_string(pixels);
    const std::size_t count = device.half() ? try_size<Bf16>(device, pass.size, pass.prior, name)
                                            : try_size<float>(device, pass.size, pass.prior, name);
    expect(count > 0 || in % 8 != 0 || out % 8 != 0, name + " has no form");
    std::printf("%s: %zu forms\n", name.c_str(), count);
  }
}

// What is chosen by time has the bits of what the library expects to be fastest, and steps of shards take
// that.
void try_choice(Device& device) {
  const Product::Size size{2304, 8192, 768, Lies::turned, Lies::plain};
  Memory memory;
  device.main.workspace = memory.device(Product::kWorkspace, "workspace");
  device.main.workspace_bytes = Product::kWorkspace;
  Matrix<Bf16> a(memory, size.m * size.k, number_at), b(memory, size.k * size.n, number_at),
      d(memory, size.m * size.n, number_at);
  for (Bf16& number : a.host) number = Bf16(static_cast<float>(number) * 0.37F);
  for (Bf16& number : b.host) number = Bf16(static_cast<float>(number) * 0.011F);
  a.send(), b.send();
  const Product product(device, size, "a choice");
  const auto bits_of = [&](const cublasLtMatmulAlgo_t& form) {
    check(product.run(device.main, form, {a.device, b.device, d.device}, 0), "a choice");
    check(cudaStreamSynchronize(device.main.stream), "a choice");
    return d.read();
  };
  const std::vector<Bf16> expected = bits_of(product.candidates(device.main)[0].algo);
  for (const bool by_shape : {false, true}) {
    device.by_shape = by_shape, device.products.clear();
    const auto chosen = choose_product(device, product, size, 0);
    expect(chosen.has_value(), "no form was chosen");
    if (!chosen) continue;
    const std::vector<Bf16> bits = bits_of(*chosen);
    expect(std::memcmp(bits.data(), expected.data(), d.bytes()) == 0, "the chosen form has other bits");
  }
}

}  // namespace

int main() {
  try {
    Device device;
    check(cudaStreamCreate(&device.stream), "a stream");
    check(cublasLtCreate(&device.main.products), "starting cuBLASLt");
    device.main.stream = device.stream;
    for (const DlrunCudaPrecision precision : {DLRUN_CUDA_F32, DLRUN_CUDA_TF32, DLRUN_CUDA_BF16}) {
      device.precision = precision;
      const char* const names[] = {"f32", "tf32", "bf16"};
      try_passes(device, 64, 256, 3136, names[precision]);
      try_passes(device, 256, 64, 1568, names[precision]);
      try_passes(device, 48, 10, 200, names[precision]);
      try_passes(device, 36, 7, 77, names[precision]);
    }
    try_choice(device);
  } catch (const std::exception& failure) {
    expect(false, failure.what());
  }
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
