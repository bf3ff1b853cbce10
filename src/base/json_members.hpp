// The members of one JSON object while it grows. A Json object keeps its keys as they were written and
// compares a new one with all before it: minutes for 100,000. This finds it in an index, and makes the same
// object. Nobody else may add to the object, or move it, meanwhile.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "src/base/json_fwd.hpp"

namespace dlrun {

class JsonMembers {
 public:
  explicit JsonMembers(Json& object);  // null becomes an object

  // What object[key] gives: null where the key is new. Valid until the next key.
  Json& operator[](const std::string& key);

 private:
  Json* object_;
  std::unordered_multimap<std::size_t, std::size_t> places_;  // by the key's hash; empty while there are few
};

}  // namespace dlrun
