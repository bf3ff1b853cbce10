// Which backend an environment asks for: the pure part of make_communicator(). It loads nothing.
#pragma once

#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

enum class Backend { one_rank, openmpi, mpich };

Result<Backend> choose_backend(const Environment& environment);

}  // namespace dlrun::runtime
