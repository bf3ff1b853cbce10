// Whether a rank's GPU would have the state that its CPU has: names, shapes, who else has it, and first
// values.
#pragma once

#include <vector>

#include <doctest/doctest.h>

#include "runtime/engine/engine.hpp"
#include "runtime/engine/state_layout.hpp"

namespace dlrun::runtime::test {

inline void check_same_state(const StateLayout& layout, const Engine& cpu, std::uint64_t seed) {
  REQUIRE(layout.tensors().size() == cpu.tensors().size());
  for (std::size_t i = 0; i < layout.tensors().size(); ++i) {
    const TensorInfo &info = layout.tensors()[i], &there = cpu.tensors()[i];
    CAPTURE(info.name);
    CHECK(info.name == there.name);
    CHECK(info.shape == there.shape);
    CHECK(info.held == there.held);
    CHECK(info.held_by == there.held_by);
    if (info.role == TensorInfo::Role::momentum) continue;
    std::vector<float> ours(info.elements()), theirs(ours.size());
    layout.first_values(i, seed, ours);
    REQUIRE(cpu.read_tensor(i, theirs));
    CHECK(ours == theirs);
  }
}

}  // namespace dlrun::runtime::test
