// See cuda_device_calls.hpp.
#include "runtime/cuda/device_calls.hpp"

namespace dlrun::runtime {
namespace {

DlrunCudaPlace table_place(DeviceCalls::Place place) {
  return place == DeviceCalls::Place::pinned ? DLRUN_CUDA_PINNED : DLRUN_CUDA_ON_DEVICE;
}
DlrunCudaCommDtype table_dtype(CommDtype dtype) {
  return dtype == CommDtype::f16 ? DLRUN_CUDA_COMM_F16 : DLRUN_CUDA_COMM_BF16;
}

class CudaDeviceCalls final : public DeviceCalls {
 public:
  explicit CudaDeviceCalls(const CudaLibrary& library) : library_(library) {}

  Result<void*> take(Place place, std::size_t bytes) override {
    void* memory = nullptr;
    TRY(told(calls().take(table_place(place), bytes, &memory)));
    return memory;
  }
  // A device that has failed has no memory to give back.
  void release(Place place, void* memory) override { (void)calls().release(table_place(place), memory); }
  Result<void> copy(void* to, const void* from, std::size_t bytes, void* stream) override {
    return told(calls().copy(to, from, bytes, stream));
  }
  Result<void> call_host(void (*function)(void*), void* context, void* stream) override {
    return told(calls().call_host(function, context, stream));
  }
  Result<void> pack(CommDtype dtype, void* to, const float* from, std::size_t count, void* stream) override {
    return told(calls().pack(table_dtype(dtype), to, from, count, stream));
  }
  Result<void> unpack(CommDtype dtype, float* to, const void* from, std::size_t count,
                      void* stream) override {
    return told(calls().unpack(table_dtype(dtype), to, from, count, stream));
  }
  Result<void> add(float* to, const float* left, const float* right, std::size_t count,
                   void* stream) override {
    return told(calls().add(to, left, right, count, stream));
  }
  Result<void> pack_sum(CommDtype dtype, void* to, const Terms& terms, std::size_t count,
                        void* stream) override {
    const DlrunCudaTerms there{terms.own, terms.others, terms.stride, terms.own_place, terms.places};
    return told(calls().pack_sum(table_dtype(dtype), to, &there, count, stream));
  }

 private:
  const DlrunCudaSumCalls& calls() const { return library_.table().sums; }
  Result<void> told(int code) const {
    if (code == 0) return {};
    return fail(library_.error("a sum over the ranks failed on the GPU"));
  }

  CudaLibrary library_;
};

}  // namespace

std::shared_ptr<DeviceCalls> make_cuda_device_calls(const CudaLibrary& library) {
  return std::make_shared<CudaDeviceCalls>(library);
}

}  // namespace dlrun::runtime
