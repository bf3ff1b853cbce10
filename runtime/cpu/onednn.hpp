// The only door to oneDNN, of version 2 (from 2.6) or 3: data types, layouts as the own kernels see them, and
// Call, a primitive with its arguments. Attributes always ask for scratch memory of ours, so that oneDNN
// allocates nothing after the start. Its exceptions are caught where a plan is compiled (cpu_engine.cpp).
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "runtime/engine/arena.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/graph/graph.hpp"

#if DNNL_VERSION_MAJOR != 2 && DNNL_VERSION_MAJOR != 3
#error "this wrapper is written for oneDNN 2 and 3"
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

// Of a layout, the tag for images (4 dimensions) or volumes (5).
Tag tag_of(const Layout& layout, std::size_t dims);

// An activation as loops of the own kernels see it: [batch][outer][height][width][inner]. The height of a
// volume is depth x height here.
struct Extents {
  std::int64_t batch, outer, height, width, inner;
  std::int64_t channels() const { return outer * inner; }  // with padding
  std::int64_t elements() const { return batch * outer * height * width * inner; }
};

DataType data_type(Precision precision);
std::size_t size_of(DataType type);
// Of an image in that layout. A sequence is plain: a matrix of batch x positions rows of features.
Desc activation_desc(std::int64_t batch, const Shape& shape, DataType type, Layout layout);
Extents extents(std::int64_t batch, const Shape& shape, Layout layout);
// The layout that a convolution over many channels chooses on this processor.
Layout preferred_layout(const dnnl::engine& engine, Precision precision);

// A vector of that many f32.
Desc vector_desc(std::int64_t elements);
Desc any_layout(const Dims& dims, DataType type);
dnnl::primitive_attr attributes(Activation activation = Activation::none, float slope = 0);
std::string text(const Desc& desc);

// A layout axis by axis, with the blocks that are cut from the axes, the outermost first. Version 2 has it as
// a struct, version 3 answers questions.
struct Blocking {
  Dims dims, padded_dims, strides;
  std::vector<std::int64_t> inner_axes, inner_blocks;
  friend bool operator==(const Blocking&, const Blocking&) = default;
};
Blocking blocking_of(const Desc& desc);
// Unset where oneDNN cannot describe it: version 3 makes only layouts that have a tag, or no blocks.
std::optional<Desc> desc_of(const Blocking& blocking, DataType type);
Dims dims_of(const Desc& desc);
DataType type_of(const Desc& desc);
// The same layout of another data type.
Desc with_type(const Desc& desc, DataType type);

// What a primitive is to do. Version 2 puts the operation's numbers into a description of their own first.
template <class Primitive, class... Numbers>
typename Primitive::primitive_desc describe(const dnnl::engine& engine,
                                            const dnnl::primitive_attr& attributes,
                                            const Numbers&... numbers) {
#if DNNL_VERSION_MAJOR == 2
  return {typename Primitive::desc(numbers...), attributes, engine};
#else
  return {engine, numbers..., attributes};
#endif
}
template <class Primitive, class Hint, class... Numbers>
typename Primitive::primitive_desc describe_backward(const dnnl::engine& engine, const Hint& hint,
                                                     const Numbers&... numbers) {
#if DNNL_VERSION_MAJOR == 2
  return {typename Primitive::desc(numbers...), attributes(), engine, hint};
#else
  return {engine, numbers..., hint, attributes()};
#endif
}

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
