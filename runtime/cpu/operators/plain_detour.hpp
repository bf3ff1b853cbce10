// A way round for one primitive: it reads and writes plain copies, all channels of a pixel side by side,
// where oneDNN has only its reference loops for the plan's blocks. Padding wider than a row of outputs is
// such a shape: windows of 5 over maps of 2 pixels.
#pragma once

#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

inline Desc side_by_side(const Desc& desc) {
  return {dims_of(desc), type_of(desc), tag_of({Tag::nhwc, 0}, dims_of(desc).size())};
}

// What a primitive writes: the tensor itself, or a copy that `deliver` brings there.
struct Target {
  Buffer* buffer = nullptr;
  Call deliver = {};  // where it is a copy
};

inline Target target(Plan& plan, Buffer* buffer, const Desc& lies, const Desc& written, Pass pass) {
  if (lies == written) return {buffer};
  Buffer* copy = plan.scratch(written.get_size(), pass);
  const dnnl::reorder::primitive_desc desc(plan.engine(), written, plan.engine(), lies, attributes());
  return {copy, Call(dnnl::reorder(desc), {{DNNL_ARG_FROM, {written, copy}}, {DNNL_ARG_TO, {lies, buffer}}})};
}

}  // namespace dlrun::runtime
