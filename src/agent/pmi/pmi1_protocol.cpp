#include "src/agent/pmi/pmi1_protocol.hpp"

#include <algorithm>
#include <charconv>

#include "src/base/strings.hpp"

namespace dlrun::agent {

namespace {

// vallen_max must be even (MPICH 4.0 asserts it) and lines fit the clients' 1024 bytes.
constexpr std::size_t key_limit = 64;
constexpr std::size_t value_limit = 1024;

using FieldMap = std::map<std::string, std::string, std::less<>>;

// "cmd=put kvsname=j key=k value=v w": a value runs to the next blank, that of the last field "value" to the
// end, and so does the "message" that MPICH aborts with since its version 4.2.
FieldMap fields_of(std::string_view text) {
  FieldMap fields;
  while (!(text = trim(text)).empty()) {
    const std::size_t equals = text.find('=');
    const std::size_t blank = text.find(' ');
    if (equals == std::string_view::npos || equals == 0 || blank < equals) return {};
    const std::string_view name = text.substr(0, equals);
    const bool is_last = name == "value" || name == "message";
    const std::size_t end = is_last ? text.size() : std::min(blank, text.size());
    fields.emplace(name, text.substr(equals + 1, end - equals - 1));
    text.remove_prefix(end);
  }
  return fields;
}

std::string_view value_of(const FieldMap& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view{} : std::string_view(found->second);
}

int number_after(const FieldMap& fields, std::string_view name, int fallback) {
  const std::string_view text = value_of(fields, name);
  int number = fallback;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// What is shown of a line that we do not understand.
std::string shown(std::string_view text) {
  std::string out(text.substr(0, 80));
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return out;
}

}  // namespace

Pmi1Protocol::Pmi1Protocol(Pmi1World world, Events events)
    : world_(std::move(world)), events_(std::move(events)) {
  pairs_.emplace("PMI_process_mapping", world_.process_mapping);
}

const std::map<std::string, Pmi1Protocol::Handler, std::less<>>& Pmi1Protocol::handlers() {
  static const std::map<std::string, Handler, std::less<>> table = {
      {"init", &Pmi1Protocol::init},
      {"get_maxes", &Pmi1Protocol::get_maxes},
      {"get_appnum", &Pmi1Protocol::get_appnum},
      {"get_my_kvsname", &Pmi1Protocol::get_my_kvsname},
      {"get_universe_size", &Pmi1Protocol::get_universe_size},
      {"put", &Pmi1Protocol::put},
      {"get", &Pmi1Protocol::get},
      {"barrier_in", &Pmi1Protocol::barrier_in},
      {"finalize", &Pmi1Protocol::finalize},
      {"abort", &Pmi1Protocol::abort},
  };
  return table;
}

void Pmi1Protocol::line(Rank rank, std::string_view text) {
  text = trim(text);
  if (in_spawn_.contains(rank)) {
    if (text != "endcmd") return;
    in_spawn_.erase(rank);
    return events_.reply(rank, "cmd=spawn_result rc=-1 status=-1 msg=spawn_is_not_supported\n");
  }
  if (text == "mcmd=spawn") {
    in_spawn_.insert(rank);
    return;
  }
  const Fields fields = fields_of(text);
  if (!fields.contains("cmd"))
    return events_.dropped(rank, fmt::format("not a PMI-1 request: '{}'", shown(text)));
  request(rank, fields);
}

void Pmi1Protocol::request(Rank rank, const Fields& fields) {
  const std::string_view command = value_of(fields, "cmd");
  if (const auto found = handlers().find(command); found != handlers().end())
    return (this->*found->second)(rank, fields);
  if (command == "publish_name" || command == "unpublish_name" || command == "lookup_name")
    return refuse_name_service(rank, command);
  events_.dropped(rank, fmt::format("unknown PMI-1 request '{}'", shown(command)));
}

void Pmi1Protocol::init(Rank rank, const Fields& fields) {
  const int version = number_after(fields, "pmi_version", 0);
  if (version != 1) {
    events_.reply(rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
    return events_.dropped(rank,
                           fmt::format("the rank's MPI asks for PMI version {}, this is version 1", version));
  }
  events_.connected(rank);
  events_.reply(rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
}

void Pmi1Protocol::get_maxes(Rank rank, const Fields&) {
  events_.reply(rank, fmt::format("cmd=maxes kvsname_max=256 keylen_max={} vallen_max={} rc=0\n", key_limit,
                                  value_limit));
}

void Pmi1Protocol::get_appnum(Rank rank, const Fields&) {
  events_.reply(rank, "cmd=appnum appnum=0 rc=0\n");
}

void Pmi1Protocol::get_my_kvsname(Rank rank, const Fields&) {
  events_.reply(rank, fmt::format("cmd=my_kvsname kvsname={} rc=0\n", world_.kvs_name));
}

void Pmi1Protocol::get_universe_size(Rank rank, const Fields&) {
  events_.reply(rank, fmt::format("cmd=universe_size size={} rc=0\n", world_.size));
}

// A pair is seen by others after the next barrier.
void Pmi1Protocol::put(Rank rank, const Fields& fields) {
  const std::string_view key = value_of(fields, "key");
  const std::string_view value = value_of(fields, "value");
  if (key.empty() || key.size() >= key_limit || value.size() >= value_limit)
    return events_.reply(rank, "cmd=put_result rc=-1 msg=key_or_value_is_empty_or_too_long\n");
  new_pairs_ += fmt::format("{}={}\n", key, value);
  events_.reply(rank, "cmd=put_result rc=0 msg=success\n");
}

void Pmi1Protocol::get(Rank rank, const Fields& fields) {
  const auto found = pairs_.find(value_of(fields, "key"));
  if (found == pairs_.end())
    return events_.reply(rank, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
  events_.reply(rank, fmt::format("cmd=get_result rc=0 msg=success value={}\n", found->second));
}

std::string Pmi1Protocol::barrier_key() const {
  return fmt::format("pmi1/{}", barriers_);
}

void Pmi1Protocol::barrier_in(Rank rank, const Fields&) {
  in_barrier_.insert(rank);
  if (in_barrier_.size() < world_.local_ranks.size()) return;
  if (world_.nodes > 1) return events_.exchange(barrier_key(), std::exchange(new_pairs_, {}));
  store(std::exchange(new_pairs_, {}));
  complete_barrier();
}

void Pmi1Protocol::exchanged(const std::string& key, const std::vector<std::string>& blobs) {
  if (key != barrier_key()) return;  // of another protocol or an earlier attempt
  for (const std::string& blob : blobs) store(blob);
  complete_barrier();
}

void Pmi1Protocol::store(std::string_view pairs) {
  for (const std::string& line : split(pairs, '\n'))
    if (const std::size_t equals = line.find('='); equals != std::string::npos)
      pairs_.insert_or_assign(line.substr(0, equals), line.substr(equals + 1));
}

void Pmi1Protocol::complete_barrier() {
  ++barriers_;
  for (const Rank rank : std::exchange(in_barrier_, {})) events_.reply(rank, "cmd=barrier_out rc=0\n");
}

void Pmi1Protocol::finalize(Rank rank, const Fields&) {
  events_.reply(rank, "cmd=finalize_ack rc=0\n");
  events_.finalized(rank);
}

// No reply: the rank waits to be ended.
void Pmi1Protocol::abort(Rank rank, const Fields& fields) {
  events_.aborted(rank, number_after(fields, "exitcode", 1), std::string(value_of(fields, "error_msg")));
}

void Pmi1Protocol::refuse_name_service(Rank rank, std::string_view command) {
  const std::string_view answer = command == "publish_name"     ? "publish_result"
                                  : command == "unpublish_name" ? "unpublish_result"
                                                                : "lookup_result";
  events_.reply(rank, fmt::format("cmd={} rc=-1 msg=name_service_is_not_supported\n", answer));
}

}  // namespace dlrun::agent
