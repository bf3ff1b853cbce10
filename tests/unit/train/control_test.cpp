#include "runtime/train/control.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/train/stop_request.hpp"
#include "src/base/json.hpp"
#include "tests/unit/data/support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

// An agent's end of the control socket.
struct Agent : Folder {
  std::string name = (path / "control").string();
  UniqueFd listener{::socket(AF_UNIX, SOCK_STREAM, 0)};
  UniqueFd rank;

  Agent() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener.get(), 8) == 0);
  }
  void accept() { rank.reset(::accept(listener.get(), nullptr, nullptr)); }
  std::string hear() const {
    std::string out(1 << 20, '\0');
    const ssize_t got = ::recv(rank.get(), out.data(), out.size(), 0);
    out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return out;
  }
  void say(std::string_view text) const {
    REQUIRE(::send(rank.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  }
};

}  // namespace

TEST_CASE("a rank says who it is, then what it does") {
  Agent agent;
  ControlChannel channel = ControlChannel::open(agent.name, 3);
  agent.accept();
  CHECK(agent.hear() == "{\"rank\":3}\n");
  channel.send(Json{{"saved", 50}, {"seconds", 0.5}}, ControlChannel::Importance::kept);
  CHECK(agent.hear() == "{\"saved\":50,\"seconds\":0.5}\n");
}

TEST_CASE("requests are heard whole, also when they come in pieces") {
  Agent agent;
  ControlChannel channel = ControlChannel::open(agent.name, 0);
  agent.accept();
  CHECK_FALSE(channel.poll().save);
  agent.say("{\"checkpoint\":");
  CHECK_FALSE(channel.poll().save);
  agent.say("\"now\"}\n");
  const Requests save = channel.poll();
  CHECK(save.save);
  CHECK_FALSE(save.stop);
  agent.say("{\"checkpoint\":\"now\",\"stop\":true}\n");
  CHECK(channel.poll().stop);
  agent.say("nonsense\n[1]\n{\"other\":1}\n");
  const Requests none = channel.poll();
  CHECK_FALSE((none.save || none.stop));
}

TEST_CASE("an agent that does not read never makes training wait: progress is dropped, results are kept") {
  Agent agent;
  ControlChannel channel = ControlChannel::open(agent.name, 0);
  agent.accept();
  for (int i = 0; i < 20000; ++i)
    channel.send(Json{{"step", i}, {"filler", std::string(50, 'x')}}, ControlChannel::Importance::progress);
  channel.send(Json{{"result", 1}}, ControlChannel::Importance::kept);
  std::string heard;
  while (heard.find("{\"result\":1}\n") == std::string::npos) {
    heard += agent.hear();
    channel.flush(Seconds(0));
  }
  CHECK(heard.find("{\"step\":0,") != std::string::npos);
  CHECK(heard.find("{\"step\":19999,") == std::string::npos);
}

TEST_CASE("a request file says stop, go on, or a line of the control channel") {
  CHECK(read_request_file("").stop);
  CHECK(read_request_file("stop\n").stop);
  const Requests go_on = read_request_file("go on\n");
  CHECK(go_on.save);
  CHECK_FALSE(go_on.stop);
  CHECK(read_request_file("{\"checkpoint\": \"now\"}\n").save);
  CHECK(read_request_file("{\"checkpoint\": \"now\", \"stop\": true}\n").stop);
}

TEST_CASE("no agent, and an agent that is gone, are no errors") {
  ControlChannel nobody = ControlChannel::open("", 0);
  CHECK_FALSE(nobody.connected());
  nobody.send(Json{{"step", 1}}, ControlChannel::Importance::kept);
  CHECK_FALSE(ControlChannel::open("/no/such/socket", 0).connected());
  Agent agent;
  ControlChannel channel = ControlChannel::open(agent.name, 0);
  agent.accept();
  agent.rank.reset();
  for (int i = 0; i < 10; ++i) channel.send(Json{{"step", i}}, ControlChannel::Importance::kept);
  const Requests after = channel.poll();
  CHECK_FALSE((after.save || after.stop));
  CHECK_FALSE(channel.connected());
}
