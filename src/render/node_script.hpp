// The script of one node: readable bash that runs the node's part of a plan by hand, and whose prolog the
// agent sources (`source SCRIPT prolog`). It only writes down what the plan
// says.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/base/json.hpp"
#include "src/base/result.hpp"
#include "src/plan/plan.hpp"
#include "src/render/template.hpp"

namespace dlrun::render {

// Reads templates/node.sh.tmpl below the installed data.
Result<Template> load_node_template(const std::filesystem::path& data);

// Renders the scripts of one plan. What all nodes share is built once: a job of thousands of nodes has
// thousands of scripts. Plan and template must outlive it.
class NodeScripts {
 public:
  NodeScripts(const plan::Plan& plan, const Template& script);

  Result<std::string> render(NodeIndex node) const;
  // Looks up every name of the template, whatever branch it is in; the plan must use everything once.
  Result<void> check() const;

 private:
  Json of_node(NodeIndex node) const;

  const plan::Plan& plan_;
  const Template& script_;
  std::vector<std::vector<const plan::RankPlan*>> ranks_;  // a node
  Json shared_;
};

// The script of one node alone.
Result<std::string> render_node_script(const plan::Plan& plan, NodeIndex node, const Template& script);

}  // namespace dlrun::render
