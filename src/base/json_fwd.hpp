// The name Json without what it can do: for headers that only pass one on. The full header (json.hpp) costs a
// second and a half a translation unit, this one nothing that <map> and <string> have not cost already.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace dlrun {

using Json =
    nlohmann::ordered_json;  // keys keep the order in which they were written: files are read by people

}  // namespace dlrun
