// A device without a GPU: its memory is the host's, and what is asked of it is done before the call returns,
// but for calls of the host, which may be left to threads as a driver does. Each call is noted in the fake
// NCCL's log, so that a test sees the order of both.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/engine/device_allreduce.hpp"
#include "runtime/engine/device_calls.hpp"
#include "src/base/shared_library.hpp"

namespace dlrun::test {

template <class T>
T* from_fake_nccl(const char* name) {
  static const SharedLibrary fake = SharedLibrary::open(FAKE_NCCL).value();
  return fake.symbol<T>(name).value();
}
inline std::string nccl_log() {
  return (*from_fake_nccl<const char*()>("fake_nccl_log"))();
}

// The first Error that asking again and again gives: looks are milliseconds apart.
inline Error await_failure(runtime::DeviceAllreduce& sum) {
  for (;;)
    if (const auto state = sum.check(); !state) return state.error();
}

class FakeDevice final : public runtime::DeviceCalls {
 public:
  enum class HostCalls { at_once, on_threads };
  explicit FakeDevice(HostCalls how = HostCalls::at_once) : how_(how) {}
  ~FakeDevice() override { finish(); }
  void finish() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  Result<void*> take(Place, std::size_t bytes) override { return std::malloc(bytes); }
  void release(Place, void* memory) override { std::free(memory); }
  Result<void> copy(void* to, const void* from, std::size_t bytes, void*) override {
    note(fmt::format("copy {}", bytes));
    std::memcpy(to, from, bytes);
    return {};
  }
  Result<void> call_host(void (*function)(void*), void* context, void*) override {
    note("call host");
    if (how_ == HostCalls::at_once)
      function(context);
    else
      threads_.emplace_back(function, context);
    return {};
  }
  Result<void> pack(runtime::CommDtype dtype, void* to, const float* from, std::size_t count,
                    void*) override {
    note(fmt::format("pack {}", count));
    runtime::pack(dtype, static_cast<std::byte*>(to), from, count);
    return {};
  }
  Result<void> unpack(runtime::CommDtype dtype, float* to, const void* from, std::size_t count,
                      void*) override {
    note(fmt::format("unpack {}", count));
    runtime::unpack(dtype, to, static_cast<const std::byte*>(from), count);
    return {};
  }
  Result<void> add(float* to, const float* left, const float* right, std::size_t count, void*) override {
    note(fmt::format("add {}", count));
    std::transform(left, left + count, right, to, std::plus<>());
    return {};
  }
  Result<void> pack_sum(runtime::CommDtype dtype, void* to, const Terms& terms, std::size_t count,
                        void*) override {
    note(fmt::format("sum {}", count));
    std::vector<float> sum(count);
    for (int place = 0; place < terms.places; ++place) {
      const std::size_t at = runtime::bytes_of(dtype, static_cast<std::size_t>(place) * terms.stride);
      if (place == terms.own_place)
        std::transform(sum.begin(), sum.end(), terms.own, sum.begin(), std::plus<>());
      else
        runtime::add_unpacked(dtype, sum.data(), static_cast<const std::byte*>(terms.others) + at, count);
    }
    runtime::pack(dtype, static_cast<std::byte*>(to), sum.data(), count);
    return {};
  }

 private:
  static void note(const std::string& text) {
    (*from_fake_nccl<void(const char*)>("fake_nccl_note"))(text.c_str());
  }
  HostCalls how_;
  std::vector<std::thread> threads_;
};

}  // namespace dlrun::test
