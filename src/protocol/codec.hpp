// The codec: typed messages to what the stream carries (a header and a body) and back. It is strict: a
// message whose type is unknown, that lacks a field, has one too many, or has a value that is of another type
// or out of range, is an Error that names the message and the field. It never fills in a default. It keeps no
// state and checks no order: what may come when is the head's and the agent's to know.
#pragma once

#include "src/protocol/message_stream.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::protocol {

/// What the stream carries of a message.
Message encode(const ToAgent& message);
Message encode(const FromAgent& message);

/// The message that came over the stream.
Result<ToAgent> decode_to_agent(Message message);
Result<FromAgent> decode_from_agent(Message message);

/// The name of a message on the stream ("started"); an agent's message has it in events.jsonl, too.
std::string_view name_of(const ToAgent& message);
std::string_view name_of(const FromAgent& message);

/// An Error where an agent's first message says that it is of another version than this program: such an
/// agent is given no orders, since it would follow some and not others. Reads no more of the message than it
/// must.
Result<void> check_version(const Message& first);
Result<void> check_version(const from_agent::Ready& ready);

}  // namespace dlrun::protocol
