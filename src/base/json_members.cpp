#include "src/base/json_members.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

#include "src/base/json.hpp"

namespace dlrun {
namespace {

constexpr std::size_t kFewMembers = 16;  // a linear search is as fast as a map

// A vector does not move pairs with const keys: an object that grows by itself copies everything below it.
void reserve_one(Json::object_t& members) {
  if (members.size() < members.capacity()) return;
  Json::object_t larger;
  larger.reserve(std::max<std::size_t>(4, 2 * members.size()));
  for (auto& [key, value] : members) larger.emplace_back(key, std::move(value));
  members.swap(larger);
}

}  // namespace

JsonMembers::JsonMembers(Json& object) : object_(&object) {
  if (object.is_null()) object = Json::object();
}

Json& JsonMembers::operator[](const std::string& key) {
  auto& members = object_->get_ref<Json::object_t&>();
  reserve_one(members);
  if (members.size() < kFewMembers) return members[key];
  const auto member = [&](std::size_t place) {
    return std::next(members.begin(), static_cast<std::ptrdiff_t>(place));
  };
  const std::hash<std::string> hash_of;
  for (std::size_t i = places_.size(); i < members.size(); ++i) places_.emplace(hash_of(member(i)->first), i);
  const std::size_t hash = hash_of(key);
  const auto [first, last] = places_.equal_range(hash);
  for (auto place = first; place != last; ++place)
    if (member(place->second)->first == key) return member(place->second)->second;
  places_.emplace(hash, members.size());
  members.emplace_back(key, Json());
  return members.back().second;
}

}  // namespace dlrun
