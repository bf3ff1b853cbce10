// Splits a range over the threads that oneDNN computes with, so that a process has one team of threads
// (OMP_NUM_THREADS of them). With one thread, the body just runs.
#pragma once

#include <cstddef>

namespace dlrun::runtime {

// body(begin, end) on disjoint parts of [0, count); parts begin at multiples of `grain`, and a part of less
// than about `grain` is not worth a thread.
template <class Body>
void parallel_for(std::size_t count, std::size_t grain, const Body& body);

namespace detail {
void parallel_parts(std::size_t parts, void (*run)(void* context, std::size_t part), void* context);
std::size_t thread_count();
}  // namespace detail

template <class Body>
void parallel_for(std::size_t count, std::size_t grain, const Body& body) {
  const std::size_t grains = (count + grain - 1) / grain;
  const std::size_t parts = grains < detail::thread_count() ? grains : detail::thread_count();
  if (parts <= 1) return body(std::size_t{0}, count);
  struct Context {
    const Body& body;
    std::size_t count, step;
  } context{body, count, (grains + parts - 1) / parts * grain};
  detail::parallel_parts(
      parts,
      [](void* pointer, std::size_t part) {
        const Context& of = *static_cast<Context*>(pointer);
        const std::size_t begin = part * of.step;
        const std::size_t end = begin + of.step < of.count ? begin + of.step : of.count;
        if (begin < end) of.body(begin, end);
      },
      &context);
}

}  // namespace dlrun::runtime
