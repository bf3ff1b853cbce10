#include "src/process/stacks.hpp"

namespace dlrun {
namespace {

Result<StackFrames> frames_field(const Json& json, const char* name, const std::string& where) {
  return stack_frames_from_json(TRY(field<Json>(json, name, where)), where);
}

}  // namespace

Json to_json(const StackFrames& frames) {
  Json out = Json::array();
  for (const StackFrame& frame : frames)
    out.push_back({{"function", frame.function}, {"place", frame.place}});
  return out;
}

Json to_json(const RankStack& stack) {
  Json threads = Json::array();
  for (const ThreadStack& each : stack.threads)
    threads.push_back({{"count", each.count}, {"frames", to_json(each.frames)}});
  return {{"rank", stack.rank.get()},
          {"pid", stack.pid},
          {"program", stack.program},
          {"state", std::string(1, stack.state)},
          {"waits", stack.waits},
          {"native", to_json(stack.native)},
          {"python", to_json(stack.python)},
          {"threads", std::move(threads)},
          {"problems", stack.problems},
          {"nccl_trace", stack.nccl_trace}};
}

Result<StackFrames> stack_frames_from_json(const Json& json, const std::string& where) {
  if (!json.is_array()) return fail(ErrorKind::input, "{}: frames are no list", where);
  StackFrames out;
  for (const Json& frame : json)
    out.push_back(
        {TRY(field<std::string>(frame, "function", where)), TRY(field<std::string>(frame, "place", where))});
  return out;
}

Result<RankStack> rank_stack_from_json(const Json& json, const std::string& where) {
  RankStack out{.rank = Rank(TRY(field<int>(json, "rank", where))),
                .pid = TRY(field<int>(json, "pid", where)),
                .program = TRY(field<std::string>(json, "program", where))};
  const std::string state = TRY(field<std::string>(json, "state", where));
  if (state.size() != 1) return fail(ErrorKind::input, "{}: state '{}' is not one letter", where, state);
  out.state = state[0];
  out.waits = TRY(field<std::string>(json, "waits", where));
  out.native = TRY(frames_field(json, "native", where));
  out.python = TRY(frames_field(json, "python", where));
  const Json threads = TRY(field<Json>(json, "threads", where));
  if (!threads.is_array()) return fail(ErrorKind::input, "{}: threads are no list", where);
  for (const Json& each : threads)
    out.threads.push_back({TRY(field<int>(each, "count", where)), TRY(frames_field(each, "frames", where))});
  out.problems = TRY(field<std::vector<std::string>>(json, "problems", where));
  out.nccl_trace = TRY(field<std::string>(json, "nccl_trace", where));
  return out;
}

}  // namespace dlrun
