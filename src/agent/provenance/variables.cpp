// Variables that decide how programs are found, bound and connected. These names alone: an environment may
// have secrets under any other.
#include <algorithm>

#include "src/agent/provenance/facts.hpp"
#include "src/plan/secret_words.hpp"

namespace dlrun::agent {
namespace {

constexpr std::string_view kNames[] = {"PATH",
                                       "LD_LIBRARY_PATH",
                                       "LD_PRELOAD",
                                       "PYTHONPATH",
                                       "PYTHONHASHSEED",
                                       "VIRTUAL_ENV",
                                       "CONDA_PREFIX",
                                       "MODULEPATH",
                                       "CUDA_HOME",
                                       "CUDA_PATH",
                                       "ROCM_PATH",
                                       "LANG",
                                       "LC_ALL",
                                       "CC",
                                       "CXX",
                                       "MALLOC_CONF"};
constexpr std::string_view kPrefixes[] = {
    "CUDA_", "CUBLAS_", "CUDNN_",    "NCCL_",     "HIP_",    "ROCR_",      "HSA_",   "ZE_",
    "OMP_",  "KMP_",    "MKL_",      "DNNL_",     "ONEDNN_", "OPENBLAS_",  "GOMP_",  "UCX_",
    "FI_",   "PSM2_",   "OMPI_MCA_", "PMIX_MCA_", "I_MPI_",  "MPICH_",     "TORCH_", "PYTORCH_",
    "TF_",   "XLA_",    "JAX_",      "HOROVOD_",  "HF_",     "TOKENIZERS_"};

bool is_telling(std::string_view name) {
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

Json find_variables(const ProgramSeen& program) {
  Json out = Json::object();
  for (const auto& [name, value] : program.environment.all())
    if (is_telling(name) && !plan::is_secret_value(name, value, {})) out[name] = value;
  return out;
}

}  // namespace dlrun::agent
