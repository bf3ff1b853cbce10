#include "src/base/token.hpp"

#include <sodium.h>

#include "src/base/strings.hpp"

namespace dlrun {
namespace {

static_assert(crypto_auth_hmacsha256_KEYBYTES == 32);
using Proof = std::array<unsigned char, crypto_auth_hmacsha256_BYTES>;

template <std::size_t N>
std::string hex_of(const std::array<unsigned char, N>& bytes) {
  std::array<char, 2 * N + 1> text{};
  ::sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  return text.data();
}

// False unless `hex` is exactly N bytes.
template <std::size_t N>
bool read_hex(std::string_view hex, std::array<unsigned char, N>& bytes) {
  std::size_t length = 0;
  return hex.size() == 2 * N &&
         ::sodium_hex2bin(bytes.data(), N, hex.data(), hex.size(), nullptr, &length, nullptr) == 0 &&
         length == N;
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

Token Token::random() {
  Token out;
  ::randombytes_buf(out.key_.data(), out.key_.size());
  return out;
}

Result<Token> Token::parse(std::string_view hex) {
  Token out;
  if (!read_hex(hex, out.key_)) return fail(ErrorKind::input, "this is not a token of dlrun (64 hex digits)");
  return out;
}

std::string Token::text() const {
  return hex_of(key_);
}

Token Token::derived(std::string_view purpose) const {
  Token out;
  static_assert(sizeof out.key_ == crypto_auth_hmacsha256_BYTES);
  ::crypto_auth_hmacsha256(out.key_.data(), bytes_of(purpose), purpose.size(), key_.data());
  return out;
}

std::string Token::proof(std::string_view message) const {
  Proof out{};
  ::crypto_auth_hmacsha256(out.data(), bytes_of(message), message.size(), key_.data());
  return hex_of(out);
}

bool Token::is_proof(std::string_view message, std::string_view proof) const {
  Proof given{};
  return read_hex(proof, given) &&
         ::crypto_auth_hmacsha256_verify(given.data(), bytes_of(message), message.size(), key_.data()) == 0;
}

std::string random_challenge() {
  std::array<unsigned char, 32> bytes{};
  ::randombytes_buf(bytes.data(), bytes.size());
  return hex_of(bytes);
}

}  // namespace dlrun
