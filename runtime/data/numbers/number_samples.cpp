// See number_samples.hpp.
#include "runtime/data/numbers/number_samples.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {
namespace {

// Of [pixel][channel] to [channel][pixel].
void channels_first(std::span<const float> in, std::size_t channels, std::span<float> out) {
  const std::size_t pixels = in.size() / channels;
  for (std::size_t pixel = 0; pixel < pixels; ++pixel)
    for (std::size_t channel = 0; channel < channels; ++channel)
      out[channel * pixels + pixel] = in[pixel * channels + channel];
}

double of_channel(const std::vector<double>& numbers, std::size_t channel, double otherwise) {
  if (numbers.empty()) return otherwise;
  return numbers.size() == 1 ? numbers[0] : numbers[channel];
}

void scale_channel(const NumberScaling& by, std::size_t channel, std::span<float> numbers) {
  const double std_dev = of_channel(by.std_dev, channel, 1);
  const auto shift = static_cast<float>(-of_channel(by.mean, channel, 0) / std_dev);
  if (by.transform == NumberScaling::Transform::log1p) {
    const auto scale = static_cast<float>(by.scale), share = static_cast<float>(1 / std_dev);
    for (float& number : numbers) number = std::log1p(number * scale) * share + shift;
    return;
  }
  const auto share = static_cast<float>(by.scale / std_dev);
  if (share == 1 && shift == 0) return;
  for (float& number : numbers) number = number * share + shift;
}

}  // namespace

NumberSamples::NumberSamples(NumberArrays arrays, SampleAxes axes)
    : arrays_(std::move(arrays)), axes_(std::move(axes)) {
  for (const auto& array : arrays_) {
    first_.push_back(count_);
    count_ += array->rows();
  }
  if (!arrays_.empty())
    channels_ = static_cast<std::size_t>(axes_.shape_of(std::span(arrays_[0]->shape()).subspan(1)).channels);
}

NumberSamples::Row NumberSamples::row_of(std::uint64_t sample) const {
  const auto behind = std::upper_bound(first_.begin(), first_.end(), sample);
  const auto which = static_cast<std::size_t>(behind - first_.begin()) - 1;
  return {arrays_[which].get(), sample - first_[which]};
}

Result<void> NumberSamples::check(const Row& row, const NumberScaling& scaling,
                                  std::span<const float> numbers) const {
  const bool logs = scaling.transform == NumberScaling::Transform::log1p;
  const auto scale = static_cast<float>(scaling.scale);
  const auto bad = std::find_if(numbers.begin(), numbers.end(), [&](float number) {
    return !std::isfinite(number) || (logs && number * scale <= -1);
  });
  if (bad == numbers.end()) return {};
  const auto at = static_cast<std::uint64_t>(bad - numbers.begin());
  const std::string value = std::isnan(*bad) ? "nan" : fmt::format("{}", *bad);
  return bad_input(row.array->place(row.row * numbers.size() + at),
                   fmt::format("sample {} has {} here{}", row.row, value,
                               std::isfinite(*bad) ? ", whose log1p cannot be taken" : ""),
                   "repair the file, or leave such samples out: damaged: drop");
}

Result<void> NumberSamples::read(std::uint64_t sample, const NumberScaling& scaling,
                                 std::span<float> out) const {
  const Row row = row_of(sample);
  const bool moves = channels_ > 1 && axes_.channels_last();
  thread_local std::vector<float> lies;
  if (moves) lies.resize(out.size());
  const std::span<float> raw = moves ? std::span(lies) : out;
  TRY(row.array->read(row.row, raw));
  TRY(check(row, scaling, raw));
  if (moves) channels_first(raw, channels_, out);
  const std::size_t plane = out.size() / channels_;
  for (std::size_t channel = 0; channel < channels_; ++channel)
    scale_channel(scaling, channel, out.subspan(channel * plane, plane));
  return {};
}

std::uint64_t NumberSamples::fingerprint() const {
  std::uint64_t hash = mix(count_, hash_text(axes_.letters()));
  for (const auto& array : arrays_) {
    hash = mix(hash, static_cast<std::uint64_t>(array->type()));
    for (const std::uint64_t extent : array->shape()) hash = mix(hash, extent);
  }
  if (arrays_.empty()) return hash;
  std::vector<float> numbers(arrays_[0]->numbers_per_row());
  for (std::uint64_t i = 0; i < count_; i += std::max<std::uint64_t>(1, count_ / 8)) {
    const Row row = row_of(i);
    if (!row.array->read(row.row, numbers)) continue;  // whoever trains on it is told
    std::uint32_t bits = 0;
    for (const float number : numbers) {
      std::memcpy(&bits, &number, sizeof bits);
      hash = mix(hash, bits);
    }
  }
  return hash;
}

}  // namespace dlrun::runtime
