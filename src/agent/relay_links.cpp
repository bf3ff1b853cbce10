#include "src/agent/relay_links.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "schedulers/node_identity.hpp"
#include "src/process/socket_option.hpp"
#include "src/protocol/call_agent_port.hpp"
#include "src/protocol/codec.hpp"
#include "src/protocol/tcp_acknowledgement.hpp"

namespace dlrun::agent {
namespace {

constexpr Seconds kJoinTimeout{3};  // it listens already: who does not answer at once is behind a firewall
constexpr int kIdleSeconds = 10, kProbeSeconds = 5, kProbes = 3;

// One that only waits for a result sends nothing: the kernel asks whether the other machine is there.
void keep_alive(int fd) {
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

Error malformed(const std::string& from, const Error& error) {
  Error out = error;
  out.where = "from the agent " + from;
  return out;
}

}  // namespace

// The run's own is for its head: the tree's is derived from it, so that no proof is worth anything there.
Result<Token> RelayLinks::token_of(const std::string& told) const {
  if (!told.empty()) return Token::parse(told);
  if (!own_) return fail(ErrorKind::internal, "the head tells no token for the relay tree");
  return own_->derived("relay");
}

// The children.

void RelayLinks::perform(const action::OpenRelay& open) {
  tell_(event::RelayOpened{this->open(open)});
}

Result<protocol::from_agent::RelayPort> RelayLinks::open(const action::OpenRelay& open) {
  token_ = TRY(token_of(open.token));
  expected_ = {open.children.begin(), open.children.end()};
  port_ = TRY(AgentPort::open(loop_, *token_, [this](const AgentIdentity& identity, UniqueFd connection) {
    on_child(identity, std::move(connection));
  }));
  return protocol::from_agent::RelayPort{port_->port().get(), this_machine().addresses};
}

void RelayLinks::on_child(const AgentIdentity& identity, UniqueFd connection) {
  if (!identity.task) return;
  const NodeIndex child(*identity.task);
  if (expected_.erase(child) == 0) return;
  keep_alive(connection.get());
  children_[child] = std::make_unique<MessageStream>(
      loop_, std::move(connection), UniqueFd(),
      MessageStream::Handlers{
          .message = [this, child](Message message) { on_child_message(child, std::move(message)); },
          .closed = [this](const std::string&) { drained_(); },  // it says itself what it lacks
          .drained = drained_});
}

void RelayLinks::on_child_message(NodeIndex child, Message message) {
  auto decoded = protocol::decode_from_agent(std::move(message));
  if (!decoded)
    return tell_(event::RelayMalformed{malformed(fmt::format("of node {}", child), decoded.error())});
  if (auto* part = std::get_if<protocol::from_agent::SubtreeAllgather>(&*decoded))
    return tell_(event::ChildSaid{child, std::move(*part)});
  tell_(event::RelayMalformed{{.kind = ErrorKind::internal,
                               .what = fmt::format("message '{}' of the agent of node {} is not for agents",
                                                   protocol::name_of(*decoded), child)}});
}

void RelayLinks::perform(const action::SendToChildren& send) {
  const auto bytes =
      std::make_shared<const std::string>(encode(protocol::encode(protocol::ToAgent(*send.all))));
  for (const NodeIndex child : send.children)
    if (const auto found = children_.find(child); found != children_.end()) found->second->send(bytes);
}

// The agent above. The call may wait for a name server or a firewall: beside the loop.

void RelayLinks::perform(const action::JoinParent& join) {
  auto token = token_of(join.token);
  if (!token) return tell_(event::ParentJoined{fail(token.error())});
  const AgentIdentity identity{
      .names = {fmt::format("node {}", join.own)}, .addresses = {}, .task = join.own.get()};
  const Port port(static_cast<std::uint16_t>(join.port));
  joining_ = std::make_unique<Aside<Result<UniqueFd>>>(
      loop_,
      [parent = fmt::format("the agent of node {}", join.parent), addresses = join.addresses, port,
       token = *token,
       identity] { return call_agent_port(parent, addresses, port, token, identity, kJoinTimeout); },
      [this](Result<UniqueFd> connection) { on_parent(std::move(connection)); });
}

void RelayLinks::on_parent(Result<UniqueFd> connection) {
  if (!connection) return tell_(event::ParentJoined{fail(std::move(connection).error())});
  parent_fd_ = connection->get();
  keep_alive(parent_fd_);
  parent_ = std::make_unique<MessageStream>(
      loop_, std::move(*connection), UniqueFd(),
      MessageStream::Handlers{.message = [this](Message message) { on_parent_message(std::move(message)); },
                              .closed =
                                  [this](const std::string& reason) {
                                    parent_fd_ = -1;
                                    tell_(event::ParentLost{reason});
                                    drained_();
                                  },
                              .drained = drained_});
  tell_(event::ParentJoined{});
}

void RelayLinks::on_parent_message(Message message) {
  auto decoded = protocol::decode_to_agent(std::move(message));
  if (!decoded) return tell_(event::RelayMalformed{malformed("above", decoded.error())});
  if (auto* all = std::get_if<protocol::to_agent::Allgathered>(&*decoded))
    return tell_(event::ParentSaid{std::move(*all)});
  tell_(event::RelayMalformed{{.kind = ErrorKind::internal,
                               .what = fmt::format("message '{}' of the agent above is not for agents",
                                                   protocol::name_of(*decoded))}});
}

void RelayLinks::perform(const action::SendToParent& send) {
  if (parent_) parent_->send(protocol::encode(protocol::FromAgent(send.part)));
}

std::size_t RelayLinks::queued() const {
  std::size_t out = parent_ ? parent_->queued() : 0;
  for (const auto& [child, stream] : children_) out += stream->queued();
  return out;
}

Seconds RelayLinks::parent_unacknowledged() const {
  return parent_fd_ < 0 ? Seconds(0) : unacknowledged_for(parent_fd_);
}

}  // namespace dlrun::agent
