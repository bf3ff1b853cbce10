#include "src/agent/stacks/stack_reader.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "src/agent/end_helper.hpp"
#include "src/agent/stacks/read_stacks.hpp"
#include "src/base/pipe.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/process/child.hpp"

namespace dlrun::agent {

std::unique_ptr<StackReader> StackReader::start(EventLoop& loop, std::vector<RankToRead> ranks,
                                                const std::string& folder, Done done) {
  std::unique_ptr<StackReader> out(new StackReader(loop, std::move(ranks), std::move(done)));
  if (out->ranks_.empty()) {
    out->finish({});
  } else if (auto begun = out->begin(folder); !begun) {
    out->finish(begun.error().what);
  }
  return out;
}

Result<void> StackReader::begin(const std::string& folder) {
  Pipe pipe = TRY(make_pipe());
  Argv argv{"dlrun-agent", std::string(kReadStacks), folder};
  for (const RankToRead& rank : ranks_) argv.push_back(fmt::format("{}:{}", rank.rank.get(), rank.pid));
  pid_ = TRY(start_child({.argv = std::move(argv),
                          .program = "/proc/self/exe",
                          .environment = Environment::of_this_process(),
                          .working_directory = "/",
                          .stdout_fd = pipe.write.get(),
                          .inherited_fds = {}}));
  set_nonblocking(pipe.read);
  out_ = std::move(pipe.read);
  loop_.watch(out_.get(), POLLIN, [this](short) { read(); });
  limit_ = loop_.after(kLimit, [this] {
    limit_.reset();
    finish("not read within " + format_duration(kLimit));
  });
  return {};
}

StackReader::~StackReader() {
  end();
}

void StackReader::read() {
  std::array<char, 65536> piece;
  const ssize_t got = ::read(out_.get(), piece.data(), piece.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got > 0) return void(text_.append(piece.data(), static_cast<std::size_t>(got)));
  finish("the process that reads stacks ended early");
}

void StackReader::finish(const std::string& why_not) {
  end();
  std::vector<RankStack> out;
  for (const std::string& line : split(text_, '\n')) {
    const auto json = parse_json(line, "stacks");
    if (!json) continue;  // the last line of a process that was ended
    if (auto stack = rank_stack_from_json(*json, "stacks")) out.push_back(std::move(*stack));
  }
  for (const RankToRead& rank : ranks_) {
    const auto told = [&](const RankStack& stack) { return stack.rank == rank.rank; };
    if (std::any_of(out.begin(), out.end(), told)) continue;
    out.push_back(stack_without_frames(rank.rank, rank.pid));
    out.back().problems.push_back(why_not);
  }
  done_(std::move(out));
}

void StackReader::end() {
  if (limit_) loop_.cancel(*std::exchange(limit_, std::nullopt));
  if (out_) loop_.unwatch(out_.get());
  out_.reset();
  if (pid_ > 0) end_helper(std::exchange(pid_, 0));
}

}  // namespace dlrun::agent
