// See product.hpp. Products of f32 stay in f32: TF32 only where it is asked for.
#include <algorithm>

#include "runtime/cuda/plugin/product.hpp"

namespace dlrun::cuda {
namespace {

cublasLtMatrixLayout_t layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns,
                              Product::Lies lies, const std::string& name, std::int64_t step = 0) {
  if (lies == Product::Lies::turned) std::swap(rows, columns);
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), step == 0 ? rows : step),
        name);
  return made;
}

// Of all columns, in bytes, at most kAlignment.
std::uint32_t alignment_of(const Product::Size& size, std::size_t number_size) {
  const std::int64_t row_a = size.a == Product::Lies::turned ? size.k : size.m;
  const std::int64_t row_b = size.step_b != 0                  ? size.step_b
                             : size.b == Product::Lies::turned ? size.n
                                                               : size.k;
  const std::int64_t row_d = size.step_d != 0 ? size.step_d : size.m;
  std::size_t out = Product::kAlignment;
  for (const std::int64_t row : {row_a, row_b, row_d})
    while (static_cast<std::size_t>(row) * number_size % out != 0) out /= 2;
  return static_cast<std::uint32_t>(out);
}

// Whether the sum over k is one thread's, or is split and put together by a step behind it.
bool repeats_its_bits(const cublasLtMatmulAlgo_t& algorithm) {
  std::int32_t splits = 1;
  std::uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_NONE;
  std::size_t written = 0;
  check(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits,
                                             sizeof splits, &written),
        "asking how a product is split");
  check(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
                                             sizeof scheme, &written),
        "asking how a product is put together");
  return scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE ||
         (scheme == CUBLASLT_REDUCTION_SCHEME_NONE && splits <= 1);
}

struct Preference {
  cublasLtMatmulPreference_t of = nullptr;
  Preference() { check(cublasLtMatmulPreferenceCreate(&of), "a preference"); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  ~Preference() { cublasLtMatmulPreferenceDestroy(of); }
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t what, const T& value) {
    check(cublasLtMatmulPreferenceSetAttribute(of, what, &value, sizeof value), "a preference");
  }
};

}  // namespace

template <class T>
void Product::set(cublasLtMatmulDescAttributes_t what, const T& value) const {
  check(cublasLtMatmulDescSetAttribute(operation_, what, &value, sizeof value), name_);
}

Product::Product(const Device& device, const Size& size, const std::string& name)
    : name_(name), also_(size.also) {
  const cudaDataType_t type = device.half() ? CUDA_R_16BF : CUDA_R_32F;
  alignment_ = alignment_of(size, device.size());
  const cublasComputeType_t by =
      device.precision == DLRUN_CUDA_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check(cublasLtMatmulDescCreate(&operation_, by, CUDA_R_32F), name_);
  const auto turn = [](Lies lies) { return lies == Lies::turned ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(CUBLASLT_MATMUL_DESC_TRANSA, turn(size.a)), set(CUBLASLT_MATMUL_DESC_TRANSB, turn(size.b));
  describe_also(size);
  a_ = layout(type, size.m, size.k, size.a, name_);
  b_ = layout(type, size.k, size.n, size.b, name_, size.step_b);
  d_ =
      layout(size.result == Result::f32 ? CUDA_R_32F : type, size.m, size.n, Lies::plain, name_, size.step_d);
}

void Product::describe_also(const Size& size) const {
  if (also_ == Also::nothing) return;
  const cublasLtEpilogue_t epilogue = also_ == Also::row_bias ? CUBLASLT_EPILOGUE_BIAS
                                      : also_ == Also::gelu   ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS
                                                              : CUBLASLT_EPILOGUE_DGELU;
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (also_ == Also::gelu || also_ == Also::gelu_back)
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, size.step_d != 0 ? size.step_d : size.m);
}

Product::~Product() {
  for (const cublasLtMatrixLayout_t layout : {a_, b_, d_})
    if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
  if (operation_ != nullptr) cublasLtMatmulDescDestroy(operation_);
}

std::vector<cublasLtMatmulHeuristicResult_t> Product::candidates(const Stream& stream, int most) const {
  Preference wanted;
  wanted.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  wanted.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
             std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  for (const auto matrix :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    wanted.set(matrix, alignment_);
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(most)), out;
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(stream.products, operation_, a_, b_, d_, d_,
                                                               wanted.of, most, found.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status != CUBLAS_STATUS_SUCCESS && also_ != Also::nothing))
    return out;
  check(status, name_);
  found.resize(static_cast<std::size_t>(count));
  for (const cublasLtMatmulHeuristicResult_t& one : found)
    if (one.state == CUBLAS_STATUS_SUCCESS && one.workspaceSize <= kWorkspace && repeats_its_bits(one.algo))
      out.push_back(one);
  return out;
}

cublasStatus_t Product::run(const Stream& stream, const cublasLtMatmulAlgo_t& algorithm,
                            const Matrices& matrices, const float& prior) const {
  const float one = 1;
  if (matrices.numbers != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, matrices.numbers);
  if (matrices.inner != nullptr) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, matrices.inner);
  const void* const c = matrices.c == nullptr ? matrices.d : matrices.c;
  return cublasLtMatmul(stream.products, operation_, &one, matrices.a, a_, matrices.b, b_, &prior, c, d_,
                        matrices.d, d_, &algorithm, stream.workspace, stream.workspace_bytes, stream.stream);
}

}  // namespace dlrun::cuda
