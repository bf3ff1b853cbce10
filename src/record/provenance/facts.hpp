// What the machine of the head tells of a job for its record: one fact is one row of the table in facts.cpp
// and one file. Asked once the ranks have ended; what cannot be told is null.
#pragma once

#include <span>
#include <string_view>

#include "src/base/environment.hpp"
#include "src/base/json.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::job {

struct HeadFact {
  std::string_view name;
  Json (*find)(const plan::Plan& plan, const plan::JobSpec& spec, const Environment& environment);
};
std::span<const HeadFact> head_facts();

Json find_git_state(const plan::Plan& plan, const plan::JobSpec& spec, const Environment& environment);
Json find_container_image(const plan::Plan& plan, const plan::JobSpec& spec, const Environment& environment);

}  // namespace dlrun::job
