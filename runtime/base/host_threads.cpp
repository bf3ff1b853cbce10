// See host_threads.hpp.
#include "runtime/base/host_threads.hpp"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#include <sched.h>

namespace dlrun::runtime {

unsigned usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return std::max(1U, std::thread::hardware_concurrency());
  return std::max(1U, static_cast<unsigned>(CPU_COUNT(&set)));
}

void on_all_processors(std::size_t count, std::size_t grain,
                       const std::function<void(std::size_t, std::size_t)>& body) {
  const std::size_t parts = std::clamp<std::size_t>(count / grain, 1, usable_processors());
  std::vector<std::jthread> helpers;
  helpers.reserve(parts);
  std::size_t part = 1;
  try {
    for (; part < parts; ++part) helpers.emplace_back(body, count * part / parts, count * (part + 1) / parts);
  } catch (const std::system_error&) {  // as many threads as there may be: the rest is done here
  }
  body(0, count / parts);
  if (part < parts) body(count * part / parts, count);
}

}  // namespace dlrun::runtime
