// Config layers: defaults < preset of a machine < site file < user file < job file < flags, as one tree in
// which every leaf knows where it came from. Nothing is read or checked here; read_job_spec() does the
// checking of the result.
#pragma once

#include <string>
#include <vector>

#include "src/base/result.hpp"
#include "src/base/yaml.hpp"

namespace dlrun::plan {

// The lowest layer: every default that has a value of its own.
yaml::Node default_layer();
// Where its values come from, as plan --explain says it.
inline constexpr const char* kDefaultSource = "default";

// Later layers win. A layer that is no map is an Error (an empty file is an empty map).
Result<yaml::Node> merge_layers(std::vector<yaml::Node> layers);

// One flag's value: parsed as YAML (--set train.epochs=3), or taken as it is (--name 007).
struct Override {
  enum class Reading { yaml, text };
  std::string path;    // "resources.nodes"
  std::string value;   // "2"
  std::string source;  // "--nodes"
  Reading reading = Reading::yaml;
};
Result<void> apply_override(yaml::Node& tree, const Override& override);

// The source of the words after "--".
inline constexpr const char* kCommandLine = "the command line";
// Words after "--" on the command line: the command where the tree has none, else its last arguments.
Result<void> append_words(yaml::Node& tree, const std::vector<std::string>& words, const std::string& source);

// The merged tree for people: each leaf with where it came from.
struct Explained {
  std::string path;    // "train.optimizer.lr", "command[1]"
  std::string value;   // as YAML would write it on one line
  std::string source;  // "job.yaml:4:9", "--nodes", "default"
};
std::vector<Explained> explain(const yaml::Node& tree);

}  // namespace dlrun::plan
