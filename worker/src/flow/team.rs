//! The agents of a node as a pure function of the steps that they have taken: one agent, a swarm, or a manager with
//! workers. An agent alone is a team of one.
//!
//! One agent owns the conversation with the user. An agent that is sent a message answers in a private
//! conversation with its caller, and its answer is the outcome of the caller's call.

use super::answer;
use super::machine::Values;
use crate::model::ToolOffer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use turnstone_domain::CallId;
use turnstone_domain::message::{Message, RequestedCall, Role};
use turnstone_specs::agent_spec::model::{A2AAgent, Agent, AgenticComponent, Handoff, Head, OciAgent};
use turnstone_specs::agent_spec::{HAND_OVER, Property, SEND, SUBMIT};

/// The model calls between two messages of the user, unless the metadata of the agent says another number.
const MAX_ITERATIONS: u64 = 10;
/// The key of the metadata.
const ITERATIONS: &str = "max_iterations";

/// The text for a model that answers although no user reads it.
const NOBODY_READS: &str =
    "No user reads this. Complete the task with your tools, then call `submit_result`.";

/// The agents of a node, and the conversations that are open.
pub struct Team {
    members: Vec<Member>,
    /// The agent that owns the conversation with the user.
    main: usize,
    /// The private conversations that wait for an answer; the last one is under way.
    talks: Vec<Talk>,
    /// The model calls of the agents that own the conversation, since the last message of the user.
    calls: u64,
}

/// An agent of a team.
#[derive(Clone)]
pub enum Who {
    /// It calls a model.
    Agent(Arc<Agent>),
    /// It runs on another server.
    Remote(RemoteComponent),
}

/// An agent on another server.
#[derive(Clone)]
pub enum RemoteComponent {
    /// By A2A.
    A2a(Arc<A2AAgent>),
    /// Of Oracle's cloud.
    Oci(Arc<OciAgent>),
}

impl RemoteComponent {
    /// Returns its id, name and description.
    pub fn head(&self) -> &Head {
        match self {
            Self::A2a(agent) => &agent.head,
            Self::Oci(agent) => &agent.head,
        }
    }

    fn outputs(&self) -> &[Property] {
        match self {
            Self::A2a(agent) => &agent.outputs,
            Self::Oci(agent) => &agent.outputs,
        }
    }
}

impl Who {
    fn of(component: &AgenticComponent) -> Option<Self> {
        match component {
            AgenticComponent::A2AAgent(agent) => Some(Self::Remote(RemoteComponent::A2a(Arc::clone(agent)))),
            AgenticComponent::OciAgent(agent) => Some(Self::Remote(RemoteComponent::Oci(Arc::clone(agent)))),
            other => other.as_agent().map(Self::Agent),
        }
    }

    /// Returns its id, name and description.
    pub fn head(&self) -> &Head {
        match self {
            Self::Agent(agent) => &agent.head,
            Self::Remote(agent) => agent.head(),
        }
    }

    fn outputs(&self) -> &[Property] {
        match self {
            Self::Agent(agent) => &agent.outputs,
            Self::Remote(agent) => agent.outputs(),
        }
    }

    fn asks_user(&self) -> bool {
        match self {
            Self::Agent(agent) => agent.human_in_the_loop,
            // It yields its outputs with an answer; without outputs the conversation has no end.
            Self::Remote(agent) => agent.outputs().is_empty(),
        }
    }
}

struct Member {
    who: Who,
    /// The conversations of a remote agent on its server, by our threads.
    places: HashMap<Option<String>, RemotePlace>,
    /// The agents that it may send messages to.
    asks: Vec<usize>,
    /// The agents that it may hand the conversation over to.
    hands_over: Vec<usize>,
}

/// A message from one agent to another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Talk {
    /// The agent that asks, by its position.
    caller: usize,
    /// The agent that is asked.
    recipient: usize,
    /// The call whose outcome the answer becomes.
    call_id: CallId,
    /// The model calls of the recipient so far.
    #[serde(skip)]
    calls: u64,
}

/// The effect of a turn of an agent on its team, as PERSIST records it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The same agent continues.
    Continue,
    /// The user has answered.
    Heard,
    /// Other agents are asked, in this order.
    Asked(Vec<Talk>),
    /// The agent that was asked has answered.
    Answered,
    /// The conversation belongs to this agent now.
    HandedOver(usize),
    /// The remote agent has answered the user.
    Said(RemotePlace),
    /// The remote agent that was asked has answered.
    RemoteAnswered(RemotePlace),
    /// The node has these outputs.
    Finished(Values),
}

/// The place of the next message to a remote agent: a conversation on its server, and a task that waits for the message.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RemotePlace {
    /// The id of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The id of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// The consequence of a model's answer.
pub struct Consequence {
    /// Messages with the conversation that each belongs to.
    pub said: Vec<(Option<String>, Message)>,
    /// The effect on the team.
    pub step: Step,
}

impl Team {
    /// Returns the agents of a component; `None` when it has none of its own.
    pub fn of(component: &AgenticComponent) -> Option<Self> {
        let mut members: Vec<Member> = Vec::new();
        let add = |members: &mut Vec<Member>, component: &AgenticComponent| -> Option<usize> {
            let id = &component.head().id;
            if let Some(known) = members.iter().position(|known| known.who.head().id == *id) {
                return Some(known);
            }
            let who = Who::of(component)?;
            members.push(Member { who, places: HashMap::new(), asks: Vec::new(), hands_over: Vec::new() });
            Some(members.len() - 1)
        };
        match component {
            AgenticComponent::Swarm(swarm) => {
                add(&mut members, &swarm.first_agent)?;
                for (from, to) in &swarm.relationships {
                    let (from, to) = (add(&mut members, from)?, add(&mut members, to)?);
                    let asks = swarm.handoff != Handoff::Always && !members[from].asks.contains(&to);
                    let hands = swarm.handoff != Handoff::Never && !members[from].hands_over.contains(&to);
                    members[from].asks.extend(asks.then_some(to));
                    members[from].hands_over.extend(hands.then_some(to));
                }
            }
            AgenticComponent::ManagerWorkers(team) => {
                add(&mut members, &team.group_manager)?;
                for worker in &team.workers {
                    let worker = add(&mut members, worker)?;
                    members[0].asks.push(worker);
                }
            }
            alone => drop(add(&mut members, alone)?),
        }
        Some(Self { members, main: 0, talks: Vec::new(), calls: 0 })
    }

    /// Returns the agent of the current turn.
    pub fn who(&self) -> &Who {
        &self.members[self.active()].who
    }

    /// Returns the agent of the current turn, unless it runs on another server.
    pub fn agent(&self) -> Option<&Arc<Agent>> {
        match self.who() {
            Who::Agent(agent) => Some(agent),
            Who::Remote(_) => None,
        }
    }

    /// Returns the agent of the current turn, if it runs on another server, and the place of its next message.
    pub fn remote(&self, base: Option<&str>) -> Option<(&RemoteComponent, RemotePlace)> {
        let member = &self.members[self.active()];
        let Who::Remote(agent) = &member.who else { return None };
        Some((agent, member.places.get(&self.thread(base)).cloned().unwrap_or_default()))
    }

    /// Returns the conversation of the current turn inside that of the node.
    pub fn thread(&self, base: Option<&str>) -> Option<String> {
        match self.talks.last() {
            None => base.map(str::to_owned),
            Some(talk) => Some(self.private(base, talk.caller, talk.recipient)),
        }
    }

    /// Returns true if the agent of the current turn may ask the user.
    pub fn may_ask_user(&self) -> bool {
        self.talks.is_empty() && self.who().asks_user()
    }

    /// Returns true if the agent has called its model as often as it may before the user speaks again.
    pub fn is_exhausted(&self) -> bool {
        let own = self.who().head().metadata.get(ITERATIONS).and_then(Value::as_u64);
        self.made() >= own.unwrap_or(MAX_ITERATIONS)
    }

    /// Returns the text of an agent that is exhausted.
    pub fn exhaustion(&self) -> String {
        format!(
            "The agent has called its model {} times without an answer, which is the most it may.",
            self.made()
        )
    }

    /// Returns the tools by which the agent controls the run.
    pub fn offers(&self) -> Vec<ToolOffer> {
        let (member, mut offers) = (&self.members[self.active()], Vec::new());
        let named = |among: &[usize]| {
            let one = |at: &usize| {
                let head = self.members[*at].who.head();
                format!("{}: {}", head.name, head.description.as_deref().unwrap_or("an agent"))
            };
            among.iter().map(one).collect::<Vec<_>>().join("; ")
        };
        let names = |among: &[usize]| -> Vec<&str> {
            among.iter().map(|at| self.members[*at].who.head().name.as_str()).collect()
        };
        if !member.asks.is_empty() {
            let properties = json!({"recipient": {"type": "string", "enum": names(&member.asks)},
                                    "message": {"type": "string", "description": "The task, with all that the agent needs to know."}});
            offers.push(ToolOffer {
                name: SEND.to_owned(),
                description: format!(
                    "Sends a message to another agent and returns its answer. The agents: {}",
                    named(&member.asks)
                ),
                input_schema: json!({"type": "object", "properties": properties, "required": ["message", "recipient"]}),
            });
        }
        if self.talks.is_empty() && !member.hands_over.is_empty() {
            let recipient = json!({"type": "string", "enum": names(&member.hands_over)});
            offers.push(ToolOffer {
                name: HAND_OVER.to_owned(),
                description: format!(
                    "Hands the conversation with the user over to another agent, which sees all of it. The agents: {}",
                    named(&member.hands_over)
                ),
                input_schema: json!({"type": "object", "properties": {"recipient": recipient}, "required": ["recipient"]}),
            });
        }
        offers.extend(self.submission());
        offers
    }

    /// Returns true if a call is one of those that control the run.
    pub fn controls(&self, name: &str) -> bool {
        self.offers().iter().any(|offer| offer.name == name)
    }

    /// Decides what follows the answer of the agent's model.
    ///
    /// # Errors
    /// A sentence: the agent is exhausted and an output has no value.
    pub fn judge(&self, base: Option<&str>, answer: &Message) -> Result<Consequence, String> {
        let own = self.thread(base);
        if answer.tool_calls.is_empty() {
            return match self.talks.last() {
                Some(talk) => Ok(self.answered(base, talk, &answer.content)),
                None if self.who().asks_user() => Ok(Consequence { said: Vec::new(), step: Step::Heard }),
                None if self.is_exhausted() => {
                    let outputs = outputs(self.who().outputs(), &Value::Null);
                    let outputs = outputs.map_err(|why| format!("{} {why}", self.exhaustion()))?;
                    Ok(Consequence { said: Vec::new(), step: Step::Finished(outputs) })
                }
                None => {
                    let said = vec![(own, Message::text(Role::User, NOBODY_READS))];
                    Ok(Consequence { said, step: Step::Continue })
                }
            };
        }
        let mut found = Consequence { said: Vec::new(), step: Step::Continue };
        for call in answer.tool_calls.iter().filter(|call| self.controls(&call.name)) {
            let reported = self.control(base, call, &mut found);
            let outcome = |text: String| (own.clone(), Message::tool(call.call_id.clone(), text));
            found.said.extend(reported.map(outcome));
        }
        Ok(match (&found.step, self.talks.last()) {
            // The outputs of an agent that was asked are its answer.
            (Step::Finished(outputs), Some(talk)) => {
                let mut consequence = self.answered(base, talk, &json!(outputs).to_string());
                found.said.append(&mut consequence.said);
                Consequence { said: found.said, ..consequence }
            }
            _ => found,
        })
    }

    /// Decides what follows the answer of a remote agent.
    ///
    /// # Errors
    /// A sentence: the answer does not hold the outputs of the agent.
    pub fn heard(&self, base: Option<&str>, text: &str, place: RemotePlace) -> Result<Consequence, String> {
        let said = vec![(self.thread(base), Message::text(Role::Assistant, text))];
        if let Some(talk) = self.talks.last() {
            let mut consequence = self.answered(base, talk, text);
            consequence.said.splice(0..0, said);
            return Ok(Consequence { step: Step::RemoteAnswered(place), ..consequence });
        }
        let step = match self.who().outputs() {
            [] => Step::Said(place),
            declared => Step::Finished(outputs(declared, &json!(answer::read(declared, text)?))?),
        };
        Ok(Consequence { said, step })
    }

    /// Returns the consequence of a remote agent's failure, which is the outcome of the message to it; `None` when no other
    /// agent sent one.
    pub fn missed(&self, base: Option<&str>, why: &str) -> Option<Consequence> {
        self.talks.last().map(|talk| self.answered(base, talk, why))
    }

    /// Takes the step of a turn.
    pub fn take(&mut self, base: Option<&str>, step: &Step) {
        match step {
            Step::Said(place) | Step::RemoteAnswered(place) => {
                let (thread, active) = (self.thread(base), self.active());
                self.members[active].places.insert(thread, place.clone());
                if matches!(step, Step::RemoteAnswered(_)) {
                    self.talks.pop();
                }
            }
            Step::Continue => self.count(),
            Step::Heard => self.calls = 0,
            Step::Asked(talks) => {
                self.count();
                // The first one is under way first.
                self.talks.extend(talks.iter().rev().cloned());
            }
            Step::Answered => drop(self.talks.pop()),
            Step::HandedOver(to) => {
                self.count();
                self.main = *to;
            }
            Step::Finished(_) => {}
        }
    }

    fn made(&self) -> u64 {
        self.talks.last().map_or(self.calls, |talk| talk.calls)
    }

    fn count(&mut self) {
        match self.talks.last_mut() {
            Some(talk) => talk.calls += 1,
            None => self.calls += 1,
        }
    }

    fn active(&self) -> usize {
        self.talks.last().map_or(self.main, |talk| talk.recipient)
    }

    fn private(&self, base: Option<&str>, caller: usize, recipient: usize) -> String {
        let name = |at: usize| self.members[at].who.head().name.as_str();
        let base = base.map(|base| format!("{base}: ")).unwrap_or_default();
        format!("{base}{} and {}", name(caller), name(recipient))
    }

    /// The conversation in which an agent made a call: that of the talk below, or the one of the node.
    fn answered(&self, base: Option<&str>, talk: &Talk, text: &str) -> Consequence {
        let below = self.talks.iter().rev().skip(1).find(|below| below.recipient == talk.caller);
        let thread = match below {
            Some(below) => Some(self.private(base, below.caller, below.recipient)),
            None => base.map(str::to_owned),
        };
        let said = vec![(thread, Message::tool(talk.call_id.clone(), text))];
        Consequence { said, step: Step::Answered }
    }

    /// Performs a call that controls the run; returns its outcome, unless that comes later.
    fn control(&self, base: Option<&str>, call: &RequestedCall, found: &mut Consequence) -> Option<String> {
        if let Step::Finished(_) | Step::HandedOver(_) = found.step {
            return Some("This call was not made: the turn ended with a call before it.".to_owned());
        }
        let caller = self.active();
        let among = |members: &[usize]| {
            let wanted = call.arguments["recipient"].as_str().unwrap_or_default();
            let is_it = |at: &&usize| self.members[**at].who.head().name == wanted;
            let all =
                || members.iter().map(|at| self.members[*at].who.head().name.as_str()).collect::<Vec<_>>();
            let found = members.iter().find(is_it).copied();
            found.ok_or_else(|| {
                format!("There is no recipient `{wanted}`; choose one of {}.", all().join(", "))
            })
        };
        match call.name.as_str() {
            SUBMIT => match outputs(self.who().outputs(), &call.arguments) {
                Ok(outputs) => {
                    found.step = Step::Finished(outputs);
                    Some("The submission was successful.".to_owned())
                }
                Err(why) => Some(format!("The submission is not complete: {why}. Submit it again.")),
            },
            HAND_OVER => match among(&self.members[caller].hands_over) {
                Ok(to) => {
                    found.step = Step::HandedOver(to);
                    let name = &self.members[to].who.head().name;
                    Some(format!("The conversation was handed over to `{name}`, which answers from now on."))
                }
                Err(why) => Some(why),
            },
            _ => {
                let recipient = match among(&self.members[caller].asks) {
                    Ok(recipient) => recipient,
                    Err(why) => return Some(why),
                };
                let Some(message) = call.arguments["message"].as_str() else {
                    return Some("`message` is missing; send a text.".to_owned());
                };
                let waits = |talk: &Talk| talk.caller == recipient || talk.recipient == recipient;
                if self.talks.iter().any(waits) {
                    return Some(
                        "This agent waits for your answer already; answer instead of asking it.".to_owned(),
                    );
                }
                let mut talks = match std::mem::replace(&mut found.step, Step::Continue) {
                    Step::Asked(talks) => talks,
                    _ => Vec::new(),
                };
                if talks.iter().any(|talk| talk.recipient == recipient) {
                    found.step = Step::Asked(talks);
                    return Some(
                        "This agent was sent a message in the same answer; send the next one later."
                            .to_owned(),
                    );
                }
                let thread = self.private(base, caller, recipient);
                found.said.push((Some(thread), Message::text(Role::User, message)));
                talks.push(Talk { caller, recipient, call_id: call.call_id.clone(), calls: 0 });
                found.step = Step::Asked(talks);
                None
            }
        }
    }

    /// Returns the offer of the tool that returns the outputs. An agent that answers no user gets it even without
    /// outputs.
    fn submission(&self) -> Option<ToolOffer> {
        let (agent, is_main) = (self.agent()?, self.talks.is_empty());
        let input_schema = match agent.outputs.as_slice() {
            [] if agent.human_in_the_loop || !is_main => return None,
            [] => json!({"type": "object", "properties": {"summary": {"type": "string"}}}),
            outputs => answer::schema(outputs),
        };
        let asks = if agent.human_in_the_loop { "Ask the user for what is missing first." } else { "" };
        let description =
            format!("Ends the task with its results. Never make results up. {asks}").trim_end().to_owned();
        Some(ToolOffer { name: SUBMIT.to_owned(), description, input_schema })
    }
}

/// The outputs of an agent from the arguments of a submission: cast, and with their defaults.
fn outputs(of: &[Property], given: &Value) -> Result<Values, String> {
    let one = |output: &Property| {
        let given = given.get(&output.title).filter(|value| !value.is_null()).cloned();
        Ok((output.title.clone(), output.written(given)?))
    };
    of.iter().map(one).collect()
}
