// See session.hpp.
#include "runtime/train/session.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>

#include <unistd.h>

#include "runtime/base/checksum.hpp"
#include "runtime/base/mapped_faults.hpp"
#include "runtime/cpu/arithmetic.hpp"
#include "runtime/data/split.hpp"
#include "runtime/train/init_weights.hpp"
#include "runtime/train/pipeline_schedule.hpp"
#include "runtime/train/resume.hpp"
#include "runtime/train/servers/server_roles.hpp"
#include "runtime/train/servers/server_session.hpp"
#include "runtime/train/servers/server_settings.hpp"
#include "runtime/train/settings.hpp"
#include "runtime/train/start_elastic.hpp"
#include "runtime/train/startup.hpp"
#include "runtime/train/stop_request.hpp"
#include "runtime/train/stop_signal.hpp"
#include "runtime/train/sync_section.hpp"
#include "runtime/train/trainer.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/units.hpp"
#include "src/base/version.hpp"

namespace dlrun::runtime {
namespace {

std::uint64_t training_samples(const TrainSpec& spec, const PreparedTraining& prepared) {
  return Split(prepared.data.train.count, spec.data.train_share, spec.seed).training();
}

constexpr const char* kJoinsNoTrace = "train.trace is set, and a trace records only the ranks that began it";

// Of rank 0.
Settings computed_with(const PreparedTraining& prepared) {
  return prepared.on_gpu == nullptr ? arithmetic_of_cpu()
                                    : prepared.device.library->arithmetic(prepared.device.number);
}

Manifest manifest_facts(const TrainSpec& spec, const PreparedTraining& prepared) {
  return Manifest{.position = {},
                  .identity = {.model = spec.model,
                               .shape = prepared.data.train.shape,
                               .seed = spec.seed,
                               .samples = training_samples(spec, prepared),
                               .data = prepared.data.train.fingerprint(),
                               .tensors = prepared.tensors,
                               .optimizer = std::string(spec.optimizer.optimizer.traits->name) +
                                            (spec.ema ? kWithAverage : "")},
                  .world = prepared.data_group().size(),
                  .shards = spec.shards
                                ? std::optional(spec.shards->count.value_or(prepared.data_group().size()))
                                : std::nullopt,
                  .batch = spec.batch,
                  .precision = std::string(name_of(spec.precision)),
                  .plan_hash = prepared.engine->plan_hash(),
                  .program = fmt::format("dlrun-train {}", kVersion),
                  .written = {},
                  .settings = settings_of(spec),
                  .computed_with = computed_with(prepared),
                  .classes = prepared.data.classes,
                  .layers = spec.layers_json,
                  .tokenizer = prepared.data.tokenizer,
                  .files = {}};
}

LeaseOwner lease_owner(const TrainSpec& spec, const Environment& environment) {
  const std::filesystem::path folder = environment.get("DLRUN_RUN_DIR");
  std::string run = folder.filename().string();
  if (run.starts_with("link-")) run = (folder.parent_path().filename() / run).string();  // of a chain
  return {.process = this_process(), .job = {}, .run = run.empty() ? spec.name : run};
}

// Where metrics go: the launcher's run directory, else a folder of its own below the current one.
Result<std::filesystem::path> metrics_folder(const TrainSpec& spec, const Environment& environment) {
  if (const auto given = environment.find("DLRUN_RUN_DIR"); given && !given->empty())
    return std::filesystem::path(*given);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::filesystem::path folder = fmt::format(
      "runs/{}-{}-{}", spec.name, std::chrono::duration_cast<std::chrono::seconds>(now).count(), ::getpid());
  TRY(make_directories(folder, Access::shared));
  return folder;
}

// A rank that joins a run while it trains is told the number of its shards; unset: it begins with the others.
Result<std::optional<int>> shards_to_join(const Environment& environment) {
  const auto told = environment.find("DLRUN_JOIN");
  if (!told) return std::optional<int>();
  const auto shards = parse_integer(*told, 2, 1 << 20);
  if (!shards) return fail(ErrorKind::usage, "DLRUN_JOIN is '{}', not a number of shards", *told);
  return std::optional(static_cast<int>(*shards));
}

// As its agent knows it: in an elastic world ranks are numbered anew.
Result<int> rank_of(const Environment& environment, Communicator& comm) {
  if (comm.elastic() == nullptr) return comm.rank();
  const auto rank = parse_integer(environment.get("DLRUN_RANK"), 0, 1 << 30);
  if (!rank) return fail(ErrorKind::usage, "DLRUN_RANK is '{}', not a rank", environment.get("DLRUN_RANK"));
  return static_cast<int>(*rank);
}

// Also those that were lost before this rank met the others.
Result<int> ranks_of_first_start(const Environment& environment, const PreparedTraining& prepared) {
  if (prepared.comm->elastic() == nullptr) return prepared.data_group().size();
  const auto ranks = parse_integer(environment.get("DLRUN_SIZE"), 1, 1 << 30);
  if (!ranks)
    return fail(ErrorKind::usage, "DLRUN_SIZE is '{}', not a number of ranks", environment.get("DLRUN_SIZE"));
  return static_cast<int>(*ranks);
}

class Session {
 public:
  Session(const TrainSpec& spec, const Environment& environment, Ticks begin)
      : spec_(spec),
        environment_(environment),
        begin_(begin),
        stop_request_(environment.get("DLRUN_CHECKPOINT_REQUEST")) {}

  Result<Ending> run() {
    const std::optional<int> joined = TRY(shards_to_join(environment_));
    TRY(prepare_as(joined));
    handle_mapped_faults();  // an MPI may have set a handler of its own
    Communicator& comm = *prepared_.comm;
    reporter_.emplace(
        ControlChannel::open(environment_.get("DLRUN_CONTROL"), TRY(rank_of(environment_, comm))),
        comm.rank(), begin_);
    reporter_->keep_for_result("device", prepared_.on_gpu == nullptr ? "cpu" : "cuda");
    const Start begun = joined ? TRY(join_later(*joined)) : TRY(begin_together());
    const Position start = begun.position;
    const std::optional<int> shards = begun.shards;
    if (comm.elastic() != nullptr && shards) tell_training(*shards);
    std::filesystem::path folder;
    if (comm.rank() == 0 && !begun.entered) {
      folder = TRY(metrics_folder(spec_, environment_));
      TRY(reporter_->open_files(folder, start.step));
    }
    TRY(connect_servers());
    GradientExchange gradients =
        TRY(GradientExchange::make(spec_, *prepared_.engine, prepared_.data_group(), shards, model_groups()));
    if (gpu_sums_)
      gradients.set_connect_devices(
          [this] { return gpu_sums_->connect(prepared_.data_group()).map([](const std::string&) {}); });
    tell_servers(gradients.server_loads());
    std::optional<StepTrace> trace;
    if (spec_.trace) trace.emplace(*spec_.trace, TRY(folder_of_run(folder)), comm, *reporter_);
    Trainer trainer({.spec = spec_,
                     .engine = *prepared_.engine,
                     .comm = prepared_.data_group(),
                     .gradients = gradients,
                     .data = prepared_.data,
                     .reporter = *reporter_,
                     // The steps of a benchmark are not training: no checkpoint records them.
                     .checkpoints = spec_.benchmark ? nullptr : checkpoints_.get(),
                     .local_requests = [this] { return stop_request_.probe(); },
                     .folder = folder,
                     .check_finished = check_finished_,
                     .take_over = [this](const Position& position) { return take_over(position); },
                     .tensor = prepared_.groups.tensor(),
                     .pipeline = pipeline(),
                     .trace = trace ? &*trace : nullptr,
                     .hand_over = [this] { hand_over(); },
                     .entered = begun.entered,
                     .epoch_sums = begun.epoch_sums},
                    start);
    const Ending ending = TRY(spec_.benchmark ? trainer.run_benchmark(*spec_.benchmark) : trainer.run());
    if (trace && ending != Ending::left) TRY(trace->finish());
    reporter_->close();
    if (servers_) TRY(servers_->finish());
    TRY(world().finish());
    return ending;
  }

  /// Whether all that was told came out.
  Result<void> output() const { return reporter_ ? reporter_->output() : Result<void>{}; }

  // Every rank must end: the one that knows why takes the others along.
  int fail_all(const Error& error) {
    print_error(error);
    if (reporter_) reporter_->close();
    const int code = to_int(exit_code(error.kind));
    if ((prepared_.world || prepared_.comm) && world().size() > 1) world().abort(code);
    return code;
  }

 private:
  ModelGroups model_groups() const {
    return {prepared_.groups.tensor(), prepared_.groups.pipeline(), servers_.get()};
  }
  Communicator& world() const { return prepared_.world ? *prepared_.world : *prepared_.comm; }

  // From what the ranks have now: they know where to start.
  Result<void> connect_servers() {
    if (!prepared_.world) return {};
    servers_ =
        TRY(ServerClient::make(spec_, *prepared_.engine, {*prepared_.world, *prepared_.comm}, environment_));
    reporter_->note(servers_->description());
    if (checkpoints_) checkpoints_->set_before_save([this] { return servers_->read_state(); });
    return {};
  }

  std::optional<PipelineOfRank> pipeline() {
    Communicator* const group = prepared_.groups.pipeline();
    return group == nullptr ? std::nullopt : std::optional(PipelineOfRank{*group, prepared_.groups.links()});
  }

  // What a tensor group saves.
  std::string division_text() const {
    std::size_t whole = 0, here = 0;
    for (const TensorInfo& tensor : prepared_.engine->tensors()) {
      if (tensor.role != TensorInfo::Role::parameter) continue;
      whole += elements_of(tensor.shape);
      here += tensor.elements();
    }
    return fmt::format("tensor groups of {} ranks: {} of the {}'s {} parameters on rank 0{}",
                       prepared_.groups.ranks(), here,
                       prepared_.groups.pipeline() == nullptr ? "model" : "stage", whole,
                       prepared_.groups.model_rank().tensor.slices()
                           ? ", and a slice of the positions between divided layers"
                           : "");
  }

  // All ranks call it. How evenly the model is cut, and what its stages wait at least.
  Result<std::string> stages_text() {
    Communicator& group = *prepared_.groups.pipeline();
    std::uint64_t here = 0;
    for (const TensorInfo& tensor : prepared_.engine->tensors())
      if (tensor.role == TensorInfo::Role::parameter) here += elements_of(tensor.shape);
    std::vector<std::uint64_t> all(static_cast<std::size_t>(group.size()));
    TRY(group.allgather(std::as_bytes(std::span(&here, 1)), std::as_writable_bytes(std::span(all))));
    return fmt::format(
        "pipelines of {} stages with {} parameters; with train.accumulate {}, a stage waits for "
        "the others {:.0f} % of a step at least",
        group.size(), fmt::join(all, ", "), spec_.accumulate,
        100 * pipeline_bubble(group.size(), spec_.accumulate));
  }

  struct Start {
    Position position;
    std::optional<int> shards;
    std::optional<EpochSums> epoch_sums = {};
    std::optional<ElasticWorld::Joined> entered = {};  // others have started before this rank
  };

  // The number of shards may be that of the first ranks: who comes later is told.
  Result<void> prepare_as(const std::optional<int>& shards_to_join) {
    if (!shards_to_join) return prepare(spec_, environment_, prepared_);
    if (!spec_.shards || spec_.trace)
      return fail(Error{.kind = ErrorKind::usage,
                        .what = spec_.trace ? kJoinsNoTrace : "a rank cannot join a training without shards",
                        .hint = "remove train.trace to let ranks join"});
    const auto of_job = spec_.shards->count;
    spec_.shards->count = *shards_to_join;
    auto done = prepare(spec_, environment_, prepared_);
    spec_.shards->count = of_job;
    return done;
  }

  Result<Start> begin_together() {
    Communicator& comm = *prepared_.comm;
    if (comm.elastic() == nullptr) return start_together();
    Start out;
    out.entered =
        TRY(start_elastic(*comm.elastic(), {.start = [&]() -> Result<void> {
                                              if (gpu_sums_) TRY(gpu_sums_->start_again());
                                              out = TRY(start_together());
                                              return {};
                                            },
                                            .barrier = [&] { return comm.barrier(); },
                                            .regrouped = [&] { reporter_->set_rank(comm.rank()); }}));
    return out;
  }

  Result<Start> start_together() {
    if (const Communicator* const pipeline = prepared_.groups.pipeline();
        pipeline != nullptr && pipeline->rank() > 0)
      spec_.decoding.rows = DecodeOptions::Rows::answers;
    TRY(check_agreement(spec_, prepared_));
    prepared_.tensors = TRY(tensors_of_model(prepared_));
    TRY(say_where());
    reporter_->data(hex(prepared_.data.train.fingerprint()), training_samples(spec_, prepared_));
    TRY(check_shards());
    TRY(check_sharded_state());
    TRY(check_sync(spec_, *prepared_.comm));
    const Resumed resumed = TRY(start_position());
    const std::optional<int> shards = TRY(shards_of_training());
    if (prepared_.on_gpu != nullptr) TRY(connect_devices(shards));
    return Start{resumed.position, shards, resumed.epoch_sums};
  }

  // What the others have agreed on is compared by the launcher, before this rank is let in; its GPU is
  // connected when it is.
  Result<Start> join_later(int shards) {
    prepared_.tensors = TRY(tensors_of_model(prepared_));
    TRY(check_shards());
    make_gpu_sums(shards);
    return Start{Position{}, shards};
  }

  void tell_training(int shards) {
    shards_ = shards;
    const std::string job =
        hex(checksum(fmt::format("{} {} {} {}", prepared_.engine->plan_hash(),
                                 prepared_.data.train.fingerprint(), job_checksum(spec_), shards)));
    prepared_.comm->elastic()->set_job(job);
    reporter_->training(shards, job, why_none_joins());
  }

  // Whoever tried would find the same.
  std::string why_none_joins() const { return spec_.trace ? kJoinsNoTrace : ""; }

  void make_gpu_sums(int shards) {
    if (prepared_.on_gpu == nullptr || gpu_sums_) return;
    gpu_sums_.emplace(*prepared_.on_gpu, prepared_.device, shards * spec_.accumulate);
  }

  void hand_over() {
    checkpoints_.reset();
    reporter_->stop_leading();
  }

  // Ranks of an elastic run have started, and one that enters later takes no part in a broadcast; but all of
  // them know the launcher's folder.
  Result<std::filesystem::path> folder_of_run(const std::filesystem::path& of_first) {
    return prepared_.comm->elastic() == nullptr ? common_folder(of_first)
                                                : metrics_folder(spec_, environment_);
  }

  // Rank 0's, on all ranks.
  Result<std::filesystem::path> common_folder(const std::filesystem::path& folder) {
    std::array<char, 4096> name{};
    if (folder.string().size() >= name.size())
      return fail(ErrorKind::input, "the run's folder has a name of more than {} bytes", name.size() - 1);
    folder.string().copy(name.data(), name.size() - 1);
    TRY(prepared_.comm->broadcast(std::as_writable_bytes(std::span(name)), 0));
    return std::filesystem::path(name.data());
  }

  Result<void> say_where() {
    for (const std::string& warning : spec_.warnings) reporter_->note("warning: " + warning);
    for (const std::string& found : prepared_.data.notes) reporter_->note(found);
    if (const std::string how = prepared_.comm->note(); !how.empty()) reporter_->note(how);
    if (!prepared_.device.said.empty()) reporter_->note(prepared_.device.said);
    if (spec_.decoding.decoder) reporter_->note("JPEGs are decoded by the engines of the GPU, by nvJPEG");
    if (prepared_.groups.tensor() != nullptr) reporter_->note(division_text());
    if (prepared_.groups.pipeline() != nullptr) reporter_->note(TRY(stages_text()));
    return {};
  }

  Result<void> connect_devices(std::optional<int> shards) {
    std::string how;
    if (shards) {
      make_gpu_sums(*shards);
      TRY(runtime::check_shards(*shards, prepared_.data_group().size()));
      how = TRY(gpu_sums_->connect(prepared_.data_group()));
    } else {
      how = TRY(connect_gpus(*prepared_.on_gpu, prepared_.device, {*prepared_.comm, prepared_.groups}, spec_,
                             environment_));
    }
    if (!how.empty()) reporter_->note(how);
    return {};
  }

  // The rank that was the first before is lost, perhaps before it has told what is trained.
  Result<Checkpointing*> take_over(const Position& position) {
    TRY(reporter_->lead(TRY(metrics_folder(spec_, environment_)), position.step));
    tell_training(shards_);
    if (spec_.checkpoint.folder.empty() || spec_.benchmark) return nullptr;
    TRY(open_checkpoints());
    return checkpoints_.get();
  }

  // Once a rank is lost, what another one of this run holds of the folder is free.
  Result<void> open_checkpoints() {
    checkpoints_.reset();
    const LeaseOwner owner = lease_owner(spec_, environment_);
    Checkpointing::LifeOfOwner life;
    if (ElasticWorld* const world = prepared_.comm->elastic(); world != nullptr && world->generation() > 0)
      life = [run = owner.run, folder = spec_.checkpoint.folder](const LeaseOwner& holder) {
        return holder.run == run ? Life::ended : life_of(holder.process, folder);
      };
    checkpoints_ =
        TRY(Checkpointing::open(spec_.checkpoint, *files_, *prepared_.engine,
                                manifest_facts(spec_, prepared_), owner, *reporter_, std::move(life)));
    return {};
  }

  // What only the ranks' own environment can tell.
  Result<void> check_shards() {
    if (!spec_.shards) return {};
    TRY(prepared_.engine->set_shard(0));
    const AllreduceChoice asked = TRY(choose_allreduce(environment_, spec_.allreduce.choice));
    if (asked.is_auto()) return {};
    return fail(
        Error{.kind = ErrorKind::usage,
              .what = fmt::format("train.shards is set, and {}: shards are added in an order of their "
                                  "own",
                                  asked.text()),
              .hint = fmt::format("unset {}, or remove train.shards", asked.asked_by)});
  }

  Result<void> check_sharded_state() {
    const std::optional<std::size_t> here = prepared_.engine->state_part_bytes();
    if (!here) return {};
    const AllreduceChoice asked = TRY(choose_allreduce(environment_, spec_.allreduce.choice));
    if (!asked.is_auto())
      return fail(
          Error{.kind = ErrorKind::usage,
                .what = fmt::format("train.optimizer.state is sharded, and {}: gradients are summed by "
                                    "a reduce-scatter",
                                    asked.text()),
                .hint = fmt::format("unset {}, or set train.optimizer.state to replicated", asked.asked_by)});
    const std::size_t all = prepared_.engine->gradients().size_bytes();
    std::size_t slots = spec_.optimizer.optimizer.traits->state.size() + (spec_.ema ? 1 : 0);
    reporter_->note(
        fmt::format("optimizer state: {:.1f} MB on rank 0, of {:.1f} MB that {} ranks have together",
                    static_cast<double>(*here) / 1e6, static_cast<double>(slots * all) / 1e6,
                    prepared_.data_group().size()));
    return {};
  }

  // The job's, else the checkpoint's, else the ranks of this first start: rank 0's on all ranks.
  Result<std::optional<int>> shards_of_training() {
    if (!spec_.shards) return std::optional<int>();
    Communicator& comm = *prepared_.comm;
    std::int32_t shards = spec_.shards->count.value_or(
        shards_there_.value_or(TRY(ranks_of_first_start(environment_, prepared_))));
    TRY(comm.broadcast(std::as_writable_bytes(std::span(&shards, 1)), 0));
    return std::optional<int>(shards);
  }

  // The ranks that have the whole state together, where they do and checkpoints are written: of a divided
  // model those of the first tensor group, or all where the optimizer's state is divided, too.
  Communicator* writers_of_parts() const {
    const bool sharded = prepared_.engine->state_part_bytes().has_value();
    if (spec_.checkpoint.folder.empty()) return nullptr;
    if (prepared_.groups.model() == nullptr) return sharded ? &prepared_.data_group() : nullptr;
    if (sharded) return prepared_.groups.all_in_groups();
    return prepared_.data_group().rank() == 0 ? prepared_.groups.model() : nullptr;
  }

  Result<Resumed> start_position() {
    std::optional<LoadedCheckpoint> chosen;
    Communicator* const writers = writers_of_parts();
    if (writers != nullptr) {
      checkpoints_ = TRY(Checkpointing::open_in_parts(
          spec_.checkpoint, *files_, *prepared_.engine, manifest_facts(spec_, prepared_),
          lease_owner(spec_, environment_), *reporter_,
          {*writers, prepared_.groups.ranks(), prepared_.groups.stages()}));
      if (prepared_.comm->rank() == 0) chosen = TRY(checkpoints_->choose(*reporter_));
    } else if (prepared_.comm->rank() == 0 && !spec_.checkpoint.folder.empty()) {
      if (checkpoints_ == nullptr) TRY(open_checkpoints());
      chosen = TRY(checkpoints_->choose(*reporter_));
    }
    const Resumed start =
        TRY(resume(*prepared_.engine, *prepared_.comm, chosen ? &*chosen : nullptr, spec_.checkpoint.folder));
    if (spec_.init_from && start.from == Resumed::From::start)
      for (const std::string& line :
           TRY(init_weights(*prepared_.engine, *spec_.init_from, prepared_.groups.pipeline())))
        reporter_->note(line);
    if (chosen) shards_there_ = chosen->manifest.shards.value_or(chosen->manifest.world);
    if (chosen) TRY(announce(*chosen, start.position));
    return start;
  }

  void tell_servers(const std::vector<ServerLoad>& loads) {
    if (loads.empty()) return;
    const Placement placement = spec_.parameter_server->placement;
    for (const std::string& line : table(loads, placement)) reporter_->note(line);
    reporter_->keep_for_result("parameter_servers", to_json(loads, placement));
  }

  // Another number is another global batch and learning rate in the middle of a training.
  Result<void> other_shards(const std::string& checkpoint) const {
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("train.shards is {}, and {} has {}", *spec_.shards->count,
                                          checkpoint, *shards_there_),
                      .hint = "set train.shards to auto, or start a new training in another checkpoint.dir"});
  }

  Result<void> announce(const LoadedCheckpoint& chosen, const Position& start) {
    const std::string checkpoint = (spec_.checkpoint.folder / chosen.name).string();
    const std::vector<std::string> changes = changed_settings(chosen.manifest.settings, settings_of(spec_));
    check_finished_ = [=](const std::string& why) { return check_finished(changes, checkpoint, why); };
    if (!spec_.benchmark && start.epoch >= spec_.epochs) {
      TRY(check_finished_(fmt::format("{} epochs are complete", start.epoch)));
      reporter_->note(
          fmt::format("already finished: {} holds {} epochs, {} steps", checkpoint, start.epoch, start.step));
      return {};
    }
    reporter_->note(fmt::format("resuming from {}: step {}, epoch {}, {} of {} samples seen", checkpoint,
                                start.step, start.epoch + 1, start.seen, training_samples(spec_, prepared_)));
    if (const int now = prepared_.data_group().size(), there = chosen.manifest.world; there != now)
      reporter_->note(fmt::format("ranks: {} in the checkpoint, {} now", there, now));
    if (spec_.shards && spec_.shards->count.value_or(*shards_there_) != *shards_there_) {
      if (chosen.manifest.shards) return other_shards(checkpoint);
      reporter_->note(
          fmt::format("shards: {} in the checkpoint, {} now", *shards_there_, *spec_.shards->count));
    }
    for (const std::string& change : changes) reporter_->note(change);
    const std::string other = other_arithmetic(chosen.manifest.computed_with, computed_with(prepared_));
    if (!other.empty()) reporter_->note(other);
    return {};
  }

  TrainSpec spec_;
  const Environment& environment_;
  Ticks begin_;
  StopRequest stop_request_;
  std::unique_ptr<FileSystem> files_ = real_file_system();
  PreparedTraining prepared_;
  std::optional<Reporter> reporter_;
  std::unique_ptr<ServerClient> servers_;  // where they are processes of their own
  std::unique_ptr<Checkpointing> checkpoints_;
  std::optional<GpuShardSums> gpu_sums_;  // of shards
  std::function<Result<void>(const std::string&)> check_finished_;
  std::optional<int> shards_there_;  // in the checkpoint, on rank 0
  int shards_ = 0;                   // of an elastic training, once it is told
};

}  // namespace

void print_error(const Error& error) {
  fmt::print(stderr, "dlrun-train: error: {}\n", error.text());
  std::fflush(stderr);
}

int run_session(TrainSpec spec, const Environment& environment, Ticks begin) {
  const auto roles = server_roles_of(environment);
  const auto usable = roles ? use_server_processes(spec, roles->servers) : tl::unexpected(roles.error());
  if (!usable) return print_error(usable.error()), to_int(exit_code(usable.error().kind));
  if (roles->own == ServerRoles::Own::server) return run_server_session(spec, environment);
  watch_stop_signals();
  Session session(spec, environment, begin);
  const auto ending = session.run();
  if (!ending) return session.fail_all(ending.error());
  const auto told = session.output();
  if (!told) print_error(told.error());
  if (*ending == Ending::finished || *ending == Ending::left)
    return to_int(told ? ExitCode::done : exit_code(told.error().kind));
  if (!spec.checkpoint.folder.empty()) return to_int(ExitCode::again);
  // "Run me again" would be a lie where nothing was saved.
  die_of_signal(stop_signal() != 0 ? stop_signal() : SIGTERM);
}

}  // namespace dlrun::runtime
