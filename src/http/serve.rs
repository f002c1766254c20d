//! The one handler of all protocols: it begins the run that a request asks for, and sends it as its protocol does.

use aws_lc_rs::digest::{Context as Digest, SHA256};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use std::future::Future;
use std::sync::Arc;
use tracing::Instrument as _;

use super::address::for_people;
use super::body::Taken;
use super::branch::{self, Resolved};
use super::problem::Problem;
use super::replies::{ids_of, refusal, silence, view};
use super::request_id::RequestId;
use super::sse;
use super::views::{RUN_ID, header_value, headers_of};
use super::{Services, answer, chain, current, document, filler, given, hidden};
use crate::agent::ports::store::BeginError;
use crate::chat::approval::DecisionRule;
use crate::chat::caller::{Caller, Owner};
use crate::chat::causes::Causes;
use crate::chat::file::GivenFile;
use crate::chat::ids::{ConversationId, RunId};
use crate::chat::input::{Ask, Parent, RunInput, RunOptions, Screen};
use crate::dialect::agent_chat::Native;
use crate::dialect::asked::{Asked, Assistants, Choices, ConversationRef, Question, Shape, What};
use crate::dialect::repeats::Repeats;
use crate::dialect::reply::{Position, RefusalResponse, Reply};
use crate::dialect::{self, Dialect};
use crate::observe::ambient;
use crate::runs::chain::{Cause, Chain, ChainError, Context, Link, Pending};
use crate::runs::{Attached, Request, Runs, StartError};

/// The longest `Idempotency-Key`, in bytes.
const MAX_KEY_BYTES: usize = 255;

/// A request of a protocol.
pub(super) struct Call {
    pub(super) services: Services,
    pub(super) caller: Caller,
    pub(super) request_id: RequestId,
    /// The part of the path that the route leaves open.
    pub(super) path: Option<String>,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Taken,
}

/// Carries out what a request asks for, and shows it. What is refused before anything has begun is a [`Problem`], but for
/// what its protocol tells in a stream.
pub(super) async fn serve(dialect: Option<Arc<dyn Dialect>>, call: Call) -> Result<Response, Problem> {
    let dialect = dialect.ok_or_else(Problem::internal)?;
    let source = Source { dialect, call: Arc::new(call) };
    let (asked, request) = source.read(false).await?;
    carry_out((source.call.services.clone(), source.call.caller.clone()), asked, request, (Some(source), None)).await
}

/// What a request was read from.
pub(super) struct Source {
    dialect: Arc<dyn Dialect>,
    call: Arc<Call>,
}

impl Source {
    /// The request; where results in it are `unawaited`, as one that tells of them.
    async fn read(&self, unawaited: bool) -> Result<(Asked, Request), Problem> {
        let (dialect, call) = (self.dialect.clone(), self.call.clone());
        let intake = &self.call.services.intake;
        intake.work(self.call.body.len(), move || read(&*dialect, &call, unawaited)).await
    }
}

/// The same of a request that was read already, from a source that can be read once more or from a body. Their memory counts
/// until all that they have brought is kept.
pub(super) async fn carry_out(
    (services, caller): (Services, Caller),
    asked: Asked,
    request: Request,
    (source, body): (Option<Source>, Option<Taken>),
) -> Result<Response, Problem> {
    let Asked { what, rule, conversation, options, mark: _, shape, mut reply } = asked;
    let (owner, again) = (caller.owner.clone(), caller.clone());
    let numbered_in = match &conversation {
        ConversationRef::Id(_)
        | ConversationRef::Existing(_)
        | ConversationRef::OfRun(_)
        | ConversationRef::Current => None,
        ConversationRef::Number(_, screen) => Some((screen.clone(), caller.known_as.clone())),
    };
    let is_current = matches!(conversation, ConversationRef::Current);
    let id = request.id.clone();
    let turn = Turn { services: &services, caller, rule, conversation, options, request };
    let is_hidden = reply.shows_last_only() || matches!(what, What::Both(..));
    let (attached, chain) = match turn.begin(what, &mut *reply).await {
        Ok(begun) => begun,
        Err(NotBegun::Problem(problem)) => return Err(*problem),
        Err(NotBegun::Chain(error)) => match source {
            // Its client goes on with what it knows, or it could not go on at all.
            Some(source) if source.dialect.is_retold() && error.is_unawaited() => {
                let (asked, request) = source.read(true).await?;
                drop(source);
                return Box::pin(carry_out((services, again), asked, request, (None, None))).await;
            }
            _ => return refused(&services, &owner, error, shape, &mut *reply, &id).await,
        },
    };
    drop((source, body));
    if is_current {
        current::choose(&services, &owner, &attached.conversation).await;
    }
    let number = match numbered_in {
        None => None,
        Some((screen, known_as)) => number(&services, &owner, known_as.as_deref(), &screen, &attached).await,
    };
    if reply.wants_session() {
        match services.sessions.session(&owner, &attached.conversation).await {
            Ok(session) => session.into_iter().for_each(|session| reply.learn(session)),
            Err(error) => tracing::error!(error = %Causes(&error), run.id = %attached.run, "session not read"),
        }
    }
    if is_hidden && !chain.is_at_its_end() {
        return show_last(&services, owner, (attached, chain, number), shape, reply).await;
    }
    Ok(show(&services, owner, Begun { attached, chain: Some(chain), number }, shape, reply).await)
}

/// The request as its protocol reads it, and as its run needs it.
fn read(dialect: &dyn Dialect, call: &Call, unawaited: bool) -> Result<(Asked, Request), Problem> {
    let Call { services, caller, request_id, path, uri, headers, body } = call;
    let public_url = for_people(services, headers);
    let asked = dialect.decode(&dialect::Request {
        path: path.as_deref(),
        query: uri.query().unwrap_or_default(),
        headers,
        body,
        unawaited,
        assistants: &Offered { runs: &services.runs, caller },
        roles: &caller.roles,
        public_url: &public_url,
    })?;
    let request = request(request_id.clone(), headers, &asked.mark, body)?;
    let digest = || digest_of(&asked.mark, &dialect.repeated(headers, body));
    let request = repeatable(request, dialect.repeats(headers), digest);
    Ok((asked, request))
}

/// A request that was read.
struct Turn<'a> {
    services: &'a Services,
    caller: Caller,
    rule: DecisionRule,
    conversation: ConversationRef,
    options: RunOptions,
    request: Request,
}

/// Why nothing was begun: what any protocol tells in the same way, and what its own may tell differently.
enum NotBegun {
    Problem(Box<Problem>),
    Chain(ChainError),
}

impl<E: Into<Problem>> From<E> for NotBegun {
    fn from(error: E) -> Self {
        Self::Problem(Box::new(error.into()))
    }
}

impl From<ChainError> for NotBegun {
    fn from(error: ChainError) -> Self {
        Self::Chain(error)
    }
}

impl Turn<'_> {
    /// Begins the first run, with those that follow.
    async fn begin(self, mut what: What, reply: &mut dyn Reply) -> Result<(Attached, Chain), NotBegun> {
        let Self { services, caller, rule, conversation, options, request } = self;
        let conversation = match (conversation, &what) {
            (ConversationRef::Id(conversation), _) => conversation,
            (ConversationRef::Current, _) => current::find(services, &caller.owner).await?,
            (ConversationRef::Existing(id), _) => Some(existing(services, &caller.owner, &id).await?),
            (ConversationRef::OfRun(run), _) => match of_run(services, &caller.owner, run).await? {
                Some(conversation) => Some(conversation),
                None => {
                    what = what.told_anew().ok_or_else(|| ChainError::from(StartError::NoSuchRun))?;
                    None
                }
            },
            (ConversationRef::Number(Some(number), _), What::Answer(_)) => {
                services.chats.numbered(&caller.owner, number).await?
            }
            (ConversationRef::Number(..), _) => None,
        };
        let decisions = match &what {
            What::Answer(_) | What::Both(..) => &[][..],
            What::Decide(decisions, _) => decisions,
        };
        let pending = match (rule, &conversation) {
            (DecisionRule::All, Some(thread)) => {
                services.runs.pending(&caller.owner, thread, &request, decisions).await?
            }
            _ => Pending::default(),
        };
        let mut context = Context { caller, conversation, rule, options, request };
        let links = match what {
            What::Answer(question) => {
                let options = std::mem::take(&mut context.options);
                let (ask, parent) = placed(services, &context, pending, &question, reply).await?;
                let question = Question { ask: ask.unwrap_or(question.ask), ..question };
                vec![Link::Ask(Box::new(input(services, &context, question, parent, options).await?))]
            }
            What::Both(first, then) => {
                let held = pending.held();
                if !pending.is_again && !held.is_empty() {
                    return Err(ChainError::from(Cause::Waiting(held)).into());
                }
                let options = std::mem::take(&mut context.options);
                // The name is that of the user's message.
                let of_results = RunOptions { asked_as: None, ..options.clone() };
                let first = input(services, &context, *first, None, of_results).await?;
                let then = input(services, &context, *then, None, options).await?;
                vec![Link::Ask(Box::new(first)), Link::Ask(Box::new(then))]
            }
            What::Decide(decisions, then) => {
                let mut links = match rule {
                    DecisionRule::All => services.runs.settle(&context, pending, decisions).await?,
                    DecisionRule::Any | DecisionRule::Conversation => decisions.into_iter().map(Link::Decide).collect(),
                };
                if let Some(question) = then {
                    let input = input(services, &context, question, None, context.options.clone()).await?;
                    links.push(Link::Ask(Box::new(input)));
                }
                links
            }
        };
        let mut chain = Chain::new(services.runs.clone(), context, links);
        match chain.next().await {
            None => Err(ChainError::from(Cause::NothingLeft).into()),
            Some(Ok(attached)) => Ok((attached, chain)),
            Some(Err(error)) => Err(error.into()),
        }
    }
}

/// The caller's conversation of that id.
async fn existing(services: &Services, owner: &Owner, id: &str) -> Result<ConversationId, NotBegun> {
    let none = || NotBegun::from(ChainError::from(Cause::NoSuchConversation));
    let id = ConversationId::parse(id).map_err(|_| none())?;
    let found = services.places.head(owner, &id).await.map_err(BeginError::from).map_err(StartError::from)?;
    found.map(|_| id).ok_or_else(none)
}

/// The conversation of the caller's run.
async fn of_run(services: &Services, owner: &Owner, run: RunId) -> Result<Option<ConversationId>, NotBegun> {
    let found = services.runs.find(owner, run).await.map_err(BeginError::from).map_err(StartError::from)?;
    Ok(found.map(|run| run.conversation))
}

/// The text of a question that names a stored message, and the message that it goes on from, unless that is the newest.
async fn placed(
    services: &Services,
    context: &Context,
    pending: Pending,
    question: &Question,
    reply: &mut dyn Reply,
) -> Result<(Option<Ask<GivenFile>>, Option<Parent>), NotBegun> {
    let held = pending.held();
    match &question.ask {
        // Results belong to the newest run, whose client cannot go on without them.
        Ask::Results(_) => reply.waits_besides(&held),
        Ask::Message { .. } | Ask::Again if !pending.is_again && !held.is_empty() => {
            return Err(ChainError::from(Cause::Waiting(held)).into());
        }
        Ask::Message { .. } | Ask::Again => {}
    }
    if pending.is_again {
        return Ok((None, None));
    }
    match branch::resolve(services, context, question.branch.clone(), &question.ask).await? {
        Resolved::Newest => Ok((None, None)),
        Resolved::At(parent) => Ok((None, Some(parent))),
        Resolved::Again(message) => Ok((Some(Ask::Again), Some(message))),
        Resolved::Nowhere(message) => Err(ChainError::from(Cause::NotOnBranch(message)).into()),
    }
}

/// The question as its run needs it: its files are kept.
async fn input(
    services: &Services,
    context: &Context,
    question: Question,
    parent: Option<Parent>,
    options: RunOptions,
) -> Result<RunInput, Problem> {
    let Question { ask, screen, branch: _, earlier, unlisted } = question;
    let (ask, earlier) = given::kept(services, &context.caller.owner, ask, earlier).await?;
    Ok(RunInput { ask, screen, conversation: context.conversation.clone(), parent, earlier, unlisted, options })
}

/// The answer where nothing was begun.
async fn refused(
    services: &Services,
    owner: &Owner,
    not: ChainError,
    shape: Shape,
    reply: &mut dyn Reply,
    request: &str,
) -> Result<Response, Problem> {
    match reply.refused(&refusal(&not, request)) {
        RefusalResponse::Stream(frames) => return Ok((sse::HEADERS, frames).into_response()),
        RefusalResponse::Mistake(mistake) => return Err(mistake.into()),
        RefusalResponse::AsUsual => {}
    }
    match not.cause {
        Cause::Start(StartError::Joined { run, why }) => answer::joined(services, owner, run, why, shape).await,
        _ => Err(Problem::not_begun(not)),
    }
}

/// The number of the run's conversation. One that cannot be given is none: its client then begins another conversation with
/// its next message.
async fn number(
    services: &Services,
    owner: &Owner,
    known_as: Option<&str>,
    screen: &Screen,
    attached: &Attached,
) -> Option<i64> {
    let app = services.runs.app_at(screen).unwrap_or_default();
    match services.chats.number(owner, known_as, &attached.conversation, &app).await {
        Ok(number) => Some(number),
        Err(error) => {
            tracing::error!(error = %Causes(&error), conversation.id = %attached.conversation, "chat not numbered");
            None
        }
    }
}

/// A run to send.
pub(super) struct Begun {
    pub(super) attached: Attached,
    /// What follows.
    pub(super) chain: Option<Chain>,
    /// Its conversation's number.
    pub(super) number: Option<i64>,
}

/// The run as its protocol shows it: a stream of its events, its answer when it is there, or, of one in the background, where
/// to look.
pub(super) async fn show(
    services: &Services,
    owner: Owner,
    begun: Begun,
    shape: Shape,
    mut reply: Box<dyn Reply>,
) -> Response {
    let Begun { attached, chain, number } = begun;
    let ids = ids_of(&attached, number);
    let headers = headers_of(&attached);
    match shape {
        Shape::Record if attached.background => match reply.begun(&ids) {
            Some(document) => (headers, document::json(document)).into_response(),
            None => (headers, answer::accepted(services, &owner, &attached).await).into_response(),
        },
        Shape::Record => (headers, answer::whole(services, owner, attached).await).into_response(),
        Shape::Document => {
            let besides = besides(&*reply, &ids);
            match reply.document(ids) {
                Some(document) => {
                    (headers, besides, document::whole(services, attached, document).await).into_response()
                }
                None => stream(services, attached, None, number, reply),
            }
        }
        Shape::Stream => stream(services, attached, chain, number, reply),
    }
}

/// The last run of those from the given one on, as its protocol shows it. The others go on first, and the answer is kept open
/// meanwhile, as it is while a run is silent.
///
/// # Errors
/// When the next of them did not begin, and nothing was sent yet.
async fn show_last(
    services: &Services,
    owner: Owner,
    (first, mut chain, number): (Attached, Chain, Option<i64>),
    shape: Shape,
    mut reply: Box<dyn Reply>,
) -> Result<Response, Problem> {
    let (ids, silence) = (ids_of(&first, number), silence(services, &*reply));
    let (mut headers, besides) = (headers_of(&first), besides(&*reply, &ids));
    // That of the run that is shown is not known yet.
    headers.remove(RUN_ID);
    let (here, services) = (services.clone(), services.clone());
    if shape == Shape::Stream {
        let media_type = [(header::CONTENT_TYPE, HeaderValue::from_static(reply.options().media_type))];
        let last = async move {
            match hidden::last(&services, &owner, first, &mut chain).await {
                Ok(attached) => {
                    let view = view(&services, &mut *reply, &attached, number, Position::ALONE);
                    sse::body(attached, view)
                }
                Err(not) => {
                    tracing::warn!(error = %not.cause, "a later run of the request did not begin");
                    Body::from(reply.broken_off(&refusal(&not, chain.request_id())))
                }
            }
        };
        let body = filler::until(silence, sse::COMMENT, around(last));
        return Ok((sse::HEADERS, media_type, headers, besides, body).into_response());
    }
    let asks = owner.clone();
    let mut last = Box::pin(around(async move {
        match hidden::last(&services, &owner, first, &mut chain).await {
            Ok(attached) => {
                let begun = Begun { attached, chain: None, number };
                Ok(show(&services, owner, begun, shape, reply).await)
            }
            Err(not) => Err((not, chain, reply)),
        }
    }));
    match document::in_time(silence, last.as_mut()).await {
        Some(Ok(response)) => Ok(response),
        Some(Err((not, chain, mut reply))) => refused(&here, &asks, not, shape, &mut *reply, chain.request_id()).await,
        None => {
            let later = async move {
                match last.await {
                    Ok(response) => response.into_body(),
                    Err((not, _, mut reply)) => {
                        tracing::warn!(error = %not.cause, "a later run of the request did not begin");
                        let document = reply.document(ids).map(|mut document| document.lost().into_body());
                        Body::from(document.unwrap_or_default())
                    }
                }
            };
            Ok((headers, besides, document::padded(silence, later)).into_response())
        }
    }
}

/// The same with what is around the request, for a body that is made when its handler has returned.
fn around<F: Future>(later: F) -> impl Future<Output = F::Output> {
    ambient::inherited(ambient::current(), later.in_current_span())
}

/// A run of the native protocol that was begun by other means than a chat turn, sent like one.
///
/// # Errors
/// When it did not start, or is an earlier one that cannot be read any more in that shape.
pub(super) async fn respond(
    services: &Services,
    owner: Owner,
    started: Result<Attached, StartError>,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let (shape, reply) = (Native::shape(headers), Box::new(Native::to(headers)));
    match started {
        Ok(attached) => Ok(show(services, owner, Begun { attached, chain: None, number: None }, shape, reply).await),
        Err(StartError::Joined { run, why }) => answer::joined(services, &owner, run, why, shape).await,
        Err(error) => Err(error.into()),
    }
}

/// The headers that the protocol has besides.
fn besides(reply: &dyn Reply, ids: &dialect::RunIds) -> HeaderMap {
    let named = reply.headers(ids).into_iter();
    named.map(|(name, value)| (HeaderName::from_static(name), header_value(&value))).collect()
}

/// The run's events from where `attached` stands, then those of what follows.
pub(super) fn stream(
    services: &Services,
    attached: Attached,
    chain: Option<Chain>,
    number: Option<i64>,
    mut reply: Box<dyn Reply>,
) -> Response {
    let ids = ids_of(&attached, number);
    let besides = besides(&*reply, &ids);
    let media_type = reply.options().media_type;
    let headers = headers_of(&attached);
    let body = match chain.filter(|chain| !chain.is_at_its_end()) {
        Some(rest) => chain::body(services.clone(), attached, rest, number, reply),
        None => {
            let view = view(services, &mut *reply, &attached, number, Position::ALONE);
            sse::body(attached, view)
        }
    };
    let mut response = (sse::HEADERS, headers, besides, body).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// The request as its run needs it. `what` distinguishes requests with the same body: it holds what comes from the
/// path, the query or a header and changes the request.
///
/// # Errors
/// When its `Idempotency-Key` is none.
pub(super) fn request(id: RequestId, headers: &HeaderMap, what: &str, body: &[u8]) -> Result<Request, Problem> {
    let mut keys = headers.get_all("idempotency-key").iter();
    let key = match (keys.next(), keys.next()) {
        (None, _) => return Ok(Request { id: id.0, key: None, may_repeat: false }),
        (Some(key), None) => key.to_str().ok().map(str::trim),
        (Some(_), Some(_)) => None,
    };
    let Some(key) = key.filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len())) else {
        return Err(Problem::bad_request(format!(
            "Idempotency-Key must be given once and have 1 to {MAX_KEY_BYTES} printable ASCII characters"
        )));
    };
    Ok(Request { id: id.0, key: Some((key.to_owned(), digest_of(what, body))), may_repeat: false })
}

/// The request with a key of ours, where its client has none and may send it again all the same.
/// `digest` makes the digest of what both have.
fn repeatable(request: Request, repeats: Repeats, digest: impl FnOnce() -> Vec<u8>) -> Request {
    let may_repeat = match repeats {
        _ if request.key.is_some() => return request,
        Repeats::Never => return request,
        Repeats::First => false,
        Repeats::Maybe => true,
    };
    let key = format!("unnamed {}", RunId::fresh());
    Request { key: Some((key, digest())), may_repeat, ..request }
}

fn digest_of(what: &str, body: &[u8]) -> Vec<u8> {
    let mut digested = Digest::new(&SHA256);
    for part in [what.as_bytes(), b"\n", body] {
        digested.update(part);
    }
    digested.finish().as_ref().to_vec()
}

/// The assistants and models of a caller.
pub(super) struct Offered<'a> {
    pub(super) runs: &'a Runs,
    pub(super) caller: &'a Caller,
}

impl Assistants for Offered<'_> {
    fn offered(&self) -> Vec<&str> {
        self.runs.profiles_for(self.caller).into_iter().map(|profile| profile.context_type.as_str()).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.runs.app_at(&Screen::Type(name.to_owned())).is_some()
    }

    fn choices(&self, name: &str) -> Option<Choices> {
        let profiles = self.runs.profiles_for(self.caller);
        let profile = profiles.into_iter().find(|profile| profile.context_type == name)?;
        let menu = &profile.models;
        Some(Choices {
            temperature: menu.temperature,
            effort: menu.effort,
            max_tokens: menu.max_tokens,
            most_tokens: menu.choice.max_tokens.unwrap_or(u32::MAX),
            instructions: profile.takes_instructions,
        })
    }
}
