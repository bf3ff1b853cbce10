// BenchmarkFigures: what a benchmark measured, and what follows from it: scaling, the input's share, the
// bound max(compute, communication) and why a step takes longer than that. Pure: the measuring is
// trainer_benchmark.cpp's.
#pragma once

#include <string>
#include <vector>

#include "runtime/train/report/sample_unit.hpp"
#include "runtime/train/report/throughput.hpp"
#include "src/base/json_fwd.hpp"

namespace dlrun::runtime {

// The figures of one rank.
struct RankFigures {
  double compute_seconds = 0;  // of a step without input and communication, all ranks at once
  double peak_bytes = 0;       // of host memory
  double engine_bytes = 0;     // of the model's arenas, on the device that has them
};

struct BenchmarkFigures {
  Throughput steps;                     // whole steps, as in training
  SampleUnit unit = {};                 // that it counts
  Seconds repeated_input{0};            // a whole step on a batch in memory
  Seconds communication{0};             // the allreduce of all gradients, alone
  Seconds alone{0};                     // a step of rank 0 without communication while the others wait
  double gradient_bytes = 0;            // of a step, as they are sent
  std::vector<RankFigures> ranks = {};  // in rank order, at least one

  struct Gap {
    Seconds input, exposed, stragglers;
  };

  double scaling_efficiency() const;  // of as many ranks as each is fast alone
  double input_share() const;         // of a step
  Seconds compute() const;            // of the median rank
  Seconds bound() const;
  Gap gap() const;
  std::string reason() const;  // the largest part of the gap

  Json to_json() const;
  std::vector<std::string> lines() const;  // for people

 private:
  std::size_t slowest() const;
  double largest(double RankFigures::*what) const;
};

}  // namespace dlrun::runtime
