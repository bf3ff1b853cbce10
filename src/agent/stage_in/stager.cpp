#include "src/agent/stage_in/stager.hpp"

#include <utility>

#include "schedulers/node_identity.hpp"
#include "src/base/json.hpp"

namespace dlrun::agent {
namespace {

constexpr Seconds kMovedInterval{1};
constexpr Seconds kEndLimit{30};  // for threads that hang in a file system

// Marks work beside the loop, whose folders are not to be removed under it.
class Working {
 public:
  explicit Working(std::shared_ptr<StageControl> control) : control_(std::move(control)) {}
  ~Working() { control_->end(); }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

 private:
  std::shared_ptr<StageControl> control_;
};

Result<Json> survey_all(const std::vector<plan::StageIn>& items, std::vector<SourceTree>& out) {
  Json told = Json::array();
  for (const plan::StageIn& item : items) {
    out.push_back(TRY(survey_source(item)));
    const SourceTree& tree = out.back();
    told.push_back({{"fingerprint", tree.fingerprint}, {"bytes", tree.bytes}, {"files", tree.files}});
  }
  return told;
}

}  // namespace

Stager::Stager(EventLoop& loop, std::optional<Token> own, std::shared_ptr<CleanupList> cleanup,
               Environment environment, Tell tell)
    : loop_(loop),
      own_(own),
      cleanup_(std::move(cleanup)),
      environment_(std::move(environment)),
      tell_(std::move(tell)) {}

void Stager::begin(const action::PrepareNode& prepare) {
  slice_ = prepare.slice;
  node_local_ = prepare.node_local;
}

const std::string& Stager::host_of(NodeIndex node) const {
  return slice_->plan.nodes.at(static_cast<std::size_t>(node.get())).host.get();
}

void Stager::perform(const action::SurveyStage&) {
  control_->begin();
  surveying_ = std::make_unique<Aside<Result<Json>>>(
      loop_,
      [slice = slice_, sources = sources_, control = control_] {
        const Working working(control);
        return survey_all(slice->plan.stage.items, *sources);
      },
      [this](Result<Json> found) { tell_(event::StageSurveyed{std::move(found)}); });
}

// The run's own is for its head: the one of the copies is derived from it.
Result<Token> Stager::token_of(const std::string& told) const {
  if (!told.empty()) return Token::parse(told);
  if (!own_) return fail(ErrorKind::internal, "the head tells no token for what is staged");
  return own_->derived("stage");
}

void Stager::perform(const action::ClaimStage& claim) {
  folders_ = std::make_shared<ItemFolders>(slice_->plan.stage, slice_->plan.job_id, node_local_, *cleanup_);
  control_->begin();
  claiming_ = std::make_unique<Aside<Result<std::vector<int>>>>(
      loop_,
      [slice = slice_, folders = folders_, cleanup = cleanup_, control = control_,
       sources = claim.sources]() -> Result<std::vector<int>> {
        const Working working(control);
        return folders->claim(TRY(read_sources(sources, slice->plan.stage.items.size())));
      },
      [this, token = claim.token](Result<std::vector<int>> needs) {
        if (!needs) return tell_(event::StageClaimed{fail(std::move(needs).error())});
        tell_(event::StageClaimed{open_port(token, std::move(*needs))});
      });
}

Result<protocol::from_agent::StageNeeds> Stager::open_port(const std::string& token, std::vector<int> items) {
  token_ = TRY(token_of(token));
  port_ = TRY(AgentPort::open(loop_, *token_, [this](const AgentIdentity& identity, UniqueFd connection) {
    on_call(identity, std::move(connection));
  }));
  return protocol::from_agent::StageNeeds{std::move(items), port_->port().get(), this_machine().addresses};
}

// Only a node that is told so calls, but it may be told before we are.
void Stager::on_call(const AgentIdentity& identity, UniqueFd connection) {
  if (!identity.task) return;
  if (!expected_ || expected_->get() != *identity.task) {
    callers_[*identity.task] = std::move(connection);
    return;
  }
  next_->called(std::move(connection));
}

Transfer Stager::transfer_of(const protocol::to_agent::StageChain& chain) const {
  Transfer out{.items = slice_->plan.stage.items,
               .sent = chain.items,
               .folders = folders_->to_write(),
               .sources = *sources_,
               .environment = environment_};
  if (chain.previous)
    out.previous = PreviousNode{
        .host = host_of(*chain.previous),
        .addresses = chain.addresses,
        .port = Port(static_cast<std::uint16_t>(chain.port)),
        .token = *token_,
        .own = {
            .names = {fmt::format("node {}", slice_->node)}, .addresses = {}, .task = slice_->node.get()}};
  if (chain.next) {
    out.next_host = host_of(*chain.next);
    out.next = next_;
  }
  return out;
}

void Stager::perform(const action::CopyStage& copy) {
  const Transfer transfer = transfer_of(copy.chain);
  if (copy.chain.next) {
    expected_ = copy.chain.next;
    if (auto early = callers_.extract(expected_->get())) next_->called(std::move(early.mapped()));
  }
  const int copied = static_cast<int>(transfer.folders.size());
  control_->begin();
  copying_ = std::make_unique<Aside<Result<int>>>(
      loop_,
      [transfer, copied, folders = folders_, cleanup = cleanup_, control = control_]() -> Result<int> {
        const Working working(control);
        if (!transfer.sent.empty()) TRY(run_transfer(transfer, *control));
        TRY(folders->complete(*control));
        return copied;
      },
      [this](Result<int> done) {
        event::StageCopied told{.copied = std::move(done), .bytes = control_->moved()};
        tell_(std::move(told));
      });
  if (!transfer.sent.empty()) loop_.after(kMovedInterval, [this] { tell_moved(); });
}

void Stager::tell_moved() {
  if (!is_copying()) return;
  tell_(event::StageMoved{control_->moved()});
  loop_.after(kMovedInterval, [this] { tell_moved(); });
}

// All may begin anew.
void Stager::forget() {
  surveying_.reset();
  claiming_.reset();
  copying_.reset();
  folders_.reset();
  callers_.clear();
  expected_.reset();
  control_ = std::make_shared<StageControl>();
  sources_ = std::make_shared<std::vector<SourceTree>>();
  next_ = std::make_shared<NextNode>();
}

void Stager::perform(const action::RemoveStage&) {
  control_->stop();
  port_.reset();
  removing_ = std::make_unique<Aside<std::vector<std::string>>>(
      loop_,
      [folders = folders_, cleanup = cleanup_, control = control_]() -> std::vector<std::string> {
        if (!folders) return {};
        if (!control->await_end(kEndLimit))
          return {"what was staged is left: the file system still holds up the copying"};
        return folders->release();
      },
      [this](std::vector<std::string> left) {
        forget();
        tell_(event::StageRemoved{std::move(left)});
      });
}

}  // namespace dlrun::agent
