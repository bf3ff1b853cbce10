// OpenMetrics: a run's status as a text file of metrics, which Prometheus' node exporter and other collectors
// take from a directory. Pure. All metrics are gauges without a time of their own, so that the file is right
// both in OpenMetrics and in the older text form of the node exporter. What is not known has no line.
#pragma once

#include <string>

#include "src/record/head_status.hpp"

namespace dlrun::job {

/// The text of a metrics file. Each line names the run by its label `run`, as one directory may hold many.
/// Format: https://github.com/prometheus/OpenMetrics, version 1.0.
std::string openmetrics_text(const HeadStatus& status);

}  // namespace dlrun::job
