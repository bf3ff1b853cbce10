// Packing is greedy: the largest buffer first, each at the lowest offset that is free during its life.
#include "runtime/engine/arena.hpp"

#include <algorithm>
#include <vector>

namespace dlrun::runtime {

namespace {

Buffer* place_of(Buffer* buffer) {
  while (buffer->same != nullptr) buffer = buffer->same;
  return buffer;
}

bool live_together(const Buffer& left, const Buffer& right) {
  return left.first <= right.last && right.first <= left.last;
}

// The lowest offset where `buffer` fits among the `placed`, which are sorted by offset.
std::size_t lowest_free(const Buffer& buffer, const std::vector<Buffer*>& placed) {
  std::size_t offset = 0;
  for (const Buffer* other : placed) {
    if (!live_together(buffer, *other)) continue;
    if (offset + buffer.bytes <= other->offset) break;
    offset = std::max(offset, other->offset + other->bytes);
  }
  return offset;
}

}  // namespace

Buffer* ActivationArena::add(std::size_t bytes) {
  Buffer& buffer = buffers_.emplace_back();
  buffer.bytes = aligned(std::max<std::size_t>(bytes, 1));
  return &buffer;
}

void ActivationArena::use(Buffer* buffer, int moment) {
  if (buffer->last < buffer->first) {
    buffer->first = buffer->last = moment;
    return;
  }
  buffer->first = std::min(buffer->first, moment);
  buffer->last = std::max(buffer->last, moment);
}

void ActivationArena::share(Buffer* buffer, Buffer* target) {
  if (place_of(buffer) != place_of(target)) place_of(buffer)->same = place_of(target);
}

Result<void> ActivationArena::lay_out() {
  std::vector<Buffer*> places;
  for (Buffer& buffer : buffers_) {
    if (buffer.last < buffer.first) continue;
    Buffer* place = place_of(&buffer);
    if (place == &buffer) continue;
    use(place, buffer.first);
    use(place, buffer.last);
    place->bytes = std::max(place->bytes, buffer.bytes);
  }
  for (Buffer& buffer : buffers_)
    if (buffer.same == nullptr && buffer.last >= buffer.first) places.push_back(&buffer);
  std::stable_sort(places.begin(), places.end(),
                   [](const Buffer* left, const Buffer* right) { return left->bytes > right->bytes; });
  std::vector<Buffer*> placed;
  std::size_t total = 0;
  for (Buffer* buffer : places) {
    buffer->offset = lowest_free(*buffer, placed);
    total = std::max(total, buffer->offset + buffer->bytes);
    placed.insert(std::upper_bound(
                      placed.begin(), placed.end(), buffer,
                      [](const Buffer* left, const Buffer* right) { return left->offset < right->offset; }),
                  buffer);
  }
  memory_ = TRY(HugeBuffer::make(total));
  for (Buffer& buffer : buffers_) buffer.data = memory_.data() + place_of(&buffer)->offset;
  return {};
}

}  // namespace dlrun::runtime
