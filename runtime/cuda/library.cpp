// Loads the plug-in and asks it for GPUs. It changes nothing on a device.
#include "runtime/cuda/cuda_engine.hpp"
#include "src/base/install.hpp"

namespace dlrun::runtime {

Result<CudaLibrary> CudaLibrary::open() {
  const Installation installation = TRY(this_installation());
  const auto path = installation.plugins / "libdlrun-cuda.so";
  SharedLibrary loaded = TRY(SharedLibrary::open(path));
  auto* const table_of = TRY(loaded.symbol<const DlrunCudaTable*()>(DLRUN_CUDA_TABLE_SYMBOL));
  CudaLibrary library(std::move(loaded), table_of());
  if (library.table_->version != DLRUN_CUDA_TABLE_VERSION)
    return fail(
        Error{.kind = ErrorKind::unavailable,
              .what = fmt::format("the plug-in speaks version {} of the table, this program version {}",
                                  library.table_->version, DLRUN_CUDA_TABLE_VERSION),
              .where = path.string(),
              .hint = "install the plug-ins of the same build as the program"});
  if (library.table_->device_count(&library.devices_) != 0) return fail(library.error("no GPU can be used"));
  if (library.devices_ == 0)
    return fail(Error{.kind = ErrorKind::unavailable,
                      .what = "this process sees no GPU",
                      .hint = "look at nvidia-smi and CUDA_VISIBLE_DEVICES, or write device: cpu"});
  return library;
}

Error CudaLibrary::error(std::string what) const {
  char text[1024] = {};
  table_->error_text(text, sizeof text);
  return Error{.kind = ErrorKind::unavailable,
               .what = fmt::format("{}: {}", what, text),
               .hint = "look at nvidia-smi on this node, or write device: cpu"};
}

std::string CudaLibrary::device_name(int device) const {
  char text[256] = {};
  return table_->device_name(device, text, sizeof text) == 0 ? std::string(text) : "an unknown GPU";
}

std::map<std::string, std::string> CudaLibrary::arithmetic(int device) const {
  std::size_t cudnn = 0, cublaslt = 0;
  if (table_->library_versions(&cudnn, &cublaslt) != 0) return {};
  return {
      {"gpu", device_name(device)}, {"cudnn", std::to_string(cudnn)}, {"cublaslt", std::to_string(cublaslt)}};
}

}  // namespace dlrun::runtime
