// The script of one node: readable bash that runs the node's part of a plan by hand, and whose prelude the
// agent sources (`source SCRIPT prelude`). It only writes down what the plan
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

// The ranks of every node, found once: a script a node that each went through all ranks would take quadratic
// time.
using RanksByNode = std::vector<std::vector<const plan::RankPlan*>>;
RanksByNode ranks_by_node(const plan::Plan& plan);

Result<std::string> render_node_script(const plan::Plan& plan, NodeIndex node, const RanksByNode& ranks,
                                       const Template& script);
// The same for one node alone.
Result<std::string> render_node_script(const plan::Plan& plan, NodeIndex node, const Template& script);

// What the template may name, filled for one node.
Json node_script_context(const plan::Plan& plan, NodeIndex node, const RanksByNode& ranks);

}  // namespace dlrun::render
