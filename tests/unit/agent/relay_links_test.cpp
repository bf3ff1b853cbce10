#include "src/agent/relay_links.hpp"

#include <algorithm>

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::agent;

namespace {

constexpr NodeIndex kParent(0), kChild(1);

// One agent's links, and what they told.
struct Side {
  Side(EventLoop& loop, std::optional<Token> own)
      : links(
            loop, std::move(own), [this](Event event) { told.push_back(std::move(event)); },
            [this] { ++drained; }) {}

  template <class Kind>
  std::vector<Kind> all() const {
    std::vector<Kind> out;
    for (const Event& event : told)
      if (const auto* one = std::get_if<Kind>(&event)) out.push_back(*one);
    return out;
  }

  std::vector<Event> told;
  int drained = 0;
  RelayLinks links;
};

struct Link {
  EventLoop loop;
  Side parent;
  std::unique_ptr<Side> child;

  explicit Link(std::optional<Token> of_parent = {}, std::optional<Token> of_child = {})
      : parent(loop, std::move(of_parent)), child(std::make_unique<Side>(loop, std::move(of_child))) {}

  template <class Done>
  void until(Done done) {
    while (!done()) REQUIRE(loop.turn().has_value());
  }

  // The child's answer to its attempt to join, with these tokens as the head tells them.
  Result<void> join(const std::string& parents, const std::string& childs, NodeIndex own = kChild) {
    parent.links.perform(action::OpenRelay{parents, {kChild, NodeIndex(2)}});
    const auto opened = parent.all<event::RelayOpened>();
    REQUIRE(opened.size() == 1);
    REQUIRE(opened[0].port.has_value());
    child->links.perform(action::JoinParent{.token = childs,
                                            .own = own,
                                            .parent = kParent,
                                            .addresses = {"127.0.0.1"},
                                            .port = opened[0].port->port});
    until([this] { return !child->all<event::ParentJoined>().empty(); });
    return child->all<event::ParentJoined>()[0].joined;
  }
};

action::AllgatheredPtr result_of(std::string key, std::vector<std::string> blobs) {
  return std::make_shared<const protocol::to_agent::Allgathered>(
      protocol::to_agent::Allgathered{std::move(key), std::move(blobs)});
}

}  // namespace

TEST_CASE("what a child gives goes up, and the result comes down, also when it is large") {
  const std::string token = Token::random().text();
  Link link;
  REQUIRE(link.join(token, token).has_value());
  const std::string large(16 << 20, 'x');  // more than the sockets' buffers take
  link.child->links.perform(action::SendToParent{{"fence", {kChild}, {large}}});
  link.until([&] { return !link.parent.all<event::ChildSaid>().empty(); });
  const auto said = link.parent.all<event::ChildSaid>();
  CHECK(said[0].child == kChild);
  CHECK(said[0].message.key == "fence");
  CHECK(said[0].message.nodes == std::vector{kChild});
  CHECK(said[0].message.blobs == std::vector{large});
  // Node 2 has not called: it gets nothing over this way.
  link.parent.links.perform(action::SendToChildren{{kChild, NodeIndex(2)}, result_of("fence", {"a", large})});
  CHECK(link.parent.links.queued() > 0);
  link.until([&] { return !link.child->all<event::ParentSaid>().empty(); });
  CHECK(link.child->all<event::ParentSaid>()[0].message.blobs == std::vector<std::string>{"a", large});
  CHECK(link.parent.links.queued() == 0);
  CHECK(link.parent.drained > 0);
  CHECK(link.child->links.parent_unacknowledged() == Seconds(0));
}

TEST_CASE("agents that have the run's token need no other") {
  const Token token = Token::random();
  Link link(token, token);
  CHECK(link.join("", "").has_value());
}

TEST_CASE("who has another token does not get in, and says whom it could not reach") {
  Link link(Token::random(), Token::random());
  const auto joined = link.join("", "");
  REQUIRE_FALSE(joined.has_value());
  CHECK(joined.error().what.starts_with("the agent of node 0 does not answer at port "));
  CHECK(joined.error().also == std::vector<std::string>{"127.0.0.1: it hung up"});
}

TEST_CASE("without any token there is no tree") {
  Link link;
  link.parent.links.perform(action::OpenRelay{"", {kChild}});
  CHECK_FALSE(link.parent.all<event::RelayOpened>()[0].port.has_value());
}

TEST_CASE("a caller that is no child is cut off") {
  const std::string token = Token::random().text();
  Link link;
  REQUIRE(link.join(token, token, NodeIndex(7)).has_value());  // it has the token
  link.until([&] { return !link.child->all<event::ParentLost>().empty(); });
  link.child->links.perform(action::SendToParent{{"fence", {NodeIndex(7)}, {"x"}}});
  CHECK(link.parent.all<event::ChildSaid>().empty());
}

TEST_CASE("an agent that goes is lost to those below it") {
  const std::string token = Token::random().text();
  Link link;
  REQUIRE(link.join(token, token).has_value());
  link.child->links.perform(action::SendToParent{{"fence", {kChild}, {"x"}}});
  link.until([&] { return !link.parent.all<event::ChildSaid>().empty(); });
  link.child.reset();
  link.until([&] { return link.parent.drained > 0; });  // nothing waits to be sent to it any more
  CHECK(link.parent.links.queued() == 0);
}
