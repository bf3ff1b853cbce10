// The arena's packing: who may share a place, who must not, and what happens when memory is short.
#include "runtime/engine/arena.hpp"

#include <doctest/doctest.h>

#include "runtime/base/keyed_random.hpp"

using namespace dlrun::runtime;

TEST_CASE("buffers that never live together share their place") {
  ActivationArena arena;
  Buffer* early = arena.add(1000);
  Buffer* middle = arena.add(1000);
  Buffer* late = arena.add(1000);
  ActivationArena::use(early, 0);
  ActivationArena::use(early, 1);
  ActivationArena::use(middle, 1);
  ActivationArena::use(middle, 3);
  ActivationArena::use(late, 2);
  REQUIRE(arena.lay_out().has_value());
  CHECK(arena.size() == 2 * aligned(1000));
  CHECK(early->data == late->data);
  CHECK(early->data != middle->data);
}

TEST_CASE("a buffer put into another's place keeps it for as long as either lives") {
  ActivationArena arena;
  Buffer* target = arena.add(64);
  Buffer* guest = arena.add(256);
  Buffer* other = arena.add(64);
  ActivationArena::use(target, 0);
  ActivationArena::use(guest, 5);
  ActivationArena::share(guest, target);
  ActivationArena::use(other, 3);
  REQUIRE(arena.lay_out().has_value());
  CHECK(guest->data == target->data);
  CHECK(other->data != target->data);
  CHECK(arena.size() == 256 + 64);
}

TEST_CASE("no two buffers that live together overlap, whatever their sizes and times") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    ActivationArena arena;
    std::vector<Buffer*> buffers;
    for (std::uint64_t i = 0; i < 30; ++i) {
      const std::uint64_t draw = random_key({seed, i});
      buffers.push_back(arena.add(1 + draw % 5000));
      const int first = static_cast<int>((draw >> 20) % 20);
      ActivationArena::use(buffers.back(), first);
      ActivationArena::use(buffers.back(), first + static_cast<int>((draw >> 40) % 8));
    }
    REQUIRE(arena.lay_out().has_value());
    for (const Buffer* a : buffers)
      for (const Buffer* b : buffers) {
        if (a == b || a->last < b->first || b->last < a->first) continue;
        CHECK((a->data + a->bytes <= b->data || b->data + b->bytes <= a->data));
      }
  }
}

TEST_CASE("memory that the system does not have is an Error, not an end") {
  const auto pages = HugeBuffer::make(std::size_t{1} << 60);
  REQUIRE_FALSE(pages.has_value());
  CHECK(pages.error().text().find("cannot allocate") == 0);
}
