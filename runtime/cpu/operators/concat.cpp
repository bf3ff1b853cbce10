// Concatenation of channels: each input is copied into its part of the output, each part of the gradient
// back. Where the parts are whole blocks of channels the copies are long runs; else single channels are
// moved.
#include <cstring>

#include "runtime/cpu/parallel.hpp"
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

// One input's place in the output.
struct Part {
  const Buffer* value;
  const Buffer* gradient;  // nullptr: not wanted
  Extents extents;
  std::int64_t channels, first;  // its first channel in the output

  std::size_t elements() const {
    return static_cast<std::size_t>(extents.batch * extents.outer * extents.height * extents.width *
                                    extents.inner);
  }
};

enum class Direction { gather, scatter };  // into the output; out of it

class Concat final : public Operator {
 public:
  explicit Concat(Plan& plan) : out_(plan.output()) {
    std::int64_t first = 0;
    for (std::size_t which = 0; which < plan.node().inputs.size(); ++which) {
      Tensor& in = plan.input(which);
      const std::int64_t channels = plan.input_shape(which).channels;
      parts_.push_back({.value = in.value,
                        .gradient = in.needs_gradient() ? in.gradients[plan.claim_gradient(which)] : nullptr,
                        .extents = in.extents,
                        .channels = channels,
                        .first = first});
      first += channels;
    }
  }

  void forward(const Run&) override {
    // The lanes beyond the last channel must not be anything that a later operator could trip over.
    if (out_.extents.channels() != parts_.back().first + parts_.back().channels)
      std::memset(out_.value->data, 0, out_.desc.get_size());
    for (const Part& part : parts_)
      move(part, *part.value, *out_.value, size_of(out_.precision), Direction::gather);
  }

  void backward_data(const Run&) override {
    const std::size_t size = size_of(out_.gradient_precision);
    for (const Part& part : parts_) {
      if (part.gradient == nullptr) continue;
      // Here too: 0 times what is not a number would reach the weights.
      if (part.extents.channels() != part.channels)
        std::memset(part.gradient->data, 0, part.elements() * size);
      move(part, *part.gradient, *out_.gradients[0], size, Direction::scatter);
    }
  }

 private:
  static std::size_t size_of(Precision precision) { return runtime::size_of(data_type(precision)); }

  void move(const Part& part, const Buffer& in, const Buffer& out, std::size_t size,
            Direction direction) const {
    const Extents& from = part.extents;
    const bool whole = part.first % out_.extents.inner == 0 && part.channels % from.inner == 0 &&
                       from.inner == out_.extents.inner;
    if (whole)
      move_planes(part, in.data, out.data, size, direction);
    else
      move_channels(part, in.data, out.data, size, direction);
  }

  static void copy(std::byte* in, std::byte* out, std::size_t bytes, Direction direction) {
    if (direction == Direction::gather)
      std::memcpy(out, in, bytes);
    else
      std::memcpy(in, out, bytes);
  }

  void move_planes(const Part& part, std::byte* in, std::byte* out, std::size_t size,
                   Direction direction) const {
    const Extents& from = part.extents;
    const auto plane = static_cast<std::size_t>(from.height * from.width * from.inner) * size;
    const auto image = static_cast<std::size_t>(from.outer) * plane;
    const auto out_image = static_cast<std::size_t>(out_.extents.outer) * plane;
    const auto offset = static_cast<std::size_t>(part.first / from.inner) * plane;
    parallel_for(static_cast<std::size_t>(from.batch), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t n = begin; n < end; ++n)
        copy(in + n * image, out + n * out_image + offset, image, direction);
    });
  }

  // Runs of channels of one pixel where all channels lie side by side, else one after the other.
  void move_channels(const Part& part, std::byte* in, std::byte* out, std::size_t size,
                     Direction direction) const {
    const Extents &from = part.extents, &to = out_.extents;
    const std::int64_t area = from.height * from.width;
    const bool rows = from.outer == 1 && to.outer == 1;
    const std::int64_t run = rows ? part.channels : 1;
    const auto place = [&](const Extents& of, std::int64_t n, std::int64_t pixel, std::int64_t channel) {
      return static_cast<std::size_t>(((n * of.outer + channel / of.inner) * area + pixel) * of.inner +
                                      channel % of.inner) *
             size;
    };
    parallel_for(static_cast<std::size_t>(from.batch), 1, [&](std::size_t begin, std::size_t end) {
      for (auto n = static_cast<std::int64_t>(begin); n < static_cast<std::int64_t>(end); ++n)
        for (std::int64_t channel = 0; channel < part.channels; channel += run)
          for (std::int64_t pixel = 0; pixel < area; ++pixel)
            copy(in + place(from, n, pixel, channel), out + place(to, n, pixel, part.first + channel),
                 static_cast<std::size_t>(run) * size, direction);
    });
  }

  Tensor& out_;
  std::vector<Part> parts_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::Concat&) {
  return std::make_unique<Concat>(plan);
}

}  // namespace dlrun::runtime
