// Token: a run's shared secret, by which its head and its agents know each other over TCP. It is never sent:
// each side proves that it has it, over numbers that the other chose (HMAC-SHA-256 of libsodium). It says
// nothing about secrecy of what follows.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "src/base/result.hpp"

namespace dlrun {

class Token {
 public:
  static Token random();
  static Result<Token> parse(std::string_view hex);  // as text() wrote it
  std::string text() const;
  /// Another one that whoever has this one can make; it tells nothing of this one.
  Token derived(std::string_view purpose) const;

  std::string proof(std::string_view message) const;  // hex
  // Takes the same time for every wrong proof.
  bool is_proof(std::string_view message, std::string_view proof) const;

 private:
  std::array<unsigned char, 32> key_{};
};

// A number that nobody can foresee, as hex: what the other side has to prove itself over.
std::string random_challenge();

}  // namespace dlrun
