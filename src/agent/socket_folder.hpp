// Scratch: a private short-named folder (0700) for an agent's sockets, gone when the agent ends. An agent
// that was killed leaves its folder behind; the next agent of the same user removes it (the lock in it tells
// that nobody lives there).
#pragma once

#include <filesystem>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::agent {

class Scratch {
 public:
  static Result<Scratch> make(const std::filesystem::path& parent);
  Scratch(Scratch&& other) noexcept;
  Scratch& operator=(Scratch&&) = delete;
  Scratch(const Scratch&) = delete;
  ~Scratch();
  const std::filesystem::path& path() const { return path_; }

 private:
  Scratch(std::filesystem::path path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  UniqueFd lock_;
};

}  // namespace dlrun::agent
