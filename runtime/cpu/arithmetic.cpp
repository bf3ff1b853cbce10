#include "runtime/cpu/arithmetic.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <oneapi/dnnl/dnnl.hpp>

#include "runtime/cpu/parallel.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

// The best set that oneDNN takes: each one contains those below it.
std::string instructions() {
  using Isa = dnnl::cpu_isa;
  static constexpr std::array<std::pair<Isa, std::string_view>, 8> known{
      {{Isa::avx512_core_amx, "AVX-512 with AMX"},
       {Isa::avx512_core_bf16, "AVX-512 with bf16"},
       {Isa::avx512_core_vnni, "AVX-512 with VNNI"},
       {Isa::avx512_core, "AVX-512"},
       {Isa::avx2_vnni, "AVX2 with VNNI"},
       {Isa::avx2, "AVX2"},
       {Isa::avx, "AVX"},
       {Isa::sse41, "SSE4.1"}}};
  const auto all = static_cast<int>(dnnl::get_effective_cpu_isa());
  for (const auto& [isa, name] : known)
    if ((all & static_cast<int>(isa)) == static_cast<int>(isa)) return std::string(name);
  return "the processor's own";
}

// As x86, POWER and s390 name it; ARM's kernel has numbers alone.
std::string processor() {
  const auto text = read_file("/proc/cpuinfo");
  if (!text) return {};
  for (const std::string& line : split(*text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view name = trim(std::string_view(line).substr(0, colon));
    if (name == "model name" || name == "cpu" || name == "CPU part")
      return std::string(trim(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

}  // namespace

std::map<std::string, std::string> arithmetic_of_cpu() {
  const dnnl_version_t* const version = dnnl_version();
  std::map<std::string, std::string> out{
      {"instructions", instructions()},
      {"threads", std::to_string(detail::thread_count())},
      {"onednn", fmt::format("{}.{}.{}", version->major, version->minor, version->patch)}};
  if (std::string model = processor(); !model.empty()) out["processor"] = std::move(model);
  return out;
}

}  // namespace dlrun::runtime
