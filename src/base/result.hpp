// Error and Result<T>: failure is ordinary data in a launcher, so functions return it and callers must look
// at it. A kind exists so that the caller can choose an action (and, at the end, an exit code); the text says
// what happened with the value seen, where, and one next step. Programming errors are asserts, never Errors.
// No exception crosses a module border: the one file that wraps a throwing library catches.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <tl/expected.hpp>

namespace dlrun {

enum class ErrorKind {
  usage,        // the command line is wrong: the user retypes it
  input,        // a job file, adapter or data file is malformed: the user corrects the file
  allocation,   // the allocation is unreadable or too small for the job
  unavailable,  // an agent, program or port could not be started
  lost,         // a node or rank is gone or hangs
  io,           // a run directory or checkpoint cannot be written
  internal,     // a bug in dlrun
};

struct [[nodiscard]] Error {
  ErrorKind kind = ErrorKind::internal;
  std::string what;        // what happened, with the value seen; lower case, no full stop
  std::string where = {};  // "file:line:column", "rank 3 on c2", ...; empty where there is no place
  std::string hint = {};   // one next step for the person who reads it
  std::vector<std::string> also = {};  // further lines: every host that failed, every key that is wrong

  // "where: what", the further lines indented, then the hint: the text that people see after "dlrun: error:
  // ".
  std::string text() const {
    std::string out = where.empty() ? what : where + ": " + what;
    for (const std::string& line : also) out += "\n  " + line;
    if (!hint.empty()) out += "\n  hint: " + hint;
    return out;
  }
};

template <class T>
using Result = tl::expected<T, Error>;

// Wraps an Error so that it converts to any Result<T>.
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

// fail(kind, "format {}", args...): the common case, without place or hint.
template <class... Args>
tl::unexpected<Error> fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return fail(Error{.kind = kind, .what = fmt::format(format, std::forward<Args>(args)...)});
}

// An Error about what was read; `where` is the file, with the place in it where there is one.
inline tl::unexpected<Error> bad_input(std::string where, std::string what, std::string hint = {}) {
  return fail(Error{
      .kind = ErrorKind::input, .what = std::move(what), .where = std::move(where), .hint = std::move(hint)});
}

namespace detail {
template <class R>
auto unwrap(R&& result) {
  if constexpr (!std::is_void_v<typename std::decay_t<R>::value_type>) return std::move(*result);
}
}  // namespace detail

}  // namespace dlrun

// TRY(expression): the value of a Result, or return its Error from the enclosing function. Unwraps by value,
// so no reference into a temporary survives. Works for Result<void>.
#define TRY(...)                                                               \
  __extension__({                                                              \
    auto try_result_ = (__VA_ARGS__);                                          \
    if (!try_result_) return ::tl::unexpected(std::move(try_result_).error()); \
    ::dlrun::detail::unwrap(std::move(try_result_));                           \
  })
