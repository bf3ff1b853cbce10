// The images of a generator: only its operators, in evaluation, and their images as the host reads them. It
// is in no captured graph: it runs once per epoch.
#include "runtime/cuda/plugin/engine.hpp"
#include "runtime/cuda/plugin/image_order.hpp"

namespace dlrun::cuda {
namespace {

template <class T>
void to_plain(float* images, const std::vector<unsigned char>& device, ImageOrder order) {
  const T* from = reinterpret_cast<const T*>(device.data());
  const auto count = static_cast<std::int64_t>(device.size() / sizeof(T));
  for (std::int64_t place = 0; place < count; ++place)
    images[order.plain(place)] = static_cast<float>(from[place]);
}

}  // namespace

void Engine::generate(std::size_t first, std::size_t last, const std::uint64_t* keys, float* images) {
  use();
  keep_facts(DLRUN_CUDA_STATISTICS_UPDATED, keys);
  send_facts();
  refresh_copies();
  for (std::size_t node = first; node <= last; ++node) operators_[node]->forward(device_, Mode::evaluate);
  const Tensor& made = device_.tensors[last];
  std::vector<unsigned char> there(static_cast<std::size_t>(made.elements) * device_.size());
  copy(there.data(), made.value, there.size(), cudaMemcpyDeviceToHost);
  check(cudaStreamSynchronize(device_.stream), "making images");
  const DlrunCudaNode& node = nodes_[last];
  const ImageOrder order{node.channels, node.height * node.width};
  device_.half() ? to_plain<Bf16>(images, there, order) : to_plain<float>(images, there, order);
}

}  // namespace dlrun::cuda
