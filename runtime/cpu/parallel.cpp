// By the calls that GCC makes of "#pragma omp parallel": oneDNN runs on the same library, and so its threads
// are ours whichever compiler builds this file.
#include "runtime/cpu/parallel.hpp"

extern "C" {
void GOMP_parallel(void (*body)(void*), void* context, unsigned threads, unsigned flags);
int omp_get_max_threads();
int omp_get_num_threads();
int omp_get_thread_num();
}

namespace dlrun::runtime::detail {

namespace {

struct Work {
  std::size_t parts;
  void (*run)(void*, std::size_t);
  void* context;
};

// The team may be smaller than asked for, so each thread takes every n-th part.
void run_thread(void* pointer) {
  const Work& work = *static_cast<Work*>(pointer);
  const auto threads = static_cast<std::size_t>(omp_get_num_threads());
  for (auto part = static_cast<std::size_t>(omp_get_thread_num()); part < work.parts; part += threads)
    work.run(work.context, part);
}

}  // namespace

std::size_t thread_count() {
  return static_cast<std::size_t>(omp_get_max_threads());
}

void parallel_parts(std::size_t parts, void (*run)(void*, std::size_t), void* context) {
  Work work{parts, run, context};
  GOMP_parallel(run_thread, &work, static_cast<unsigned>(parts), 0);
}

}  // namespace dlrun::runtime::detail
