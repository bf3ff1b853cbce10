// Leases: who has something, who may take it over, and that of two who want it one gets it.
#include "src/base/lease.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/wait.h>

#include "tests/unit/folder.hpp"

using namespace dlrun;

namespace {

LeaseOwner someone(const std::string& run) {
  return {.process = this_process(), .job = "7", .run = run};
}

LeaseOwner elsewhere(const std::string& run) {
  return {.process = {.host = "n3", .boot = "another", .namespace_ = "pid:[1]", .pid = 4711, .started = 5},
          .job = "8",
          .run = run};
}

LeaseRequest request_of(const test::Folder& folder, const LeaseOwner& owner) {
  LeaseRequest out{.folder = folder.path / "leases", .owner = owner, .what = "checkpoint folder /ckpt"};
  out.times.wait = Seconds(0);
  // The test's folder is on a disk of this machine's own, which would tell more than a shared one.
  out.life = [](const LeaseOwner& who) { return life_of(who.process); };
  return out;
}

// Time goes on only while somebody waits.
struct FakeTime {
  Ticks now{};
  void apply(LeaseRequest& request) {
    request.now = [this] { return now; };
    request.sleep = [this](Seconds time) { now += std::chrono::duration_cast<Ticks::duration>(time); };
  }
};

std::string outcome(const Result<Lease>& lease) {
  return lease ? fmt::format("lease {}", lease->number()) : lease.error().text();
}

}  // namespace

TEST_CASE(
    "a live owner on this host is never robbed, and the next one gets it at once when it is given back") {
  const test::Folder folder;
  {
    const auto first = take_lease(request_of(folder, someone("flowers-1")));
    CHECK(outcome(first) == "lease 1");
    LeaseRequest second = request_of(folder, someone("flowers-2"));
    FakeTime time;
    time.apply(second);
    second.times.wait = Seconds(20), second.hint = "wait for it";
    int told = 0;
    second.waiting = [&](const std::string&, Seconds) { ++told; };
    const auto refused = take_lease(second);
    REQUIRE_FALSE(refused);
    const std::string host = this_process().host;
    CHECK(refused.error().what ==
          fmt::format("checkpoint folder /ckpt is in use by run flowers-1 (job 7) on {}, "
                      "process {}",
                      host, ::getpid()));
    CHECK(refused.error().hint == "wait for it");
    CHECK(told == 1);  // however long it waited
    CHECK(time.now >= Ticks(std::chrono::seconds(20)));
    CHECK(first->check());
  }
  CHECK(outcome(take_lease(request_of(folder, someone("flowers-2")))) == "lease 2");
}

TEST_CASE("an owner that was killed by force is followed at once, also before anybody has waited for it") {
  const test::Folder folder;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const LeaseFolder leases(folder.path / "leases");
  REQUIRE(leases.create());
  const pid_t child = ::fork();
  if (child == 0) {  // without a thread: the thread sanitizer wants none in a child
    const auto lease = leases.make(1, someone("dead"));
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK(outcome(take_lease(request_of(folder, someone("next")))).find("in use by run dead") !=
        std::string::npos);
  ::kill(child, SIGKILL);
  siginfo_t end{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT) == 0);  // it stays a zombie
  LeaseRequest next = request_of(folder, someone("next"));
  next.sleep = [](Seconds) { FAIL("it waited"); };
  CHECK(outcome(take_lease(next)) == "lease 2");
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("a number that the kernel has given to another process is not the owner") {
  const test::Folder folder;
  LeaseOwner old = someone("old");
  old.process.started += 1;
  const LeaseFolder leases(folder.path / "leases");
  REQUIRE(leases.create());
  REQUIRE(leases.make(1, old).value());
  CHECK(outcome(take_lease(request_of(folder, someone("new")))) == "lease 2");
}

TEST_CASE("an owner on another host is waited for, by this host's clock, and followed when it is silent") {
  const test::Folder folder;
  const LeaseFolder leases(folder.path / "leases");
  REQUIRE(leases.create());
  REQUIRE(leases.make(1, elsewhere("far-1")).value());
  LeaseRequest request = request_of(folder, someone("near-2"));
  FakeTime time;
  time.apply(request);
  std::string told;
  request.waiting = [&](const std::string& owner, Seconds wait) {
    told = fmt::format("{} {}", owner, wait.count());
  };
  CHECK(outcome(take_lease(request)) == "lease 2");
  CHECK(told == "run far-1 (job 8) on n3, process 4711 40");
  CHECK(time.now >= Ticks(std::chrono::seconds(40)));
}

TEST_CASE("an owner on another host that renews is not robbed, however slow its clock and long its pauses") {
  const test::Folder folder;
  const LeaseFolder leases(folder.path / "leases");
  REQUIRE(leases.create());
  REQUIRE(leases.make(1, elsewhere("far-1")).value());
  LeaseRequest request = request_of(folder, someone("near-2"));
  request.times.wait = Seconds(200);
  Ticks now{};
  std::uint64_t renewals = 0;
  request.now = [&] { return now; };
  request.sleep = [&](Seconds) {
    now += std::chrono::seconds(1);
    if (now.time_since_epoch() % std::chrono::seconds(39) != Ticks::duration(0)) return;
    REQUIRE(replace_file(leases.file_of(1), lease_text(elsewhere("far-1"), ++renewals), Durability::none));
  };
  CHECK(outcome(take_lease(request)) ==
        "checkpoint folder /ckpt is in use by run far-1 (job 8) on n3, process 4711 (renewed 5.0s ago)");
}

TEST_CASE("of many that want a dead owner's lease exactly one gets it") {
  for (int round = 0; round < 20; ++round) {
    const test::Folder folder;
    LeaseOwner old = someone("old");
    old.process.started += 1;
    const LeaseFolder leases(folder.path / "leases");
    REQUIRE(leases.create());
    REQUIRE(leases.make(1, old).value());
    std::vector<Result<Lease>> got;
    got.reserve(8);
    for (int i = 0; i < 8; ++i) got.emplace_back(fail(Error{}));
    std::vector<std::thread> threads;
    for (auto& mine : got)
      threads.emplace_back([&] { mine = take_lease(request_of(folder, someone("new"))); });
    for (std::thread& thread : threads) thread.join();
    int owners = 0;
    for (const auto& mine : got) owners += mine ? 1 : 0;
    CHECK(owners == 1);
  }
}

TEST_CASE("an owner that was thought dead sees that it lost the lease, and takes nothing back") {
  const test::Folder folder;
  const LeaseFolder leases(folder.path / "leases");
  {
    LeaseRequest request = request_of(folder, someone("slow"));
    request.times.renewal = Seconds(0.001);
    const auto lease = take_lease(request);
    REQUIRE(lease);
    CHECK(lease->check());
    REQUIRE(leases.make(2, elsewhere("far-2")).value());
    REQUIRE_FALSE(lease->check());
    CHECK(lease->check().error().what ==
          "checkpoint folder /ckpt was taken over by run far-2 (job 8) on n3, process 4711");
  }
  const LeaseFile newest = leases.newest().value();
  CHECK(newest.number == 2);
  CHECK_FALSE(newest.released);
}

TEST_CASE("a lease is renewed while its owner is busy, in a file that stays readable") {
  const test::Folder folder;
  LeaseRequest request = request_of(folder, someone("busy"));
  request.times.renewal = Seconds(0.001);
  const auto lease = take_lease(request);
  REQUIRE(lease);
  const LeaseFolder leases(folder.path / "leases");
  const std::string before = leases.newest().value().content;
  std::string after = before;
  while (after == before) after = leases.newest().value().content;
  CHECK(after.size() == before.size());
  CHECK(owner_in(after).process == this_process());
}

TEST_CASE("somebody who clears the folder away does not end the owner") {
  const test::Folder folder;
  const auto lease = take_lease(request_of(folder, someone("mine")));
  REQUIRE(lease);
  std::filesystem::remove_all(folder.path / "leases");
  CHECK(lease->check());
  CHECK(outcome(take_lease(request_of(folder, someone("other")))).find("in use by run mine") !=
        std::string::npos);
}

TEST_CASE("a lease of an older version names the job, and a broken one nobody") {
  CHECK(owner_in("101\n").job == "101");
  CHECK(text_of(owner_in("{\"job\": 1")) == "another run");
  CHECK(life_of(owner_in("101\n").process) == Life::unknown);
}
