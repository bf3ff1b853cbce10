// The flags of what people start by hand: --prepare, --evaluate, --predict, --sample, --export. Each has one
// value; those that name data are read as the section train.data of a job file is.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/data_format.hpp"

namespace dlrun::runtime {

using Flags = std::map<std::string, std::string>;

tl::unexpected<Error> wrong_option(std::string what, std::string hint = "dlrun-train --help");

/// --name value, or --name=value; an Error for one that is not known, or is given twice.
Result<Flags> read_flags(const std::vector<std::string>& words, const std::vector<std::string>& known);

/// as_it_is: encoded images stay encoded.
enum class SourceUse { as_it_is, to_read };
/// The data of `folder`, of the format --from and with the keys that flags give. `defaults` are keys that not
/// every format has.
Result<std::shared_ptr<const DataSource>> source_of(const Flags& flags, const std::string& folder,
                                                    SourceUse use, const Flags& defaults = {});

}  // namespace dlrun::runtime
