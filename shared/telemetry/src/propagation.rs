//! Trace contexts across processes: read from a caller's headers, written to the headers of outgoing requests.
//!
//! A process that sends no spans of its own forwards the context that it received, so that a trace does not break on
//! it.

use crate::otlp::exports_spans;
use crate::span::Common;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The headers that carry a context between processes: names and values.
pub type Carried = BTreeMap<String, String>;

/// The format of a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// W3C `traceparent` and `tracestate`.
    TraceContext,
    /// W3C `baggage`.
    Baggage,
    /// The one header `b3`.
    B3,
    /// The headers `x-b3-*`.
    B3Multi,
    /// `uber-trace-id`.
    Jaeger,
}

impl Format {
    /// The valid values of `OTEL_PROPAGATORS`.
    pub(crate) const KNOWN: &'static str = "known are tracecontext, baggage, b3, b3multi, jaeger and none";

    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "tracecontext" => Self::TraceContext,
            "baggage" => Self::Baggage,
            "b3" => Self::B3,
            "b3multi" => Self::B3Multi,
            "jaeger" => Self::Jaeger,
            _ => return None,
        })
    }

    fn read(self, sent: &Carried, context: &Context) -> Context {
        let get = |name: &str| sent.get(name).map(String::as_str);
        let remote = |span: Option<SpanContext>| span.map(|span| context.with_remote_span_context(span));
        let read = match self {
            Self::TraceContext => {
                Some(TraceContextPropagator::new().extract_with_context(context, &Map(sent)))
            }
            Self::Baggage => Some(BaggagePropagator::new().extract_with_context(context, &Map(sent))),
            Self::B3 => remote(get("b3").and_then(|value| {
                let mut parts = value.split('-');
                span_context(parts.next()?, parts.next()?, parts.next() != Some("0"))
            })),
            Self::B3Multi => remote(get("x-b3-traceid").and_then(|trace| {
                span_context(trace, get("x-b3-spanid")?, get("x-b3-sampled") != Some("0"))
            })),
            Self::Jaeger => remote(get("uber-trace-id").and_then(|value| {
                let mut parts = value.split(':');
                let (trace, span, _, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
                span_context(trace, span, u8::from_str_radix(flags, 16).ok()? & 1 == 1)
            })),
        };
        read.unwrap_or_else(|| context.clone())
    }

    fn write(self, context: &Context, sent: &mut Carried) {
        let span = context.span().span_context().clone();
        let mut put = |name: &str, value: String| drop(sent.insert(name.to_owned(), value));
        let sampled = u8::from(span.is_sampled());
        match self {
            Self::TraceContext => TraceContextPropagator::new().inject_context(context, &mut MapMut(sent)),
            Self::Baggage => BaggagePropagator::new().inject_context(context, &mut MapMut(sent)),
            _ if !span.is_valid() => {}
            Self::B3 => put("b3", format!("{}-{}-{sampled}", span.trace_id(), span.span_id())),
            Self::B3Multi => {
                put("x-b3-traceid", span.trace_id().to_string());
                put("x-b3-spanid", span.span_id().to_string());
                put("x-b3-sampled", sampled.to_string());
            }
            Self::Jaeger => {
                put("uber-trace-id", format!("{}:{}:0:{sampled}", span.trace_id(), span.span_id()));
            }
        }
    }
}

/// Builds a context from its parts in hex; short trace ids, which B3 and Jaeger know, are padded.
fn span_context(trace: &str, span: &str, sampled: bool) -> Option<SpanContext> {
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let flags = TraceFlags::default().with_sampled(sampled);
    Some(SpanContext::new(trace, span, flags, true, TraceState::default())).filter(SpanContext::is_valid)
}

struct Map<'a>(&'a Carried);

impl Extractor for Map<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

struct MapMut<'a>(&'a mut Carried);

impl Injector for MapMut<'_> {
    fn set(&mut self, key: &str, value: String) {
        if !value.is_empty() {
            self.0.insert(key.to_owned(), value);
        }
    }
}

/// The formats of an agent that its callers reach by B3.
pub const B3: &[Format] = &[Format::B3, Format::B3Multi, Format::Baggage];
/// The formats of an agent that its callers reach by Jaeger.
pub const JAEGER: &[Format] = &[Format::Jaeger, Format::Baggage];

static FORMATS: OnceLock<Vec<Format>> = OnceLock::new();

pub(crate) fn install(formats: &[Format]) {
    let _ = FORMATS.set(formats.to_vec());
}

fn formats() -> &'static [Format] {
    FORMATS.get().map_or(&[Format::TraceContext, Format::Baggage], Vec::as_slice)
}

/// The caller's headers, kept beside the context for processes that forward them.
struct Given(Arc<Carried>);

/// The formats of an agent, kept beside the context for its outgoing requests.
struct Chosen(&'static [Format]);

/// The headers of a context, in every format.
pub const FIELDS: [&str; 8] = [
    "traceparent",
    "tracestate",
    "baggage",
    "b3",
    "x-b3-traceid",
    "x-b3-spanid",
    "x-b3-sampled",
    "uber-trace-id",
];

/// Makes a span that was not entered yet a part of the caller's trace; headers that cannot be read count as absent. The
/// attributes of `common` are added to it and to every span below it. `chosen` replaces the formats of the process, for
/// requests that leave below the span as well.
pub fn continue_from(span: &Span, sent: &Carried, common: &Common, chosen: Option<&'static [Format]>) {
    if sent.is_empty() && !exports_spans() {
        return;
    }
    let context = read(sent, chosen.unwrap_or_else(formats));
    let context = context.with_value(Given(Arc::new(sent.clone()))).with_value(common.clone());
    let context = match chosen {
        Some(formats) => context.with_value(Chosen(formats)),
        None => context,
    };
    // Without a layer that gives spans ids there is no trace to continue.
    let _ = span.set_parent(context);
}

fn read(sent: &Carried, formats: &[Format]) -> Context {
    formats.iter().fold(Context::new(), |context, format| format.read(sent, &context))
}

/// Returns the caller's context as a W3C `traceparent`; `None` for headers that cannot be read.
#[must_use]
pub fn as_traceparent(sent: &Carried, formats: &[Format]) -> Option<String> {
    let mut written = Carried::new();
    Format::TraceContext.write(&read(sent, formats), &mut written);
    written.remove("traceparent")
}

/// Links a span to one of another trace, by its W3C `traceparent`. What cannot be read counts as absent.
pub fn link(span: &Span, traceparent: &str, attributes: &[(&'static str, &str)]) {
    let sent = Carried::from([("traceparent".to_owned(), traceparent.to_owned())]);
    let linked = Format::TraceContext.read(&sent, &Context::new()).span().span_context().clone();
    let attributes = attributes.iter().map(|(key, value)| KeyValue::new(*key, (*value).to_owned())).collect();
    span.add_link_with_attributes(linked, attributes);
}

/// Returns the W3C `traceparent` of a span that is exported; `None` for any other.
#[must_use]
pub fn traceparent(span: &Span) -> Option<String> {
    if !exports_spans() {
        return None;
    }
    let mut sent = Carried::new();
    Format::TraceContext.write(&span.context(), &mut sent);
    sent.remove("traceparent")
}

/// Returns the headers of an outgoing request: the context of the current span, or the caller's headers when this
/// process sends no spans.
#[must_use]
pub fn outgoing() -> Carried {
    let context = Span::current().context();
    if !exports_spans() {
        return context.get::<Given>().map(|given| given.0.as_ref().clone()).unwrap_or_default();
    }
    let mut sent = Carried::new();
    for format in context.get::<Chosen>().map_or_else(formats, |chosen| chosen.0) {
        format.write(&context, &mut sent);
    }
    sent
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    fn carried(pairs: &[(&str, &str)]) -> Carried {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// RS-48: each format reads what it writes.
    #[test]
    fn every_format_reads_what_it_writes() {
        let context = Context::new().with_remote_span_context(span_context(TRACE, SPAN, true).unwrap());
        for format in [Format::TraceContext, Format::B3, Format::B3Multi, Format::Jaeger] {
            let mut sent = Carried::new();
            format.write(&context, &mut sent);
            let read = format.read(&sent, &Context::new());
            assert_eq!(read.span().span_context().trace_id().to_string(), TRACE, "{format:?}");
            assert_eq!(read.span().span_context().span_id().to_string(), SPAN, "{format:?}");
            assert!(read.span().span_context().is_sampled(), "{format:?}: {sent:?}");
        }
    }

    #[test]
    fn a_context_becomes_one_of_w3c() {
        let w3c = format!("00-{TRACE}-{SPAN}-01");
        let b3 = carried(&[("x-b3-traceid", TRACE), ("x-b3-spanid", SPAN), ("x-b3-sampled", "1")]);
        assert_eq!(as_traceparent(&b3, B3), Some(w3c.clone()));
        let jaeger = carried(&[("uber-trace-id", &format!("{TRACE}:{SPAN}:0:1"))]);
        assert_eq!((as_traceparent(&jaeger, JAEGER), as_traceparent(&jaeger, B3)), (Some(w3c), None));
    }

    #[test]
    fn contexts_of_others_are_read() {
        let b3 = Format::B3.read(&carried(&[("b3", &format!("{TRACE}-{SPAN}-0"))]), &Context::new());
        assert_eq!(b3.span().span_context().trace_id().to_string(), TRACE);
        assert!(!b3.span().span_context().is_sampled());
        let jaeger = carried(&[("uber-trace-id", &format!("{TRACE}:{SPAN}:0:1"))]);
        assert!(Format::Jaeger.read(&jaeger, &Context::new()).span().span_context().is_sampled());
    }

    #[test]
    fn what_cannot_be_read_counts_as_absent() {
        for (format, pair) in [
            (Format::TraceContext, ("traceparent", "00-zz-b7ad6b7169203331-01")),
            (Format::B3, ("b3", "1")),
            (Format::B3, ("b3", "x-y-1")),
            (Format::Jaeger, ("uber-trace-id", "1:2")),
            (Format::Jaeger, ("uber-trace-id", "0:0:0:1")),
        ] {
            let read = format.read(&carried(&[pair]), &Context::new());
            assert!(!read.span().span_context().is_valid(), "{pair:?}");
        }
    }
}
