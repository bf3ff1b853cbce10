// See arena.hpp: spans of time are noted here, offsets come from packing.hpp.
#include "runtime/engine/arena.hpp"

#include <algorithm>
#include <vector>

#include "runtime/engine/packing.hpp"

namespace dlrun::runtime {

namespace {

Buffer* place_of(Buffer* buffer) {
  while (buffer->same != nullptr) buffer = buffer->same;
  return buffer;
}

}  // namespace

Buffer* ActivationArena::add(std::size_t bytes) {
  Buffer& buffer = buffers_.emplace_back();
  buffer.bytes = aligned(std::max<std::size_t>(bytes, 1));
  return &buffer;
}

void ActivationArena::use(Buffer* buffer, int time) {
  if (buffer->last < buffer->first) {
    buffer->first = buffer->last = time;
    return;
  }
  buffer->first = std::min(buffer->first, time);
  buffer->last = std::max(buffer->last, time);
}

void ActivationArena::share(Buffer* buffer, Buffer* target) {
  if (place_of(buffer) != place_of(target)) place_of(buffer)->same = place_of(target);
}

Result<void> ActivationArena::lay_out() {
  for (Buffer& buffer : buffers_) {
    if (buffer.last < buffer.first) continue;
    Buffer* place = place_of(&buffer);
    if (place == &buffer) continue;
    use(place, buffer.first);
    use(place, buffer.last);
    place->bytes = std::max(place->bytes, buffer.bytes);
  }
  std::vector<Buffer*> places;
  std::vector<Lifetime> lifetimes;
  for (Buffer& buffer : buffers_) {
    if (buffer.same != nullptr || buffer.last < buffer.first) continue;
    places.push_back(&buffer);
    lifetimes.push_back(
        {buffer.bytes, static_cast<std::size_t>(buffer.first), static_cast<std::size_t>(buffer.last)});
  }
  const Packing packing = pack(lifetimes, kAlignment);
  for (std::size_t i = 0; i < places.size(); ++i) places[i]->offset = packing.offsets[i];
  memory_ = TRY(HugeBuffer::make(packing.bytes));
  for (Buffer& buffer : buffers_) buffer.data = memory_.data() + place_of(&buffer)->offset;
  return {};
}

std::vector<std::span<std::byte>> ActivationArena::needed_across(int time) {
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (const Buffer& buffer : buffers_)
    if (buffer.same == nullptr && buffer.first < time && buffer.last >= time)
      ranges.emplace_back(buffer.offset, buffer.offset + buffer.bytes);
  std::sort(ranges.begin(), ranges.end());
  std::vector<std::span<std::byte>> out;
  for (const auto& [begin, end] : ranges) {
    std::byte* const data = memory_.data() + begin;
    if (!out.empty() && out.back().data() + out.back().size() == data)
      out.back() = {out.back().data(), out.back().size() + (end - begin)};
    else
      out.emplace_back(data, end - begin);
  }
  return out;
}

}  // namespace dlrun::runtime
