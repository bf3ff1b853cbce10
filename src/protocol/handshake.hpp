// Handshake: how an agent that called back over TCP and its head prove themselves to each other. Pure: the
// three lines, made and checked. An agent's identity (what it calls itself) is part of what it proves.
//
//   head:   dlrun-agent-1 CHALLENGE
//   agent:  {"card": {...}, "challenge": ..., "proof": ...}
//   head:   PROOF                     and from then on frames (message_stream.hpp)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_fwd.hpp"
#include "src/base/token.hpp"

namespace dlrun {

constexpr std::size_t kMaxHandshakeLine = 8192;

// What an agent says of itself: the head finds its node by it.
struct AgentIdentity {
  std::vector<std::string> names;      // best first
  std::vector<std::string> addresses;  // of its interfaces
  std::optional<int> task;             // its number among the engine's tasks, where the engine tells
};

class HeadHandshake {
 public:
  explicit HeadHandshake(const Token& token) : token_(token), challenge_(random_challenge()) {}
  std::string greeting() const;  // with its newline, as are all
  // The identity of an agent that proved itself, and sets receipt(); nothing for whatever else is calling.
  std::optional<AgentIdentity> check(std::string_view line);
  const std::string& receipt() const { return receipt_; }

 private:
  const Token& token_;
  std::string challenge_, receipt_;
};

class AgentHandshake {
 public:
  AgentHandshake(const Token& token, AgentIdentity identity)
      : token_(token), identity_(std::move(identity)), challenge_(random_challenge()) {}
  // The answer to a greeting; an Error where no dlrun head of this version sent it.
  Result<std::string> answer(std::string_view greeting);
  bool is_receipt(std::string_view line) const;

 private:
  const Token& token_;
  AgentIdentity identity_;
  std::string challenge_, greeted_with_;
};

}  // namespace dlrun
