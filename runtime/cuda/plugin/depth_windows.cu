// See depth_windows.hpp. 32 bits where they are enough, as divisions of 64 cost more than the memory does.
#include "runtime/cuda/plugin/depth_windows.hpp"
#include "runtime/cuda/plugin/pack.hpp"

namespace dlrun::cuda {
namespace {

template <class Index>
struct Extents {
  Index in, out, window, steps, stride, padding, area, groups;  // groups: packs of a pixel
};

template <class P, class Index>
void spread_packs(cudaStream_t stream, const P* volume, P* images, std::int64_t count, Extents<Index> e) {
  for_each(stream, count, [=] __device__(std::int64_t wide) {
    const auto i = static_cast<Index>(wide);
    const Index group = i % e.groups, pixels = i / e.groups, step = pixels % e.steps;
    const Index pixel = pixels / e.steps % e.area, planes = pixels / e.steps / e.area;
    const Index plane = planes % e.out * e.stride - e.padding + step, sample = planes / e.out;
    P seen{};
    if (step < e.window && plane >= 0 && plane < e.in)
      seen = volume[((sample * e.in + plane) * e.area + pixel) * e.groups + group];
    images[i] = seen;
  });
}

// The last window first, as poolings gather.
template <class P, class Index>
void gather_packs(cudaStream_t stream, const P* images, P* volume, std::int64_t count, Extents<Index> e,
                  bool adds) {
  for_each(stream, count, [=] __device__(std::int64_t wide) {
    const auto i = static_cast<Index>(wide);
    const Index group = i % e.groups, pixel = i / e.groups % e.area, planes = i / e.groups / e.area;
    const Index behind = planes % e.in + e.padding, sample = planes / e.in;
    float sum[P::kSize] = {};
    if (adds) {
      const P before = volume[i];
      for (int k = 0; k < P::kSize; ++k) sum[k] = number(before.of[k]);
    }
    const Index last = behind / e.stride < e.out ? behind / e.stride : e.out - 1;
    for (Index window = last; window >= 0 && behind - window * e.stride < e.window; --window) {
      const Index row = ((sample * e.out + window) * e.area + pixel) * e.steps + behind - window * e.stride;
      const P part = images[row * e.groups + group];
      for (int k = 0; k < P::kSize; ++k) sum[k] += number(part.of[k]);
    }
    P all;
    for (int k = 0; k < P::kSize; ++k) put(all.of[k], sum[k]);
    volume[i] = all;
  });
}

template <class Index>
Extents<Index> extents_of(const Planes& planes, std::int64_t steps, std::int64_t area, std::int64_t groups) {
  return {static_cast<Index>(planes.in),     static_cast<Index>(planes.out),
          static_cast<Index>(planes.window), static_cast<Index>(steps),
          static_cast<Index>(planes.stride), static_cast<Index>(planes.padding),
          static_cast<Index>(area),          static_cast<Index>(groups)};
}

constexpr std::int64_t kWanted = 8;  // what channels of bf16 are to divide by

// Not where zeros would be more than the planes.
std::int64_t steps_of(const Planes& planes, std::int64_t channels) {
  for (std::int64_t steps = planes.window; steps <= 2 * planes.window; ++steps)
    if (steps * channels % kWanted == 0) return steps;
  return planes.window;
}

// body(a pack, an index that is wide enough for the larger of both arrays).
template <class Body>
void by_form(bool half, std::int64_t channels, std::int64_t numbers, const Body& body) {
  const auto by_index = [&](auto pack) {
    if (numbers / decltype(pack)::kSize <= INT32_MAX)
      body(pack, std::int32_t{});
    else
      body(pack, std::int64_t{});
  };
  if (half && channels % 8 == 4)
    by_index(Pack<Bf16, 4>{});
  else if (half)
    by_pack<Bf16>(channels, by_index);
  else
    by_pack<float>(channels, by_index);
}

}  // namespace

DepthWindows::DepthWindows(const Device& device, const Planes& planes, std::int64_t area,
                           std::int64_t channels)
    : half_(device.half()),
      batch_(device.batch),
      area_(area),
      channels_(channels),
      planes_(planes),
      steps_(half_ && copies() ? steps_of(planes, channels) : planes.window) {}

std::size_t DepthWindows::bytes() const {
  if (!copies()) return 0;
  const std::int64_t numbers = batch_ * planes_.out * area_ * image_channels();
  return static_cast<std::size_t>(numbers) * (half_ ? sizeof(Bf16) : sizeof(float));
}

void DepthWindows::spread(cudaStream_t stream, const void* volume, void* images) const {
  const std::int64_t numbers = batch_ * planes_.out * area_ * image_channels();
  by_form(half_, channels_, std::max(numbers, batch_ * planes_.in * area_ * channels_),
          [&](auto pack, auto index) {
            using P = decltype(pack);
            spread_packs(stream, static_cast<const P*>(volume), static_cast<P*>(images), numbers / P::kSize,
                         extents_of<decltype(index)>(planes_, steps_, area_, channels_ / P::kSize));
          });
}

void DepthWindows::gather(cudaStream_t stream, const void* images, void* volume, bool adds) const {
  const std::int64_t numbers = batch_ * planes_.in * area_ * channels_;
  by_form(half_, channels_, std::max(numbers, batch_ * planes_.out * area_ * image_channels()),
          [&](auto pack, auto index) {
            using P = decltype(pack);
            gather_packs(stream, static_cast<const P*>(images), static_cast<P*>(volume), numbers / P::kSize,
                         extents_of<decltype(index)>(planes_, steps_, area_, channels_ / P::kSize), adds);
          });
}

std::size_t DepthWindows::filter_bytes(std::int64_t pixels) const {
  return pads() ? static_cast<std::size_t>(pixels * image_channels()) * sizeof(Bf16) : 0;
}

void DepthWindows::pad_filters(cudaStream_t stream, const void* filters, void* to,
                               std::int64_t pixels) const {
  const auto* const from = static_cast<const Bf16*>(filters);
  auto* const padded = static_cast<Bf16*>(to);
  const std::int64_t own = planes_.window * channels_, all = image_channels();
  for_each(stream, pixels * all, [=] __device__(std::int64_t i) {
    const std::int64_t place = i % all;
    padded[i] = place < own ? from[i / all * own + place] : Bf16(0.0F);
  });
}

void DepthWindows::unpad_filters(cudaStream_t stream, const void* padded, void* to,
                                 std::int64_t pixels) const {
  const auto* const from = static_cast<const Bf16*>(padded);
  auto* const filters = static_cast<Bf16*>(to);
  const std::int64_t own = planes_.window * channels_, all = image_channels();
  for_each(stream, pixels * own,
           [=] __device__(std::int64_t i) { filters[i] = from[i / own * all + i % own]; });
}

}  // namespace dlrun::cuda
