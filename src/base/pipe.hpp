// A pipe between two processes or threads. Both ends are closed on exec: a child gets an end only where its
// ChildSpec names it.
#pragma once

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun {

struct Pipe {
  UniqueFd read, write;
};

/// A new pipe, both ends blocking. An Error (unavailable) where the process has no descriptors left.
Result<Pipe> make_pipe();

/// Makes reads and writes of `fd` return EAGAIN instead of waiting.
void set_nonblocking(const UniqueFd& fd);

}  // namespace dlrun
