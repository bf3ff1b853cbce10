// One message of each kind with a value in every member, and what it is on the stream: for tests of the
// codec.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "src/protocol/codec.hpp"

namespace dlrun::test {

enum class Direction { to_agent, from_agent };
struct Sample {
  Direction direction;
  Message message;     // encoded
  std::string header;  // as it is to be
  std::string body = {};
};

inline const std::vector<Sample>& sample_messages() {
  using namespace protocol;
  const auto to = [](const ToAgent& message, std::string header, std::string body = {}) {
    return Sample{Direction::to_agent, encode(message), std::move(header), std::move(body)};
  };
  const auto from = [](const FromAgent& message, std::string header, std::string body = {}) {
    return Sample{Direction::from_agent, encode(message), std::move(header), std::move(body)};
  };
  static const std::vector<Sample> samples{
      to(to_agent::Environment{{"A=1", "B="}}, R"({"type":"environment"})", std::string("A=1\0B=\0", 7)),
      to(to_agent::AskInventory{true}, R"({"type":"inventory","gpus":true})"),
      to(to_agent::AskClock{}, R"({"type":"ask_clock"})"),
      to(to_agent::CheckNode{true, "/work", {"n1", "n2"}, "ab12"},
         R"({"type":"check_node","full":true,"directory":"/work","names":["n1","n2"],"token":"ab12"})"),
      to(to_agent::CheckPeers{"ab12", Seconds(0.25), {{NodeIndex(1), {"n2"}, 4711}}},
         R"({"type":"check_peers","token":"ab12","send":0.25,"peers":[{"node":1,"addresses":["n2"],)"
         R"("port":4711}]})"),
      to(to_agent::CheckRing{"ab12", 3, 1, 4, 4096, Seconds(0.5), {NodeIndex(2), {"n3"}, 4711}},
         R"({"type":"check_ring","token":"ab12","number":3,"place":1,"size":4,"chunk":4096,"time":0.5,)"
         R"("next":{"node":2,"addresses":["n3"],"port":4711}})"),
      to(to_agent::ClaimPorts{{2220, 2230}}, R"({"type":"claim","ports":[2220,2230]})"),
      to(to_agent::Slice{"{}", true, Rank(3)},
         R"({"type":"slice","heartbeat":true,"input":3,"keep_prolog":false})", "{}"),
      to(to_agent::KeptProlog{{"A=1"}, "{}"}, R"({"type":"kept_prolog","limits":"{}"})",
         std::string("A=1\0", 4)),
      to(to_agent::StageSurvey{}, R"({"type":"stage_survey"})"),
      to(to_agent::StageDrop{}, R"({"type":"stage_drop"})"),
      to(to_agent::StageIn{"ab12", Json::array({{{"bytes", 5}}})},
         R"({"type":"stage_in","sources":[{"bytes":5}]})", "ab12"),
      to(to_agent::StageChain{{0, 2}, NodeIndex(1), {"n2"}, 4711, NodeIndex(3)},
         R"({"type":"stage_chain","items":[0,2],"previous":1,"addresses":["n2"],"port":4711,"next":3})"),
      to(to_agent::Go{}, R"({"type":"go"})"),
      to(to_agent::Allgathered{"k", {"a", "", "bc"}}, R"({"type":"allgathered","key":"k","sizes":[1,0,2]})",
         "abc"),
      to(to_agent::Relay{"ab12"}, R"({"type":"relay","token":"ab12"})"),
      to(to_agent::RelayParent{{"n1", "10.0.0.1"}, 4711},
         R"({"type":"relay_parent","addresses":["n1","10.0.0.1"],"port":4711})"),
      to(to_agent::ChildAllgather{NodeIndex(2), "k", {NodeIndex(2), NodeIndex(3)}, {"a", "bc"}},
         R"({"type":"child_allgather","child":2,"key":"k","nodes":[2,3],"sizes":[1,2]})", "abc"),
      to(to_agent::Stop{Urgency::now, true, "rank 3 on n2"},
         R"({"type":"stop","urgency":"now","after_failure":true,"reason":"rank 3 on n2"})"),
      to(to_agent::RequestCheckpoint{true, true, true, SIGUSR1},
         R"({"type":"checkpoint","stop":true,"control":true,"file":true,"signal":10})"),
      to(to_agent::Regroup{2, {Rank(0), Rank(3)}, true},
         R"({"type":"regroup","generation":2,"ranks":[0,3],"at_step":true})"),
      to(to_agent::NewWorld{2, {Rank(0), Rank(3)}, {"a", "b"}, 1, true},
         R"({"type":"new_world","generation":2,"ranks":[0,3],"source":1,"behind":true})",
         std::string("a\0b\0", 4)),
      to(to_agent::ProbeRanks{}, R"({"type":"probe"})"),
      to(to_agent::ReadStacks{7}, R"({"type":"stacks","request":7})"),
      to(to_agent::Suspend{}, R"({"type":"suspend"})"),
      to(to_agent::Resume{}, R"({"type":"resume"})"),
      to(to_agent::Input{"yes\n"}, R"({"type":"input"})", "yes\n"),
      to(to_agent::InputEnd{}, R"({"type":"input_end"})"),
      to(to_agent::Alive{}, R"({"type":"alive"})"),
      to(to_agent::Bye{}, R"({"type":"bye"})"),
      to(to_agent::BeginAnew{}, R"({"type":"begin_anew"})"),
      from(from_agent::Ready{4711, "1.2.3", 7},
           R"({"type":"ready","pid":4711,"version":"1.2.3","protocol":7})"),
      from(from_agent::Inventory{{8, {{"0", "1"}}, "NVML: 2 GPUs"}},
           R"({"type":"inventory","inventory":{"cpus":8,"gpus":["0","1"],"gpu_source":"NVML: 2 GPUs"}})"),
      from(from_agent::Clock{Seconds(1.5)}, R"({"type":"clock","now":1.5})"),
      from(from_agent::NodeChecked{{{"space", Json::object()}}, 4711, {"10.0.0.1"}},
           R"({"type":"node_checked","values":{"space":{}},"port":4711,"addresses":["10.0.0.1"]})"),
      from(from_agent::PeersChecked{{{NodeIndex(1), "no answer", Seconds(1.5), 7, Seconds(0.5)}}},
           R"({"type":"peers_checked","peers":[{"node":1,"problem":"no answer","connect":1.5,"bytes":7,)"
           R"("took":0.5}]})"),
      from(from_agent::RingChecked{3, "no answer", 7, Seconds(0.5)},
           R"({"type":"ring_checked","number":3,"problem":"no answer","bytes":7,"took":0.5})"),
      from(from_agent::PortsClaimed{{{2230, "sshd"}}},
           R"({"type":"claimed","taken":[{"port":2230,"by":"sshd"}]})"),
      from(from_agent::PrologLeft{{"A=1"}, "{}"}, R"({"type":"prolog_left","limits":"{}"})",
           std::string("A=1\0", 4)),
      from(from_agent::StageSources{Json::array({{{"bytes", 5}}})},
           R"({"type":"stage_sources","sources":[{"bytes":5}]})"),
      from(from_agent::StageNeeds{{0, 2}, 4711, {"n2"}},
           R"({"type":"stage_needs","items":[0,2],"port":4711,"addresses":["n2"]})"),
      from(from_agent::StageDropped{}, R"({"type":"stage_dropped"})"),
      from(from_agent::StageMoved{1 << 20}, R"({"type":"stage_moved","bytes":1048576})"),
      from(from_agent::Staged{Seconds(1.5), 1 << 20, 2},
           R"({"type":"staged","seconds":1.5,"bytes":1048576,"copied":2})"),
      from(from_agent::PrologEnded{Seconds(1.5), {"hunter2"}}, R"({"type":"prolog","seconds":1.5})",
           std::string("hunter2\0", 8)),
      from(from_agent::InterfaceChosen{"ib0"}, R"({"type":"interface","name":"ib0"})"),
      from(from_agent::GpusHeld{Json::array({Json::object()})}, R"({"type":"gpus","ranks":[{}]})"),
      from(from_agent::Provenance{{{"node", nullptr}}}, R"({"type":"provenance","found":{"node":null}})"),
      from(from_agent::NodeUsage{{{"cpu", 0.5}}}, R"({"type":"usage","usage":{"cpu":0.5}})"),
      from(from_agent::Signalled{SIGTERM}, R"({"type":"signalled","signal":15})"),
      from(from_agent::Started{Rank(2), 4712, "/usr/bin/python3", {0, 1}},
           R"({"type":"started","rank":2,"pid":4712,"program":"/usr/bin/python3","processors":[0,1]})"),
      from(from_agent::Output{Rank(2), OutputStream::err, true, "ETA 3"},
           R"({"type":"output","rank":2,"stream":"err","unfinished":true})", "ETA 3"),
      from(from_agent::Report{Rank(2), {{"step", 7}}}, R"({"type":"report","rank":2,"report":{"step":7}})"),
      from(from_agent::LeftWorld{Rank(2), 1, 17, "token 4711 n1", true, "4711"},
           R"({"type":"left_world","rank":2,"generation":1,"done":17,"at_step":true,"job":"4711"})",
           "token 4711 n1"),
      from(from_agent::Exited{Rank(2), 3, 9, "killed"},
           R"({"type":"exited","rank":2,"code":3,"signal":9,"text":"killed"})"),
      from(from_agent::Failed{Rank(2), 3, "exit code 3"},
           R"({"type":"failed","rank":2,"code":3,"reason":"exit code 3"})"),
      from(from_agent::Allgather{"k", "blob"}, R"({"type":"allgather","key":"k"})", "blob"),
      from(from_agent::RelayPort{4711, {"10.0.0.1"}},
           R"({"type":"relay_port","port":4711,"addresses":["10.0.0.1"]})"),
      from(from_agent::NoRelayParent{"no answer"}, R"({"type":"no_relay_parent","reason":"no answer"})"),
      from(from_agent::SubtreeAllgather{"k", {NodeIndex(1), NodeIndex(2)}, {"", "ab"}},
           R"({"type":"subtree_allgather","key":"k","nodes":[1,2],"sizes":[0,2]})", "ab"),
      from(from_agent::ChildrenAllgathered{{NodeIndex(4)}, "k", {"a", "b"}},
           R"({"type":"children_allgathered","children":[4],"key":"k","sizes":[1,1]})", "ab"),
      from(from_agent::Alive{}, R"({"type":"alive"})"),
      from(from_agent::Log{"text"}, R"({"type":"log","text":"text"})"),
      from(from_agent::MpiWaits{}, R"({"type":"mpi_waits"})"),
      from(
          from_agent::Probed{{{Rank(2), 'D', 4712, "python3", "nfs_wait", true, true}}},
          R"({"type":"probed","ranks":[{"rank":2,"state":"D","pid":4712,"name":"python3","waits":"nfs_wait",)"
          R"("finalizing":true,"in_barrier":true}]})"),
      from(from_agent::StacksRead{7, Json::array({Json::object()})},
           R"({"type":"stacks","request":7,"ranks":[{}]})"),
      from(from_agent::InputTaken{4096}, R"({"type":"input_taken","bytes":4096})"),
      from(from_agent::InputClosed{}, R"({"type":"input_closed"})"),
      from(from_agent::WritesStalled{Seconds(5)}, R"({"type":"stalled","seconds":5.0})"),
      from(from_agent::WritesResumed{Seconds(9)}, R"({"type":"resumed","seconds":9.0})"),
      from(from_agent::Suspended{}, R"({"type":"suspended"})"),
      from(from_agent::Continued{}, R"({"type":"continued"})"),
      from(from_agent::HeadSilent{Seconds(45)}, R"({"type":"head_silent","seconds":45.0})"),
      from(from_agent::ToldToEnd{SIGTERM, SignalSender::other_user},
           R"({"type":"told_to_end","signal":15,"sender":2})"),
      from(from_agent::AgentFailed{{ErrorKind::io, "what", "where", "hint", {"also"}}},
           R"({"type":"error","kind":5,"what":"what","where":"where","hint":"hint","also":["also"]})"),
      from(from_agent::Clean{3}, R"({"type":"clean","strays":3})"),
      from(from_agent::Done{}, R"({"type":"done"})"),
  };
  return samples;
}

}  // namespace dlrun::test
