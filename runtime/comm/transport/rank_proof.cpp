// See rank_proof.hpp.
#include "runtime/comm/transport/rank_proof.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace dlrun::runtime {
namespace {

constexpr std::array<char, 16> kProtocol{'d', 'l', 'r', 'u', 'n', '-', 'r', 'a', 'n', 'k', '-', '1'};

template <std::size_t N>
std::array<char, N> chars_of(std::string_view text) {
  std::array<char, N> out{};
  std::memcpy(out.data(), text.data(), std::min(text.size(), N));
  return out;
}
template <std::size_t N>
std::string_view whole(const std::array<char, N>& chars) {
  return {chars.data(), N};
}

// Different words before them, so that one side's proof is never the other's.
std::string callers_claim(const RankGreeting& greeting, const RankAnswer& answer) {
  return fmt::format("rank {} {} {} {}", whole(greeting.challenge), whole(answer.challenge), answer.rank,
                     whole(answer.host));
}
std::string ports_claim(const RankGreeting& greeting, const RankAnswer& answer, const HostText& host) {
  return fmt::format("port {} {} {}", whole(greeting.challenge), whole(answer.challenge), whole(host));
}

// With a NUL at its end.
HostText host_text(const std::string& host) {
  return chars_of<sizeof(HostText)>(std::string_view(host).substr(0, sizeof(HostText) - 1));
}

}  // namespace

std::string text_of(const HostText& host) {
  return {host.data(), ::strnlen(host.data(), host.size())};
}

PortProof::PortProof(const Token& token) : token_(token) {
  greeting_ = {kProtocol, chars_of<sizeof(HexNumber)>(random_challenge())};
}

std::optional<RankReceipt> PortProof::check(const RankAnswer& answer, const std::string& own_host) const {
  if (!token_.is_proof(callers_claim(greeting_, answer), whole(answer.proof))) return std::nullopt;
  const HostText host = host_text(own_host);
  return RankReceipt{chars_of<sizeof(HexNumber)>(token_.proof(ports_claim(greeting_, answer, host))), host};
}

CallerProof::CallerProof(const Token& token, int rank, const std::string& host) : token_(token) {
  answer_.challenge = chars_of<sizeof(HexNumber)>(random_challenge());
  answer_.rank = rank;
  answer_.host = host_text(host);
}

std::optional<RankAnswer> CallerProof::answer(const RankGreeting& greeting) {
  if (greeting.protocol != kProtocol) return std::nullopt;
  greeting_ = greeting;
  answer_.proof = chars_of<sizeof(HexNumber)>(token_.proof(callers_claim(greeting_, answer_)));
  return answer_;
}

bool CallerProof::is_sound(const RankReceipt& receipt) const {
  return token_.is_proof(ports_claim(greeting_, answer_, receipt.host), whole(receipt.proof));
}

}  // namespace dlrun::runtime
