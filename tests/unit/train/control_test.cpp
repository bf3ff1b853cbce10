#include "runtime/train/control.hpp"

#include <doctest/doctest.h>

#include "runtime/train/stop_request.hpp"
#include "src/base/json.hpp"
#include "tests/unit/train/fake_agent.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

TEST_CASE("a rank says who it is, then what it does") {
  FakeAgent agent;
  ControlChannel channel = ControlChannel::open(agent.name, 3);
  agent.accept();
  CHECK(agent.hear() == "{\"rank\":3}\n");
  channel.send(Json{{"saved", 50}, {"seconds", 0.5}}, ControlChannel::Importance::kept);
  CHECK(agent.hear() == "{\"saved\":50,\"seconds\":0.5}\n");
}

TEST_CASE("requests are heard whole, also when they come in pieces") {
  FakeAgent agent;
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
  FakeAgent agent;
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
  FakeAgent agent;
  ControlChannel channel = ControlChannel::open(agent.name, 0);
  agent.accept();
  agent.rank.reset();
  for (int i = 0; i < 10; ++i) channel.send(Json{{"step", i}}, ControlChannel::Importance::kept);
  const Requests after = channel.poll();
  CHECK_FALSE((after.save || after.stop));
  CHECK_FALSE(channel.connected());
}
