// Checksums of what is staged: XXH3, which is faster than any disk. Not against an attacker: the bytes travel
// between agents that have proved themselves to each other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace dlrun::agent {

class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(std::string_view bytes);
  /// Of all bytes so far.
  std::uint64_t value() const;
  /// The same in 128 bits, as 32 hexadecimal digits.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dlrun::agent
