#include "src/protocol/handshake.hpp"

#include "src/base/json.hpp"
#include "src/base/strings.hpp"

namespace dlrun {
namespace {

constexpr std::string_view kGreeting = "dlrun-agent-1 ";

// Different words before them, so that one side's proof can never be played back as the other's.
std::string agents_claim(std::string_view heads, std::string_view agents, const Json& identity) {
  return fmt::format("agent {} {} {}", heads, agents, to_text(identity));
}
std::string heads_claim(std::string_view heads, std::string_view agents) {
  return fmt::format("head {} {}", heads, agents);
}

Json to_json(const AgentIdentity& identity) {
  Json out{{"names", identity.names}, {"addresses", identity.addresses}, {"task", nullptr}};
  if (identity.task) out["task"] = *identity.task;
  return out;
}

std::optional<AgentIdentity> identity_from_json(const Json& json) {
  AgentIdentity out;
  const auto names = field<std::vector<std::string>>(json, "names", "card");
  const auto addresses = field<std::vector<std::string>>(json, "addresses", "card");
  if (!names || !addresses) return std::nullopt;
  out.names = *names;
  out.addresses = *addresses;
  if (const auto task = field<int>(json, "task", "card")) out.task = *task;
  return out;
}

}  // namespace

std::string HeadHandshake::greeting() const {
  return fmt::format("{}{}\n", kGreeting, challenge_);
}

std::optional<AgentIdentity> HeadHandshake::check(std::string_view line) {
  const auto answer = parse_json(std::string(line), "handshake");
  if (!answer || !answer->is_object()) return std::nullopt;
  const auto challenge = field<std::string>(*answer, "challenge", "handshake");
  const auto proof = field<std::string>(*answer, "proof", "handshake");
  const auto identity = field<Json>(*answer, "card", "handshake");
  if (!challenge || !proof || !identity || !identity->is_object()) return std::nullopt;
  if (!token_.is_proof(agents_claim(challenge_, *challenge, *identity), *proof)) return std::nullopt;
  receipt_ = token_.proof(heads_claim(challenge_, *challenge)) + "\n";
  return identity_from_json(*identity);
}

Result<std::string> AgentHandshake::answer(std::string_view greeting) {
  const std::string_view line = trim(greeting);
  if (!line.starts_with(kGreeting))
    return fail(ErrorKind::unavailable, "no dlrun head of this version answers there: '{}'",
                line.substr(0, 40));
  greeted_with_ = line.substr(kGreeting.size());
  const Json identity = to_json(identity_);
  return to_text({{"card", identity},
                  {"challenge", challenge_},
                  {"proof", token_.proof(agents_claim(greeted_with_, challenge_, identity))}}) +
         "\n";
}

bool AgentHandshake::is_receipt(std::string_view line) const {
  return token_.is_proof(heads_claim(greeted_with_, challenge_), trim(line));
}

}  // namespace dlrun
