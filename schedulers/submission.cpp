// How a job is submitted, by what its scheduler says about it: the same for all of them.
#include "schedulers/submission.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/process/child.hpp"

namespace dlrun {
namespace {

constexpr Seconds kSubmitLimit{
    60};  // a controller that is busy answers late, and a job submitted twice is worse

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

// Whether `word` stands in `text` and does not go on to the left or the right.
bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word_character(text[at - 1])) &&
        (end == text.size() || !is_word_character(text[end])))
      return true;
  }
  return false;
}

// What stands between double quotes: the scheduler repeats what it did not like.
std::vector<std::string> quoted_words(std::string_view text) {
  const std::vector<std::string> parts = split(text, '"');
  std::vector<std::string> out;
  for (std::size_t i = 1; i + 1 < parts.size(); i += 2)
    if (!parts[i].empty()) out.push_back(parts[i]);
  return out;
}

}  // namespace

bool Submission::is_job_id(std::string_view text) const {
  return !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == text.npos;
}

std::vector<RequestedNodes> requested_nodes(const SubmissionRequest& request) {
  if (!request.chunks.empty()) return request.chunks;
  return {{.nodes = request.nodes,
           .cpus = request.tasks_per_node * request.cpus_per_task,
           .gpus = request.gpus_per_node,
           .memory = request.memory}};
}

std::string node_count(const SubmissionRequest& request) {
  return request.min_nodes ? fmt::format("{}-{}", *request.min_nodes, request.nodes)
                           : std::to_string(request.nodes);
}

std::optional<InexpressibleKey> inexpressible_key(const Submission& submission,
                                                  const SubmissionRequest& request) {
  const std::pair<std::string_view, bool> asked[] = {{"resources.nodes", request.min_nodes.has_value()},
                                                     {"resources.walltime", request.unlimited},
                                                     {"resources.memory", request.memory.has_value()},
                                                     {"resources.chunks", !request.chunks.empty()},
                                                     {"resources.gpu-type", !request.gpu_type.empty()},
                                                     {"resources.constraint", !request.constraint.empty()},
                                                     {"resources.exclusive", request.exclusive},
                                                     {"resources.qos", !request.qos.empty()},
                                                     {"resources.mail", !request.mail.empty()}};
  for (const InexpressibleKey& one : submission.inexpressible())
    for (const auto& [key, is_asked] : asked)
      if (is_asked && key == one.key) return one;
  return std::nullopt;
}

namespace {

// A usage text has every option in it, and is about none of them.
std::string without_usage(std::string_view refusal) {
  const std::string text = lower(refusal);
  return text.substr(0, text.find("usage:"));
}

// An option that it does not know, or a value that it repeats: the last one that it may mean.
RefusedDirective named_option(const Submission& submission, const std::vector<Directive>& directives,
                              std::string_view said) {
  for (auto line = directives.rbegin(); line != directives.rend(); ++line) {
    if (line->key.empty()) continue;
    const std::string option = lower(line->text.substr(submission.marker().size() + 1));
    const std::string name = option.substr(0, option.find_first_of("= "));
    if (name.size() > 2 && has_word(said, name)) return {&*line, line->key};
  }
  return {};
}

// The line of the key, else one that has the word: several keys may be in one line.
RefusedDirective line_about(const std::vector<Directive>& directives, const RefusalKeyword& keyword) {
  for (const Directive& line : directives)
    if (line.key == keyword.key) return {&line, line.key};
  for (const Directive& line : directives)
    if (!line.key.empty() && lower(line.text).find(keyword.word) != std::string::npos)
      return {&line, std::string(keyword.key)};
  for (const Directive& line : directives)
    if (!keyword.option.empty() && line.text.find(keyword.option) != std::string::npos)
      return {&line, line.key};
  return {};
}

}  // namespace

RefusedDirective refused_directive(const Submission& submission, const std::vector<Directive>& directives,
                                   std::string_view refusal) {
  const std::string said = without_usage(refusal);
  if (RefusedDirective named = named_option(submission, directives, said); named.line != nullptr)
    return named;
  for (const RefusalKeyword& keyword : submission.refusal_keywords())
    if (said.find(keyword.word) != said.npos)
      if (RefusedDirective found = line_about(directives, keyword); found.line != nullptr) return found;
  for (const std::string& word : quoted_words(said))
    for (const Directive& line : directives)
      if (!line.key.empty() && has_word(lower(line.text), word)) return {&line, line.key};
  return {};
}

Result<void> check_taken(const Submission& submission, const std::string& job_id,
                         const Environment& environment, const CommandRunner& commands,
                         const std::function<void(Seconds)>& pause) {
  constexpr Seconds step(0.5);
  const auto command = [&](const Argv& argv) {
    return commands.run(
        {.argv = argv, .environment = submission.environment(environment), .limit = Seconds(20)});
  };
  for (Seconds waited(0); waited < submission.doubts_for(); waited += step) {
    if (waited.count() > 0) pause(step);
    const auto state = command(submission.state_command(job_id));
    if (!state || submission.is_alive(*state).value_or(false)) return {};  // it runs, or nobody answers
    const auto why = submission.why_never(*state);
    if (!why) continue;
    if (why->empty()) return {};
    const auto cancelled = command(submission.cancel_command(job_id));
    const bool gone = cancelled && cancelled->status.success();
    return fail(Error{
        .kind = ErrorKind::allocation,
        .what = fmt::format("{} accepted job {} but will never run it: {}", submission.name(), job_id, *why),
        .where = {},
        .hint = gone ? "the job is cancelled; request what the cluster has"
                     : "the job could not be cancelled: it is still in the queue",
        .also = {}});
  }
  return {};
}

Argv submit_command(const Submission& submission, const std::string& script, const std::string& after,
                    std::span<const HostName> excluded) {
  Argv out = submission.submit_command(script, after);
  if (excluded.empty()) return out;
  const Argv options = submission.exclude_options(excluded);
  out.insert(out.begin() + 1, options.begin(), options.end());
  return out;
}

Result<std::string> submit_job(const Submission& submission, const std::vector<Directive>& directives,
                               const std::string& script, const std::string& after,
                               const Environment& environment, const CommandRunner& commands,
                               std::span<const HostName> excluded) {
  const Argv argv = submit_command(submission, script, after, excluded);
  const CommandOutput output = TRY(commands.run(
      {.argv = argv, .environment = submission.environment(environment), .limit = kSubmitLimit}));
  // Banners may stand on either stream; the id is printed on stdout alone.
  if (output.status.success()) return submission.job_id(output.out);
  const std::string said(trim(output.err.empty() ? output.out : output.err));
  Error error{.kind = ErrorKind::unavailable,
              .what = fmt::format("{} refused the job ({})", submission.name(), output.status.text()),
              .where = {},
              .hint = "see the whole script with --dry-run",
              .also = said.empty() ? std::vector<std::string>{} : split(said, '\n')};
  if (const RefusedDirective refused = refused_directive(submission, directives, said);
      refused.line != nullptr) {
    error.also.push_back("directive: " + refused.line->text);
    const bool placed = refused.key == refused.line->key && !refused.line->place.empty();
    error.hint = fmt::format("it comes from {}{}", refused.key, placed ? " at " + refused.line->place : "");
  }
  return fail(std::move(error));
}

}  // namespace dlrun
