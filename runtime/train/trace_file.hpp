// TraceFile: the trace of one rank as a file that Perfetto and chrome://tracing show, on a time axis that all
// ranks share. A process of the file is a rank, its threads are the tracks.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/trace.hpp"
#include "runtime/comm/communicator.hpp"
#include "src/base/json_fwd.hpp"

namespace dlrun::runtime {

/// How far this rank's clock is behind rank 0's, and how wrong that may be.
struct ClockOffset {
  Seconds offset{0}, error{0};
};

/// Asks rank 0 for its time, ten times, and believes the quickest answer (D. L. Mills, RFC 5905, section 8).
/// All ranks call it.
Result<ClockOffset> clock_offset(Communicator& comm);

struct TraceOwner {
  int rank = 0;
  std::string host;
  ClockOffset clock;
};

/// In the Trace Event Format: complete events, times in microseconds of rank 0's clock.
Json trace_json(const std::vector<Trace::Span>& spans, const TraceOwner& owner);

}  // namespace dlrun::runtime
