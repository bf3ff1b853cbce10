// FoundProvenance: what the agents find out about nodes and about rank 0's program, and what that program
// says of its data. Pure. Nodes that are equal are told once, with their names: a run of thousands of nodes
// has a record that can be read.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "src/base/json.hpp"

namespace dlrun::job {

class FoundProvenance {
 public:
  /// An agent's answer, {"node": .., "program": ..}; a later one of a host replaces it. The event that tells
  /// it, where it is new.
  std::optional<Json> take(const std::string& host, const Json& found);
  /// What rank 0 reports as {"data": ..}: a fingerprint, a number of samples.
  std::optional<Json> take_data(const Json& data);

  /// {"nodes": [{"hosts": "n[1-4]", "cpus": .., ..}], "program": {..}, "data": ..}; null: not told.
  Json all() const;

 private:
  std::map<std::string, std::string> node_of_host_;  // the facts as text
  std::map<std::string, Json> nodes_;                // the facts by their text
  Json program_, data_;
};

}  // namespace dlrun::job
