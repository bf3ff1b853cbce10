// TensorInfo's arithmetic: how many numbers a rank has of a tensor.
#include "runtime/base/tensor_info.hpp"

namespace dlrun::runtime {

std::vector<TensorBox> TensorInfo::boxes() const {
  return held ? *held : std::vector<TensorBox>{whole_box(shape)};
}

std::size_t TensorInfo::elements() const {
  if (!held) return elements_of(shape);
  std::size_t out = 0;
  for (const TensorBox& box : *held) out += box.elements();
  return out;
}

}  // namespace dlrun::runtime
