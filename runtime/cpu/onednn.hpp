// The only door to oneDNN (written for version 2): data types, layouts as the own kernels see them, and Call,
// a primitive with its arguments. Attributes always ask for scratch memory of ours, so that oneDNN allocates
// nothing after the start. Its exceptions are caught where a plan is compiled (cpu_engine.cpp).
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "runtime/engine/arena.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/graph/graph.hpp"

#if DNNL_VERSION_MAJOR != 2
#error "this wrapper is written for oneDNN 2; version 3 creates primitives without operation descriptors"
#endif

namespace dlrun::runtime {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using DataType = dnnl::memory::data_type;

// How activations lie in memory, the same through a whole plan: what oneDNN's convolutions like best here.
struct Layout {
  Tag tag = Tag::nchw;
  std::int64_t block = 1;  // channels side by side; 0: all of them
};

// An activation as loops of the own kernels see it: [batch][outer][height][width][inner].
struct Extents {
  std::int64_t batch, outer, height, width, inner;
  std::int64_t channels() const { return outer * inner; }  // with padding
  std::int64_t elements() const { return batch * outer * height * width * inner; }
};

DataType data_type(Precision precision);
std::size_t size_of(DataType type);
Desc activation_desc(std::int64_t batch, const Shape& shape, DataType type, Layout layout);
Extents extents(std::int64_t batch, const Shape& shape, Layout layout);
// The layout that a convolution over many channels chooses on this processor.
Layout preferred_layout(const dnnl::engine& engine, Precision precision);

// A vector of that many f32.
Desc vector_desc(std::int64_t elements);
Desc any_layout(const Dims& dims, DataType type);
dnnl::primitive_attr attributes(Activation activation = Activation::none, float slope = 0);
// The same blocking with another data type.
bool same_layout(const Desc& left, const Desc& right);
std::string text(const Desc& desc);

// Whether oneDNN has only its reference loops for it, hundreds of times slower than what it compiles.
template <class PrimitiveDesc>
bool is_slow(const PrimitiveDesc& desc) {
  return std::string(desc.impl_info_str()).starts_with("ref");
}

class Call {
 public:
  using Argument = std::pair<int, std::pair<Desc, const Buffer*>>;

  Call() = default;
  Call(const dnnl::primitive& primitive, std::vector<Argument> arguments)
      : primitive_(primitive), arguments_(std::move(arguments)) {}

  explicit operator bool() const { return static_cast<bool>(primitive_); }
  // The buffers must be laid out; they are looked up once.
  void run(const dnnl::stream& stream);

 private:
  dnnl::primitive primitive_;
  std::vector<Argument> arguments_;
  std::unordered_map<int, dnnl::memory> bound_;
};

}  // namespace dlrun::runtime
