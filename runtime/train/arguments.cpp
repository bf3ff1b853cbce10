// See arguments.hpp.
#include "runtime/train/arguments.hpp"

#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

tl::unexpected<Error> wrong(std::string what, std::string hint = "dlrun-train --help") {
  return fail(Error{.kind = ErrorKind::usage, .what = std::move(what), .hint = std::move(hint)});
}

Result<int> read_ranks(const std::string& flag, const std::string& word) {
  const auto ranks = parse_integer(word, 1, 1 << 30);
  if (!ranks) return wrong(fmt::format("{}: '{}' is not a number of ranks", flag, word));
  return static_cast<int>(*ranks);
}

}  // namespace

Result<Arguments> parse_arguments(const std::vector<std::string>& words) {
  static const std::vector<std::string> flags = {"--config",   "--check",   "--check-settings", "--prepare",
                                                 "--evaluate", "--predict", "--sample",         "--export",
                                                 "--version",  "--help",    "--ranks",          "--tensor",
                                                 "--pipeline", "--servers", "--sequence"};
  Arguments out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--version" || word == "--help") {
      out.action = word == "--help" ? Arguments::Action::help : Arguments::Action::version;
      return out;
    }
    if (word == "--check") {
      out.action = Arguments::Action::check;
    } else if (word == "--check-settings") {
      out.action = Arguments::Action::check_settings;
    } else if (word == "--ranks" || word == "--tensor" || word == "--pipeline" || word == "--servers") {
      if (i + 1 == words.size()) return wrong(word + " needs a number");
      const int number = TRY(read_ranks(word, words[++i]));
      (word == "--ranks"      ? out.ranks
       : word == "--tensor"   ? out.tensor_ranks
       : word == "--pipeline" ? out.stages
                              : out.servers) = number;
    } else if (word == "--sequence") {
      out.sequence = SequenceParallel::on;
    } else if (word == "--config" || word.starts_with("--config=")) {
      if (!out.config.empty()) return wrong("--config is given twice");
      if (word == "--config" && i + 1 == words.size()) return wrong("--config needs a file");
      out.config = word == "--config" ? words[++i] : word.substr(9);
      if (out.config.empty()) return wrong("--config needs a file");
    } else {
      return wrong(fmt::format("unknown argument '{}'", word), did_you_mean(word, flags));
    }
  }
  if (out.config.empty()) return wrong("--config FILE is missing");
  const bool has_sequence = out.sequence == SequenceParallel::on;
  if ((out.ranks || out.tensor_ranks || out.stages || out.servers || has_sequence) &&
      out.action == Arguments::Action::train)
    return wrong(fmt::format("{} needs --check or --check-settings: a rank that trains knows these numbers",
                             out.ranks          ? "--ranks"
                             : out.tensor_ranks ? "--tensor"
                             : out.stages       ? "--pipeline"
                             : out.servers      ? "--servers"
                                                : "--sequence"));
  return out;
}

std::string_view help_text() {
  return R"(dlrun-train: one rank of a training by dlrun's own runtime. See dlrun-train(1).

Training; dlrun starts it so:
  dlrun-train --config FILE
      Trains. FILE is JSON that dlrun wrote from a job file.
  dlrun-train --check [--ranks N [--tensor T [--sequence]] [--pipeline P] [--servers S]] --config FILE
      Checks the job, the headers of the data files and the checkpoint folder: for N ranks in tensor groups of T
      (with sequence parallelism) and pipelines of P stages, or with S parameter servers.
  dlrun-train --check-settings [...] --config FILE
      Checks only the settings of the job. Takes the same flags as --check.

Preparing data:
  dlrun-train --prepare DIR --into NEW [--size 224] [--damaged drop] [--list FILE --classes N [--test-list FILE]]
      Packs the images of folders, or of lists, for fast reading.
  dlrun-train --prepare DIR --into NEW --as shards|webdataset|tfrecord|lmdb
              [--from images|list|webdataset|tfrecord|lmdb] [--classes N] [--shard-size 128MiB]
      Repacks encoded images into large files.
  dlrun-train --prepare TEXTS --into NEW --tokens bytes|VOCABULARY [--validation 0.05] [--shard-size 16MiB]
      Writes texts as token files.

Using a trained model; CKPT is a checkpoint or a folder of checkpoints:
  dlrun-train --evaluate DIR --checkpoint CKPT [--from FORMAT]
              [--from numpy|hdf5 --samples NAME --labels NAME|--targets NAME [--axes CHW]]
      Prints top-1 and top-5 accuracy, loss and confusion matrix as JSON.
  dlrun-train --predict FILE... --checkpoint CKPT
      Prints classes and scores of images, or predictions for .npy files, as JSON.
  dlrun-train --sample TEXT --checkpoint CKPT [--length 200] [--temperature 1] [--top-k 0] [--seed 1]
      Continues a text. Each token is drawn from the K best with --top-k K, from all with 0.
  dlrun-train --export FILE.onnx|FILE.safetensors --checkpoint CKPT
      Writes the model as ONNX or safetensors.

  dlrun-train --version | --help

Exit codes: 0 done, 64 usage, 65 job file or data malformed, 69 ranks could not connect, 70 a bug, 71 lost a rank,
74 a checkpoint, metrics or the standard output cannot be written, 75 stopped on request with a checkpoint.
)";
}

}  // namespace dlrun::runtime
