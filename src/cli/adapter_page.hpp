// What one adapter sets, for people: roles, variables, the command line, what it needs. It only writes down
// what the adapter says; nothing is planned.
#pragma once

#include <string>

#include "src/base/json_fwd.hpp"

namespace dlrun::cli {

/// Writes the page of an adapter; `adapter` is the result of to_json(Adapter).
std::string adapter_page(const Json& adapter);

}  // namespace dlrun::cli
