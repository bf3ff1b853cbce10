// FlatMap: a sorted vector of pairs that is used like a std::map. For many small maps that are filled once
// and read often, such as the environment of each of 80,000 ranks: an entry is its key and value, without a
// tree node's pointers and allocation. It has only the members that are used here; C++23's std::flat_map has
// them all. An insertion moves what is behind it, so a large map that changes stays a std::map.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace dlrun {

template <class Key, class Value>
class FlatMap {
 public:
  using key_type = Key;
  using mapped_type = Value;
  using value_type = std::pair<Key, Value>;
  using iterator = typename std::vector<value_type>::iterator;
  using const_iterator = typename std::vector<value_type>::const_iterator;

  FlatMap() = default;
  /// Of two entries with one key the first stays, as in a std::map.
  FlatMap(std::initializer_list<value_type> entries) : FlatMap(entries.begin(), entries.end()) {}
  FlatMap(const std::map<Key, Value>& sorted) : FlatMap(sorted.begin(), sorted.end()) {}
  template <class Iterator>
  FlatMap(Iterator first, Iterator last) {
    for (; first != last; ++first) emplace(first->first, first->second);
  }

  iterator begin() { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

  iterator find(const Key& key) { return is_at(place_of(key), key) ? place_of(key) : end(); }
  const_iterator find(const Key& key) const { return const_cast<FlatMap*>(this)->find(key); }
  bool contains(const Key& key) const { return find(key) != end(); }
  /// Throws std::out_of_range where there is no such key, as std::map does.
  const Value& at(const Key& key) const {
    const auto place = find(key);
    if (place == end()) throw std::out_of_range("FlatMap::at");
    return place->second;
  }

  /// The entry, and whether it is new; a value that is there stays.
  std::pair<iterator, bool> emplace(Key key, Value value) {
    const auto place = place_of(key);
    if (is_at(place, key)) return {place, false};
    return {entries_.emplace(place, std::move(key), std::move(value)), true};
  }
  iterator insert(const_iterator /*hint*/, value_type entry) {
    return emplace(std::move(entry.first), std::move(entry.second)).first;
  }
  Value& operator[](const Key& key) { return emplace(key, Value{}).first->second; }
  /// The other's entries whose keys are not here.
  void merge(FlatMap other) {
    for (auto& [key, value] : other) emplace(std::move(key), std::move(value));
  }
  std::size_t erase(const Key& key) {
    const auto place = find(key);
    if (place == end()) return 0;
    entries_.erase(place);
    return 1;
  }
  template <class Condition>
  void erase_if(Condition condition) {
    std::erase_if(entries_, condition);
  }
  void shrink_to_fit() { entries_.shrink_to_fit(); }

  friend bool operator==(const FlatMap&, const FlatMap&) = default;

 private:
  iterator place_of(const Key& key) {
    return std::lower_bound(entries_.begin(), entries_.end(), key,
                            [](const value_type& entry, const Key& wanted) { return entry.first < wanted; });
  }
  bool is_at(iterator place, const Key& key) { return place != end() && place->first == key; }

  std::vector<value_type> entries_;
};

}  // namespace dlrun
