#pragma once
#include <filesystem>
#include "src/base/environment.hpp"
#include "src/base/result.hpp"
#include "src/plan/plan.hpp"
namespace dlrun {
inline Result<plan::MpiProtocol> detect_mpi(const std::filesystem::path&, const Environment&) { return plan::MpiProtocol::pmix; }
}
