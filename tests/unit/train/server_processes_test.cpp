// Parameter servers that are ranks of their own: what they bring to the workers is what these would have
// updated by themselves, however the tensors are placed; checkpoints have the servers' state; and with a
// staleness nobody is further ahead than it allows. End to end: tests/e2e/servers_test.py.
#include <doctest/doctest.h>

#include "runtime/train/servers/parameter_server.hpp"
#include "runtime/train/servers/server_settings.hpp"
#include "runtime/train/servers/stale_server.hpp"
#include "tests/unit/train/trainer_job.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

// The fake engine's optimizer.
Job job_of(int world, int servers, int staleness = 0) {
  Job out;
  out.world = world;
  out.servers = servers;
  out.spec.optimizer.optimizer = momentum_sgd(0.9);
  if (servers > 0) out.spec.parameter_server.emplace().staleness = staleness;
  return out;
}

void check_near(const std::vector<float>& got, const std::vector<float>& expected, double epsilon) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(got[i] == doctest::Approx(expected[i]).epsilon(epsilon).scale(0.1));
}

// A worker as its server sees it: one slice of one number, whose gradient is 1.
class Sender {
 public:
  Sender(Transport& link, int server) : link_(link), server_(server) {}

  void order(Order::Kind kind, std::uint32_t wants_barrier = 0) { send(Order{kind, wants_barrier}); }
  void step(std::uint32_t wants_barrier = 0) {
    order(Order::Kind::gradients, wants_barrier);
    send(1.0F);
    send(Numbers{{.learning_rate = 1, .gradient_scale = 1}});
  }
  // The weight tells how many updates were made before it was sent.
  int updates() {
    answer = *receive_one<Answer>(link_, server_);
    return static_cast<int>(-*receive_one<float>(link_, server_));
  }
  float momentum() {
    order(Order::Kind::state);
    return *receive_one<float>(link_, server_);
  }
  template <class Struct>
  void send(const Struct& one) {
    REQUIRE(send_now(link_, message_of(one), server_).has_value());
  }
  Answer answer;

 private:
  Transport& link_;
  int server_;
};

// Two senders in the hand of one thread, and their server.
void with_stale_server(std::uint32_t staleness, const std::function<void(Sender&, Sender&)>& body,
                       double momentum = 0) {
  Post post(3, SendIsDone::at_once);
  std::thread server([&] {
    ThreadLink link(post, 2);
    REQUIRE(serve_parameters(link, {2, 1}, momentum_sgd(momentum), CommDtype::f32).has_value());
  });
  ThreadLink first(post, 0), second(post, 1);
  Sender fast(first, 2), slow(second, 2);
  fast.send(ServerSetup{1, 2, staleness});
  fast.send(std::array<std::int32_t, 2>{0, 1});
  fast.send(SliceFacts{.length = 1});
  for (const float start : {0.0F, 0.0F}) fast.send(start);  // the weight, and its momentum
  body(fast, slow);
  for (Sender* const sender : {&fast, &slow}) sender->order(Order::Kind::end);
  server.join();
}

}  // namespace

TEST_CASE("an update of a slice leaves the next one alone, however long both are") {
  auto slices = ServerSlices::make(
      momentum_sgd(0), {SliceFacts{.length = 3}, SliceFacts{.length = 21}, SliceFacts{.length = 1}});
  REQUIRE(slices.has_value());
  std::vector<float> gradients(slices->weights().size());
  for (const MessagePart& part : slices->parts())
    std::fill_n(gradients.data() + part.offset, part.length, 1.0F);
  slices->update({.learning_rate = 1, .gradient_scale = 1}, gradients);
  for (const MessagePart& part : slices->parts())
    for (std::size_t i = 0; i < part.length; ++i) CHECK(slices->weights()[part.offset + i] == -1.0F);
}

TEST_CASE("servers of their own bring the weights that ranks would have computed, wherever tensors are") {
  const auto expected = job_of(3, 0).run();
  std::vector<std::vector<float>> all;
  for (const auto& [servers, placement] :
       {std::pair(1, Placement::greedy), std::pair(2, Placement::round_robin),
        std::pair(3, Placement::split)}) {
    Job job = job_of(3, servers);
    job.spec.parameter_server->placement = placement;
    const auto out = job.run();
    CHECK(*out[0].ending == Ending::finished);
    CHECK(out[0].position == expected[0].position);
    CHECK(out[0].samples == expected[0].samples);
    for (const auto& rank : out) CHECK(same_bits(rank.weights, out[0].weights));
    check_near(out[0].weights, expected[0].weights, 1e-4);
    check_near(out[0].momentum, expected[0].momentum, 1e-3);
    all.push_back(out[0].weights);
  }
  CHECK(same_bits(all[0], all[1]));
  CHECK(same_bits(all[0], all[2]));
}

TEST_CASE("workers of a node that add first, and those that send each for itself, give the same weights") {
  Job by_nodes = job_of(4, 2), alone = job_of(4, 2);
  alone.spec.parameter_server->node_sum = ParameterServerSpec::NodeSum::off;
  const auto a = by_nodes.run(), b = alone.run();
  CHECK(same_bits(a[3].weights, b[3].weights));  // one node: the same order of additions
  by_nodes.environment.set("DLRUN_NODE_RANKS", "2");
  const auto c = by_nodes.run();
  for (const auto& rank : c) CHECK(same_bits(rank.weights, c[0].weights));
  check_near(c[0].weights, b[0].weights, 1e-4);
}

TEST_CASE("gradients in 16 bits, clipped norms and several batches per update are as without servers") {
  for (const auto change :
       {+[](TrainSpec& spec) { spec.allreduce.dtype = CommDtype::bf16; },
        +[](TrainSpec& spec) { spec.clip_norm = 0.1; }, +[](TrainSpec& spec) { spec.accumulate = 2; }}) {
    Job plain = job_of(2, 0), served = job_of(2, 2);
    change(plain.spec);
    change(served.spec);
    const auto expected = plain.run(), out = served.run();
    check_near(out[1].weights, expected[1].weights, 0.02);
  }
}

TEST_CASE(
    "a run that is stopped goes on with another number of servers, or with none, as if it had not been") {
  const auto whole = job_of(2, 2).run();
  for (const int servers : {1, 0}) {
    const Folder folder;
    Job first = job_of(2, 2);
    first.spec.checkpoint.folder = folder.path / "ckpt";
    first.stop_at = 17;
    CHECK(*first.run()[0].ending == Ending::stopped);
    Job second = job_of(2, servers);
    second.spec.checkpoint.folder = folder.path / "ckpt";
    const auto out = second.run();
    CHECK(*out[0].ending == Ending::finished);
    check_near(out[0].weights, whole[0].weights, 1e-4);
    check_near(out[0].momentum, whole[0].momentum, 1e-3);
  }
}

TEST_CASE("with a staleness a worker waits for the step of the slowest that its bound names, and no longer") {
  with_stale_server(2, [](Sender& fast, Sender& slow) {
    for (int step = 1; step <= 2; ++step) {
      fast.step();
      CHECK(fast.updates() == step);
      CHECK(fast.answer.lead == static_cast<std::uint32_t>(step));
    }
    fast.step();
    slow.step();
    CHECK(fast.updates() == 4);  // not before the other's first
    CHECK(fast.answer.lead == 2);
    CHECK(fast.answer.most_lead == 2);
    CHECK(slow.updates() == 4);
    CHECK(slow.answer.lead == 0);
  });
}

TEST_CASE("a barrier that one asks for is behind the same step of all, and then all have the same weights") {
  with_stale_server(3, [](Sender& fast, Sender& slow) {
    for (int step = 0; step < 3; ++step) {
      fast.step();
      fast.updates();
    }
    CHECK(fast.answer.barrier_after == 0);
    slow.step(1);
    slow.updates();
    CHECK(slow.answer.barrier_after == 4);
    fast.step();
    fast.updates();
    CHECK(fast.answer.barrier_after == 4);
    fast.order(Order::Kind::fetch);
    for (int step = 1; step < 4; ++step) {
      slow.step();
      slow.updates();
    }
    slow.order(Order::Kind::fetch);
    CHECK(fast.updates() == 8);
    CHECK(slow.updates() == 8);
  });
}

TEST_CASE(
    "the state that is asked for behind a barrier is that of the barrier, however early another one goes "
    "on") {
  const auto body = [](Sender& first, Sender& other) {
    for (Sender* const sender : {&first, &other}) sender->step();
    for (Sender* const sender : {&first, &other}) sender->updates();
    for (Sender* const sender : {&first, &other}) sender->order(Order::Kind::fetch);
    for (Sender* const sender : {&first, &other}) sender->updates();
    other.step();
    CHECK(first.momentum() == 1.5F);  // of two updates
    first.step();
    for (Sender* const sender : {&first, &other}) sender->updates();
  };
  with_stale_server(3, body, 0.5);
}

TEST_CASE("an asynchronous training converges, ends with equal weights, and resumes where it was stopped") {
  const auto plain = job_of(3, 0).run();
  const Folder folder;
  Job first = job_of(3, 2, 2);
  first.spec.checkpoint.folder = folder.path / "ckpt";
  first.stop_at = 5;
  first.who_wants_to_stop = 1;
  CHECK(*first.run()[0].ending == Ending::stopped);
  Job second = job_of(3, 1, 2);
  second.spec.checkpoint.folder = folder.path / "ckpt";
  const auto out = second.run();
  CHECK(*out[0].ending == Ending::finished);
  CHECK(out[0].position == plain[0].position);
  for (const auto& rank : out) CHECK(same_bits(rank.weights, out[0].weights));
  CHECK(out[0].most_lead <= 2);
  check_near(out[0].weights, plain[0].weights, 0.5);
}

TEST_CASE("with a staleness, too, the workers of a node may add first: the node is what is ahead then") {
  Job job = job_of(4, 2, 1);
  job.spec.parameter_server->node_sum = ParameterServerSpec::NodeSum::on;
  job.environment.set("DLRUN_NODE_RANKS", "2");
  job.stop_at = 9;
  job.who_wants_to_stop = 3;  // another one than what sends for its node
  const auto out = job.run();
  CHECK(*out[0].ending == Ending::stopped);
  CHECK(out[0].position.step < 9 + 4);
  for (const auto& rank : out) {
    CHECK(rank.position == out[0].position);
    CHECK(same_bits(rank.weights, out[0].weights));
    CHECK(rank.most_lead <= 1);
  }
}

TEST_CASE("more servers than tensors are refused with both numbers") {
  FakeEngine engine(small_shape, 8);
  on_ranks(4, [&](Communicator& world) {
    const auto group = *world.split(world.rank() == 0 ? 0 : 1, 0);
    if (world.rank() != 0) return;
    TrainSpec spec;
    spec.parameter_server.emplace();
    const auto client = ServerClient::make(spec, engine, {world, *group}, {});
    REQUIRE_FALSE(client.has_value());
    CHECK(client.error().what ==
          "roles.ps has 3 servers, but the model has 2 tensors or parts to place on them (greedy): one would "
          "have nothing");
  });
}

TEST_CASE("what servers of their own exclude is named, and so is what only they can do") {
  const auto refused = [](int servers, const std::function<void(TrainSpec&)>& change) {
    TrainSpec spec;
    spec.model = "mnist-cnn";
    spec.places = {{"shards", "job.yaml:7:3"}};
    change(spec);
    const auto done = use_server_processes(spec, servers);
    return done ? std::string() : done.error().where + " " + done.error().what;
  };
  const auto with_section = [](auto set) {
    return [set](TrainSpec& spec) { set(spec, spec.parameter_server.emplace()); };
  };
  CHECK(refused(2, [](TrainSpec&) {}) == "");
  CHECK(refused(2, [](TrainSpec& spec) { spec.shards.emplace(); }) ==
        "job.yaml:7:3 roles.ps asks for parameter servers of their own, and train.shards is set: shards are "
        "added in an order of their own");
  for (const auto& change : std::vector<std::function<void(TrainSpec&)>>{
           [](TrainSpec&spec) { spec.sync.emplace(); }, [](TrainSpec&spec) { spec.ema = 0.9; },
           [](TrainSpec&spec) { spec.model = "dcgan"; },
           [](TrainSpec&spec) { spec.optimizer.state = OptimizerSpec::State::sharded; },
           with_section([](TrainSpec&, auto&servers) { servers.servers = 2; }),
           with_section([](TrainSpec&spec, auto&servers) { servers.staleness = 1, spec.clip_norm = 1; }),
           with_section([](TrainSpec&spec, auto&servers) {
             servers.placement = Placement::split, spec.optimizer.optimizer = default_optimizer("lars");
           })})
    CHECK(refused(2, change) != "");
  CHECK(refused(0, with_section([](TrainSpec&, auto& servers) { servers.staleness = 1; }))
            .find("the servers live on ranks") != std::string::npos);
}
