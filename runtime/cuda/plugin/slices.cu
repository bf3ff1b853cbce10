// See slices.hpp.
#include "runtime/cuda/plugin/pack.hpp"
#include "runtime/cuda/plugin/slices.hpp"

namespace dlrun::cuda {
namespace {

// In packs: row * step + group of each side.
struct Steps {
  std::uint32_t groups, to, from;
};

template <class P>
void move(Device& device, P* to, const P* from, std::int64_t rows, Steps steps, bool adds) {
  for_each(device.stream, rows * steps.groups, [=] __device__(std::int64_t i) {
    const std::int64_t row = i / steps.groups, group = i - row * steps.groups;
    P all = from[row * steps.from + group];
    P& place = to[row * steps.to + group];
    if (adds) {
      const P before = place;
      for (int v = 0; v < P::kSize; ++v) put(all.of[v], number(all.of[v]) + number(before.of[v]));
    }
    place = all;
  });
}

template <class T, class Body>
void by_slice(const Slice& slice, const Body& body) {
  constexpr int kMax = 16 / sizeof(T);
  const bool even = slice.first % kMax == 0 && slice.whole % kMax == 0;
  by_pack<T>(even ? slice.channels : 1, body);
}

}  // namespace

void copy_into_whole(Device& device, void* whole, const void* part, const Slice& slice, Copy how) {
  by_type(device, [&](auto zero) {
    by_slice<decltype(zero)>(slice, [&](auto pack) {
      using P = decltype(pack);
      const auto groups = static_cast<std::uint32_t>(slice.channels / P::kSize);
      move(device, static_cast<P*>(whole) + slice.first / P::kSize, static_cast<const P*>(part), slice.rows,
           {groups, static_cast<std::uint32_t>(slice.whole / P::kSize), groups}, how == Copy::sum);
    });
  });
}

void copy_out_of_whole(Device& device, void* part, const void* whole, const Slice& slice, Copy how) {
  by_type(device, [&](auto zero) {
    by_slice<decltype(zero)>(slice, [&](auto pack) {
      using P = decltype(pack);
      const auto groups = static_cast<std::uint32_t>(slice.channels / P::kSize);
      move(device, static_cast<P*>(part), static_cast<const P*>(whole) + slice.first / P::kSize, slice.rows,
           {groups, groups, static_cast<std::uint32_t>(slice.whole / P::kSize)}, how == Copy::sum);
    });
  });
}

}  // namespace dlrun::cuda
