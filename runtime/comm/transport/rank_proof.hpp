// RankProof: how a rank that connects and the port of another rank prove themselves to each other. Pure: the
// three messages, made and checked, each of a fixed size, so that nobody can send too much. The token is
// never sent: each side proves that it has it over numbers that the other chose, and the rank that connects
// learns that the port is the right one before it sends anything else.
//
//   port:  RankGreeting     rank:  RankAnswer     port:  RankReceipt
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/token.hpp"

namespace dlrun::runtime {

using HexNumber = std::array<char, 64>;
using HostText = std::array<char, 64>;

struct RankGreeting {
  std::array<char, 16> protocol{};
  HexNumber challenge{};
};
struct RankAnswer {
  HexNumber challenge{}, proof{};
  std::int32_t rank = -1;
  HostText host{};
};
struct RankReceipt {
  HexNumber proof{};
  HostText host{};
};

// The proof of the rank that owns the port.
class PortProof {
 public:
  explicit PortProof(const Token& token);
  const RankGreeting& greeting() const { return greeting_; }
  /// Unset if the caller is not a rank of the job.
  std::optional<RankReceipt> check(const RankAnswer& answer, const std::string& own_host) const;

 private:
  Token token_;
  RankGreeting greeting_;
};

// The proof of the rank that connects.
class CallerProof {
 public:
  CallerProof(const Token& token, int rank, const std::string& host);
  /// Unset if the greeting is not that of a rank's port.
  std::optional<RankAnswer> answer(const RankGreeting& greeting);
  bool is_sound(const RankReceipt& receipt) const;

 private:
  Token token_;
  RankGreeting greeting_;
  RankAnswer answer_;
};

std::string text_of(const HostText& host);

}  // namespace dlrun::runtime
