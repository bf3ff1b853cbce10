#include "src/agent/node_environment.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

namespace {
Environment env(const std::vector<std::string>& entries) {
  return Environment::from_entries(entries);
}
}  // namespace

TEST_CASE("what the job script has exported counts on every node") {
  const Environment out =
      agent::merge_node_environment(env({"LD_LIBRARY_PATH=/opt/lib", "BASH_FUNC_module%%=() {  eval\n}"}),
                                    env({"LD_LIBRARY_PATH=/usr/lib", "LANG=C"}));
  CHECK(out.get("LD_LIBRARY_PATH") == "/opt/lib");
  CHECK(out.get("BASH_FUNC_module%%") == "() {  eval\n}");
  // The node's own shell files are not the job's environment.
  CHECK_FALSE(out.find("LANG").has_value());
}

TEST_CASE("who a node is and what it has is its own word, also where it says nothing") {
  const Environment out = agent::merge_node_environment(
      env({"HOSTNAME=n1", "CUDA_VISIBLE_DEVICES=0,1", "SSH_CONNECTION=a b", "TMPDIR=/local/7"}),
      env({"HOSTNAME=n2", "CUDA_VISIBLE_DEVICES=4,5", "XDG_RUNTIME_DIR=/run/user/7"}));
  CHECK(out == env({"HOSTNAME=n2", "CUDA_VISIBLE_DEVICES=4,5", "XDG_RUNTIME_DIR=/run/user/7"}));
}
