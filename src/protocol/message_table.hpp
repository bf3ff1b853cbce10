// The table of messages: for each its name on the stream and its members there: fields of the header, with
// the values that are possible, and the body. The codec goes through it in both directions, so no message can
// be written in one way and read in another. The names of an agent's messages are those of its events in
// events.jsonl, too. For codec.cpp alone.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <tuple>

#include "src/protocol/messages.hpp"

namespace dlrun::protocol {

/// The integers that a field can have.
struct Range {
  std::int64_t low = 0, high = std::numeric_limits<int>::max();
};

enum class Shape { object, list };  // of a value that is passed on as it is

/// A member in the header. `get` is a pointer to it, or a function of the message that returns it.
template <class Get, class Rule = Range>
struct Field {
  std::string_view name;
  Get get;
  Rule rule = {};
};
template <class Get, class Rule = Range>
constexpr Field<Get, Rule> field(std::string_view name, Get get, Rule rule = {}) {
  return {name, get, rule};
}

/// A member that is the whole body: a text, or a list that the body has one after another (a list of sizes in
/// the header, or a NUL at the end of each, divides it).
template <class Get>
struct Body {
  Get get;
};
template <class Get>
constexpr Body<Get> body(Get get) {
  return {get};
}
template <class Get>
struct SizedParts {
  std::string_view name;  // of the list of sizes
  Get get;
};
template <class Get>
constexpr SizedParts<Get> sized_parts(std::string_view name, Get get) {
  return {name, get};
}
template <class Get>
struct NulEnded {
  std::string_view name;  // for errors
  Get get;
};
template <class Get>
constexpr NulEnded<Get> nul_ended(std::string_view name, Get get) {
  return {name, get};
}

// Made by its constructor and not by a function format(): that would mean std::format too where a part has a
// standard type.
template <class... Parts>
struct Format {
  std::string_view name;  // of a message; empty for an object inside of one
  std::tuple<Parts...> parts;

  constexpr explicit Format(std::string_view its_name, Parts... its_parts)
      : name(its_name), parts(its_parts...) {}
};

inline constexpr Range kPorts{1, 65535}, kPortOrNone{0, 65535}, kPids{1}, kSignals{1, 64},
    kSignalOrNone{0, 64}, kExitCodes{0, 255}, kFailureCodes{1, 255}, kProcessors{0, 1'000'000},
    kSizes{0, std::numeric_limits<std::uint32_t>::max()}, kBytes{0, std::numeric_limits<std::int64_t>::max()};

/// How the message T looks on the stream.
template <class T>
inline constexpr int format_of = 0;

// To an agent.
template <>
inline constexpr auto format_of<to_agent::Environment> =
    Format("environment", nul_ended("entries", &to_agent::Environment::entries));
template <>
inline constexpr auto format_of<to_agent::AskInventory> =
    Format("inventory", field("gpus", &to_agent::AskInventory::gpus));
template <>
inline constexpr auto format_of<to_agent::AskClock> = Format("ask_clock");
template <>
inline constexpr auto format_of<to_agent::CheckNode> =
    Format("check_node", field("full", &to_agent::CheckNode::full),
           field("directory", &to_agent::CheckNode::directory), field("names", &to_agent::CheckNode::names),
           field("token", &to_agent::CheckNode::token));
template <>
inline constexpr auto format_of<to_agent::CheckedPeer> = Format(
    "", field("node", &to_agent::CheckedPeer::node), field("addresses", &to_agent::CheckedPeer::addresses),
    field("port", &to_agent::CheckedPeer::port, kPorts));
template <>
inline constexpr auto format_of<to_agent::CheckPeers> = Format("check_peers",
                                                               field("token", &to_agent::CheckPeers::token),
                                                               field("send", &to_agent::CheckPeers::send),
                                                               field("peers", &to_agent::CheckPeers::peers));
template <>
inline constexpr auto format_of<to_agent::CheckRing> =
    Format("check_ring", field("token", &to_agent::CheckRing::token),
           field("number", &to_agent::CheckRing::ring), field("place", &to_agent::CheckRing::place),
           field("size", &to_agent::CheckRing::size, Range{2}), field("chunk", &to_agent::CheckRing::chunk),
           field("time", &to_agent::CheckRing::time), field("next", &to_agent::CheckRing::next));
template <>
inline constexpr auto format_of<to_agent::ClaimPorts> =
    Format("claim", field("ports", &to_agent::ClaimPorts::ports, kPorts));
template <>
inline constexpr auto format_of<to_agent::Slice> = Format("slice",
                                                          field("heartbeat", &to_agent::Slice::heartbeat),
                                                          field("input", &to_agent::Slice::input_rank),
                                                          field("keep_prolog", &to_agent::Slice::keep_prolog),
                                                          body(&to_agent::Slice::json));
template <>
inline constexpr auto format_of<to_agent::KeptProlog> = Format("kept_prolog",
                                                               field("limits", &to_agent::KeptProlog::limits),
                                                               nul_ended("entries",
                                                                         &to_agent::KeptProlog::entries));
template <>
inline constexpr auto format_of<to_agent::StageSurvey> = Format("stage_survey");
template <>
inline constexpr auto format_of<to_agent::StageDrop> = Format("stage_drop");
template <>
inline constexpr auto format_of<to_agent::StageIn> = Format(
    "stage_in", field("sources", &to_agent::StageIn::sources, Shape::list), body(&to_agent::StageIn::token));
template <>
inline constexpr auto format_of<to_agent::StageChain> = Format(
    "stage_chain", field("items", &to_agent::StageChain::items),
    field("previous", &to_agent::StageChain::previous), field("addresses", &to_agent::StageChain::addresses),
    field("port", &to_agent::StageChain::port, kPortOrNone), field("next", &to_agent::StageChain::next));
template <>
inline constexpr auto format_of<to_agent::Go> = Format("go");
template <>
inline constexpr auto format_of<to_agent::Allgathered> = Format("allgathered",
                                                                field("key", &to_agent::Allgathered::key),
                                                                sized_parts("sizes",
                                                                            &to_agent::Allgathered::blobs));
template <>
inline constexpr auto format_of<to_agent::Relay> = Format("relay", field("token", &to_agent::Relay::token));
template <>
inline constexpr auto format_of<to_agent::RelayParent> =
    Format("relay_parent", field("addresses", &to_agent::RelayParent::addresses),
           field("port", &to_agent::RelayParent::port, kPortOrNone));
template <>
inline constexpr auto format_of<to_agent::ChildAllgather> =
    Format("child_allgather", field("child", &to_agent::ChildAllgather::child),
           field("key", &to_agent::ChildAllgather::key), field("nodes", &to_agent::ChildAllgather::nodes),
           sized_parts("sizes", &to_agent::ChildAllgather::blobs));
template <>
inline constexpr auto format_of<to_agent::Stop> = Format("stop", field("urgency", &to_agent::Stop::urgency),
                                                         field("after_failure",
                                                               &to_agent::Stop::after_failure),
                                                         field("reason", &to_agent::Stop::reason));
template <>
inline constexpr auto format_of<to_agent::RequestCheckpoint> =
    Format("checkpoint", field("stop", &to_agent::RequestCheckpoint::stop),
           field("control", &to_agent::RequestCheckpoint::control),
           field("file", &to_agent::RequestCheckpoint::file),
           field("signal", &to_agent::RequestCheckpoint::signal, kSignalOrNone));
template <>
inline constexpr auto format_of<to_agent::Regroup> =
    Format("regroup", field("generation", &to_agent::Regroup::generation),
           field("ranks", &to_agent::Regroup::ranks), field("at_step", &to_agent::Regroup::at_step));
template <>
inline constexpr auto format_of<to_agent::NewWorld> =
    Format("new_world", field("generation", &to_agent::NewWorld::generation),
           field("ranks", &to_agent::NewWorld::ranks), field("source", &to_agent::NewWorld::source),
           field("behind", &to_agent::NewWorld::behind), nul_ended("ports", &to_agent::NewWorld::ports));
template <>
inline constexpr auto format_of<to_agent::ProbeRanks> = Format("probe");
template <>
inline constexpr auto format_of<to_agent::ReadStacks> =
    Format("stacks", field("request", &to_agent::ReadStacks::request));
template <>
inline constexpr auto format_of<to_agent::Suspend> = Format("suspend");
template <>
inline constexpr auto format_of<to_agent::Resume> = Format("resume");
template <>
inline constexpr auto format_of<to_agent::Input> = Format("input", body(&to_agent::Input::bytes));
template <>
inline constexpr auto format_of<to_agent::InputEnd> = Format("input_end");
template <>
inline constexpr auto format_of<to_agent::Alive> = Format("alive");
template <>
inline constexpr auto format_of<to_agent::Bye> = Format("bye");
template <>
inline constexpr auto format_of<to_agent::BeginAnew> = Format("begin_anew");

// Objects inside of messages.
template <>
inline constexpr auto format_of<from_agent::Clock> = Format("clock", field("now", &from_agent::Clock::now));
template <>
inline constexpr auto format_of<from_agent::NodeChecked> =
    Format("node_checked", field("values", &from_agent::NodeChecked::values, Shape::object),
           field("port", &from_agent::NodeChecked::port, kPortOrNone),
           field("addresses", &from_agent::NodeChecked::addresses));
template <>
inline constexpr auto format_of<from_agent::PeerChecked> = Format(
    "", field("node", &from_agent::PeerChecked::node), field("problem", &from_agent::PeerChecked::problem),
    field("connect", &from_agent::PeerChecked::connect),
    field("bytes", &from_agent::PeerChecked::bytes, kBytes), field("took", &from_agent::PeerChecked::took));
template <>
inline constexpr auto format_of<from_agent::PeersChecked> =
    Format("peers_checked", field("peers", &from_agent::PeersChecked::peers));
template <>
inline constexpr auto format_of<from_agent::RingChecked> = Format(
    "ring_checked", field("number", &from_agent::RingChecked::ring),
    field("problem", &from_agent::RingChecked::problem),
    field("bytes", &from_agent::RingChecked::bytes, kBytes), field("took", &from_agent::RingChecked::took));
template <>
inline constexpr auto format_of<from_agent::TakenPort> =
    Format("", field("port", &from_agent::TakenPort::port, kPorts), field("by", &from_agent::TakenPort::by));
template <>
inline constexpr auto format_of<from_agent::RankProbe> = Format(
    "", field("rank", &from_agent::RankProbe::rank), field("state", &from_agent::RankProbe::state),
    field("pid", &from_agent::RankProbe::pid), field("name", &from_agent::RankProbe::name),
    field("waits", &from_agent::RankProbe::waits), field("finalizing", &from_agent::RankProbe::finalizing),
    field("in_barrier", &from_agent::RankProbe::in_barrier));

// From an agent.
template <>
inline constexpr auto format_of<from_agent::Ready> = Format("ready",
                                                            field("pid", &from_agent::Ready::pid, kPids),
                                                            field("version", &from_agent::Ready::version),
                                                            field("protocol", &from_agent::Ready::protocol));
template <>
inline constexpr auto format_of<from_agent::Inventory> =
    Format("inventory", field("inventory", &from_agent::Inventory::inventory));
template <>
inline constexpr auto format_of<from_agent::PortsClaimed> =
    Format("claimed", field("taken", &from_agent::PortsClaimed::taken));
template <>
inline constexpr auto format_of<from_agent::StageSources> =
    Format("stage_sources", field("sources", &from_agent::StageSources::sources, Shape::list));
template <>
inline constexpr auto format_of<from_agent::StageNeeds> =
    Format("stage_needs", field("items", &from_agent::StageNeeds::items),
           field("port", &from_agent::StageNeeds::port, kPortOrNone),
           field("addresses", &from_agent::StageNeeds::addresses));
template <>
inline constexpr auto format_of<from_agent::StageDropped> = Format("stage_dropped");
template <>
inline constexpr auto format_of<from_agent::StageMoved> =
    Format("stage_moved", field("bytes", &from_agent::StageMoved::bytes, kBytes));
template <>
inline constexpr auto format_of<from_agent::Staged> =
    Format("staged", field("seconds", &from_agent::Staged::seconds),
           field("bytes", &from_agent::Staged::bytes, kBytes), field("copied", &from_agent::Staged::copied));
template <>
inline constexpr auto format_of<from_agent::PrologEnded> =
    Format("prolog", field("seconds", &from_agent::PrologEnded::seconds),
           nul_ended("secrets", &from_agent::PrologEnded::secrets));
template <>
inline constexpr auto format_of<from_agent::PrologLeft> =
    Format("prolog_left", field("limits", &from_agent::PrologLeft::limits),
           nul_ended("entries", &from_agent::PrologLeft::entries));
template <>
inline constexpr auto format_of<from_agent::InterfaceChosen> =
    Format("interface", field("name", &from_agent::InterfaceChosen::name));
template <>
inline constexpr auto format_of<from_agent::GpusHeld> =
    Format("gpus", field("ranks", &from_agent::GpusHeld::ranks, Shape::list));
template <>
inline constexpr auto format_of<from_agent::Provenance> =
    Format("provenance", field("found", &from_agent::Provenance::found, Shape::object));
template <>
inline constexpr auto format_of<from_agent::NodeUsage> =
    Format("usage", field("usage", &from_agent::NodeUsage::usage, Shape::object));
template <>
inline constexpr auto format_of<from_agent::Signalled> =
    Format("signalled", field("signal", &from_agent::Signalled::signal, kSignals));
template <>
inline constexpr auto format_of<from_agent::Started> =
    Format("started", field("rank", &from_agent::Started::rank),
           field("pid", &from_agent::Started::pid, kPids), field("program", &from_agent::Started::program),
           field("processors", &from_agent::Started::processors, kProcessors));
template <>
inline constexpr auto format_of<from_agent::Output> =
    Format("output", field("rank", &from_agent::Output::rank), field("stream", &from_agent::Output::stream),
           field("unfinished", &from_agent::Output::unfinished), body(&from_agent::Output::text));
template <>
inline constexpr auto format_of<from_agent::Report> = Format("report",
                                                             field("rank", &from_agent::Report::rank),
                                                             field("report", &from_agent::Report::report,
                                                                   Shape::object));
// In the body, which is not logged: it has a token.
template <>
inline constexpr auto format_of<from_agent::LeftWorld> = Format(
    "left_world", field("rank", &from_agent::LeftWorld::rank),
    field("generation", &from_agent::LeftWorld::generation),
    field("done", &from_agent::LeftWorld::done, kSizes), field("at_step", &from_agent::LeftWorld::at_step),
    field("job", &from_agent::LeftWorld::job), body(&from_agent::LeftWorld::port));
template <>
inline constexpr auto format_of<from_agent::Exited> = Format(
    "exited", field("rank", &from_agent::Exited::rank), field("code", &from_agent::Exited::code, kExitCodes),
    field("signal", &from_agent::Exited::signal, kSignalOrNone), field("text", &from_agent::Exited::text));
template <>
inline constexpr auto format_of<from_agent::Failed> = Format(
    "failed", field("rank", &from_agent::Failed::rank),
    field("code", &from_agent::Failed::code, kFailureCodes), field("reason", &from_agent::Failed::reason));
template <>
inline constexpr auto format_of<from_agent::Allgather> = Format("allgather",
                                                                field("key", &from_agent::Allgather::key),
                                                                body(&from_agent::Allgather::blob));
template <>
inline constexpr auto format_of<from_agent::RelayPort> =
    Format("relay_port", field("port", &from_agent::RelayPort::port, kPortOrNone),
           field("addresses", &from_agent::RelayPort::addresses));
template <>
inline constexpr auto format_of<from_agent::NoRelayParent> =
    Format("no_relay_parent", field("reason", &from_agent::NoRelayParent::reason));
template <>
inline constexpr auto format_of<from_agent::SubtreeAllgather> =
    Format("subtree_allgather", field("key", &from_agent::SubtreeAllgather::key),
           field("nodes", &from_agent::SubtreeAllgather::nodes),
           sized_parts("sizes", &from_agent::SubtreeAllgather::blobs));
template <>
inline constexpr auto format_of<from_agent::ChildrenAllgathered> =
    Format("children_allgathered", field("children", &from_agent::ChildrenAllgathered::children),
           field("key", &from_agent::ChildrenAllgathered::key),
           sized_parts("sizes", &from_agent::ChildrenAllgathered::blobs));
template <>
inline constexpr auto format_of<from_agent::Alive> = Format("alive");
template <>
inline constexpr auto format_of<from_agent::Log> = Format("log", field("text", &from_agent::Log::text));
template <>
inline constexpr auto format_of<from_agent::MpiWaits> = Format("mpi_waits");
template <>
inline constexpr auto format_of<from_agent::Probed> = Format("probed",
                                                             field("ranks", &from_agent::Probed::ranks));
template <>
inline constexpr auto format_of<from_agent::StacksRead> =
    Format("stacks", field("request", &from_agent::StacksRead::request),
           field("ranks", &from_agent::StacksRead::ranks, Shape::list));
template <>
inline constexpr auto format_of<from_agent::InputTaken> =
    Format("input_taken", field("bytes", &from_agent::InputTaken::bytes, kSizes));
template <>
inline constexpr auto format_of<from_agent::InputClosed> = Format("input_closed");
template <>
inline constexpr auto format_of<from_agent::WritesStalled> =
    Format("stalled", field("seconds", &from_agent::WritesStalled::seconds));
template <>
inline constexpr auto format_of<from_agent::WritesResumed> =
    Format("resumed", field("seconds", &from_agent::WritesResumed::seconds));
template <>
inline constexpr auto format_of<from_agent::Suspended> = Format("suspended");
template <>
inline constexpr auto format_of<from_agent::Continued> = Format("continued");
template <>
inline constexpr auto format_of<from_agent::HeadSilent> =
    Format("head_silent", field("seconds", &from_agent::HeadSilent::waited));
template <>
inline constexpr auto format_of<from_agent::ToldToEnd> =
    Format("told_to_end", field("signal", &from_agent::ToldToEnd::signal, kSignals),
           field("sender", &from_agent::ToldToEnd::sender));
template <>
inline constexpr auto format_of<from_agent::AgentFailed> =
    Format("error",
           field(
               "kind", [](auto& m) -> auto& { return m.error.kind; }),
           field(
               "what", [](auto& m) -> auto& { return m.error.what; }),
           field(
               "where", [](auto& m) -> auto& { return m.error.where; }),
           field(
               "hint", [](auto& m) -> auto& { return m.error.hint; }),
           field(
               "also", [](auto& m) -> auto& { return m.error.also; }));
template <>
inline constexpr auto format_of<from_agent::Clean> =
    Format("clean", field("strays", &from_agent::Clean::strays, kSizes));
template <>
inline constexpr auto format_of<from_agent::Done> = Format("done");

}  // namespace dlrun::protocol
