// The kernels of 16-bit communication dtypes on a GPU against the CPU's loops, bit by bit: numbers that
// round, tie, overflow and underflow, with lengths and addresses that are not multiples of a vector.
#include <cmath>
#include <cstring>

#include "compare.hpp"
#include "runtime/base/keyed_random.hpp"
#include "runtime/cuda/device_calls.hpp"

namespace dlrun::runtime::gpu {

namespace {

using Place = DeviceCalls::Place;
constexpr std::size_t kMost = 5000;

std::vector<float> numbers(std::uint64_t key, std::size_t count) {
  constexpr float kEdges[] = {0.0F,     -0.0F,   1.0F,    257.0F,   259.0F, 65504.0F, 65519.0F,
                              65520.0F, -1e6F,   3.3e38F, 1e-45F,   1e-38F, 6e-8F,    3e-8F,
                              2.9e-8F,  6.1e-5F, 2049.0F, -2051.0F, 1e-5F,  -65520.F};
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t drawn = mix(key, i);
    const float fraction = static_cast<float>(drawn >> 40) / static_cast<float>(1 << 24) - 0.5F;
    out[i] = i % 5 == 0 ? kEdges[drawn % std::size(kEdges)] : fraction;
  }
  return out;
}

// Memory on the device, filled from the host and read back.
class DeviceArray {
 public:
  explicit DeviceArray(std::shared_ptr<DeviceCalls> calls) : calls_(calls), buffer_(calls, Place::device) {}
  Result<std::byte*> filled(const void* from, std::size_t bytes, std::size_t shift = 0) {
    auto* const at = static_cast<std::byte*>(TRY(buffer_.at_least(16 * kMost))) + shift;
    TRY(calls_->copy(at, from, bytes, nullptr));
    return at;
  }

 private:
  std::shared_ptr<DeviceCalls> calls_;
  DeviceBuffer buffer_;
};

struct Trial {
  CommDtype dtype;
  std::size_t count;
  std::size_t shift;  // in numbers
  std::string name() const {
    return fmt::format("{} numbers as {} from {} on", count, name_of(dtype), shift);
  }
};

// The same bits, but that infinities of both signs add up to a NaN, whose bits are each processor's own.
bool same_sums(CommDtype dtype, const std::vector<std::byte>& left, const std::vector<std::byte>& right) {
  const std::size_t size = bytes_of(dtype, 1);
  for (std::size_t at = 0; at < left.size(); at += size) {
    float values[2];
    unpack(dtype, &values[0], left.data() + at, 1);
    unpack(dtype, &values[1], right.data() + at, 1);
    const bool no_numbers = std::isnan(values[0]) && std::isnan(values[1]);
    if (!no_numbers && std::memcmp(left.data() + at, right.data() + at, size) != 0) return false;
  }
  return true;
}

Result<void> compare_forms(const std::shared_ptr<DeviceCalls>& calls, const Trial& trial) {
  DeviceArray plain(calls), packed(calls);
  const std::vector<float> from = numbers(trial.count, trial.count);
  const std::size_t bytes = bytes_of(trial.dtype, trial.count);
  std::vector<std::byte> expected(bytes), got(bytes);
  pack(trial.dtype, expected.data(), from.data(), from.size());
  auto* const there = reinterpret_cast<float*>(
      TRY(plain.filled(from.data(), from.size() * sizeof(float), trial.shift * sizeof(float))));
  std::byte* const short_there = TRY(packed.filled(got.data(), bytes, bytes_of(trial.dtype, trial.shift)));
  TRY(calls->pack(trial.dtype, short_there, there, trial.count, nullptr));
  TRY(calls->copy(got.data(), short_there, bytes, nullptr));
  expect(got == expected, trial.name() + " are packed otherwise");

  std::vector<float> back(trial.count), expected_back(trial.count);
  unpack(trial.dtype, expected_back.data(), expected.data(), trial.count);
  TRY(calls->unpack(trial.dtype, there, short_there, trial.count, nullptr));
  TRY(calls->copy(back.data(), there, back.size() * sizeof(float), nullptr));
  expect(std::memcmp(back.data(), expected_back.data(), back.size() * sizeof(float)) == 0,
         trial.name() + " are unpacked otherwise");
  return {};
}

Result<void> compare_sums(const std::shared_ptr<DeviceCalls>& calls, const Trial& trial, int own_place,
                          int places) {
  DeviceArray plain(calls), packed(calls), sums(calls);
  const std::size_t stride = (trial.count + 7) / 8 * 8, bytes = bytes_of(trial.dtype, trial.count);
  const std::vector<float> own = numbers(77, trial.count);
  std::vector<std::byte> others(bytes_of(trial.dtype, stride * static_cast<std::size_t>(places)));
  std::vector<float> sum(trial.count);
  for (int place = 0; place < places; ++place) {
    std::byte* const at = others.data() + bytes_of(trial.dtype, static_cast<std::size_t>(place) * stride);
    const auto term = numbers(static_cast<std::uint64_t>(place), trial.count);
    pack(trial.dtype, at, term.data(), term.size());
    if (place == own_place)
      for (std::size_t i = 0; i < trial.count; ++i) sum[i] += own[i];
    else
      add_unpacked(trial.dtype, sum.data(), at, trial.count);
  }
  std::vector<std::byte> expected(bytes), got(bytes);
  pack(trial.dtype, expected.data(), sum.data(), sum.size());
  const auto* const own_there = reinterpret_cast<const float*>(
      TRY(plain.filled(own.data(), own.size() * sizeof(float), trial.shift * sizeof(float))));
  std::byte* const sum_there = TRY(sums.filled(got.data(), bytes));
  TRY(calls->pack_sum(
      trial.dtype, sum_there,
      {own_there, TRY(packed.filled(others.data(), others.size())), stride, own_place, places}, trial.count,
      nullptr));
  TRY(calls->copy(got.data(), sum_there, bytes, nullptr));
  expect(same_sums(trial.dtype, got, expected),
         fmt::format("{}, place {} of {}: the sum is another", trial.name(), own_place, places));
  return {};
}

// A host call runs after the earlier work of the stream and before the later.
Result<void> check_call_of_host(const std::shared_ptr<DeviceCalls>& calls) {
  DeviceBuffer pinned(calls, Place::pinned);
  DeviceArray array(calls);
  const float seven = 7;
  float got = 0;
  auto* const staged = static_cast<float*>(TRY(pinned.at_least(sizeof(float))));
  std::byte* const there = TRY(array.filled(&seven, sizeof seven));
  const auto doubles = [](void* context) { *static_cast<float*>(context) *= 2; };
  TRY(calls->copy(staged, there, sizeof(float), nullptr));
  TRY(calls->call_host(doubles, staged, nullptr));
  TRY(calls->copy(there, staged, sizeof(float), nullptr));
  TRY(calls->copy(&got, there, sizeof got, nullptr));
  expect(got == 14, fmt::format("a call of the host made {} of 7, not 14", got));
  return {};
}

}  // namespace

Result<void> compare_dtypes(const CudaLibrary& library) {
  if (library.table().use(0) != 0) return fail(library.error("no usable GPU"));
  const std::shared_ptr<DeviceCalls> calls = make_cuda_device_calls(library);
  for (const CommDtype dtype : {CommDtype::bf16, CommDtype::f16})
    for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, std::size_t{4099}})
      for (const std::size_t shift : {std::size_t{0}, std::size_t{1}}) {
        TRY(compare_forms(calls, {dtype, count, shift}));
        for (int places = 2; places <= 4; ++places)
          for (int own = 0; own < places; ++own) TRY(compare_sums(calls, {dtype, count, shift}, own, places));
      }
  return check_call_of_host(calls);
}

}  // namespace dlrun::runtime::gpu
