// The row of Flux in the table of schedulers, and its resource set R as an allocation: what the backend asks
// for, and what --allocation FILE may hold.
#pragma once

#include <memory>
#include <string_view>

#include "schedulers/scheduler.hpp"

namespace dlrun {

Scheduler flux_scheduler();
std::unique_ptr<Submission> make_flux_submission();

bool is_flux_r(const Json& json);
Result<Allocation> flux_allocation(const Json& r, std::string_view where);

}  // namespace dlrun
