// Names: what may name a job, a role or a framework, and which variables are dlrun's own. A name goes into
// paths, scripts and tables, so that it has no special characters of any of them.
#pragma once

#include <string>
#include <string_view>

namespace dlrun::plan {

// `text` as a name: other characters become '-', and it starts with a letter or digit. Empty where nothing of
// it can stay. A good name is one that this leaves as it is.
std::string as_job_name(std::string_view text);

// True for the variables that dlrun itself sets for every rank, which neither job files nor adapters can set.
bool is_reserved_variable(std::string_view name);

}  // namespace dlrun::plan
