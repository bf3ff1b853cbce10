// Work on memory by all processors that this process may use, for what is done once: it starts threads and
// ends them. What is done in each step is the business of the engine's own threads.
#pragma once

#include <cstddef>
#include <functional>

namespace dlrun::runtime {

/// At least 1.
unsigned usable_processors();

/// Calls body(begin, end) for disjoint parts of [0, count), side by side; a part of less than `grain` is not
/// worth a thread. `body` cannot fail.
void on_all_processors(std::size_t count, std::size_t grain,
                       const std::function<void(std::size_t, std::size_t)>& body);

}  // namespace dlrun::runtime
