//! The ids of the trace and the span in each log line (RS-34).

use opentelemetry::Context;
use opentelemetry::trace::{SpanId, TraceContextExt as _, TraceId};
use std::fmt;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Returns the ids of the current span.
pub(crate) fn current() -> Option<(TraceId, SpanId)> {
    let span = Context::map_current(|context| context.span().span_context().clone());
    span.is_valid().then(|| (span.trace_id(), span.span_id()))
}

/// A format of one JSON object per line, with the ids of the trace and the span at the end of the object.
pub(crate) struct WithIds<F>(pub(crate) F);

impl<S, N, F> FormatEvent<S, N> for WithIds<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some((trace, id)) = current() else { return self.0.format_event(ctx, writer, event) };
        let mut line = String::new();
        self.0.format_event(ctx, Writer::new(&mut line), event)?;
        let object = line.trim_end_matches(['\n', '}']);
        writeln!(writer, "{object},\"trace_id\":\"{trace}\",\"span_id\":\"{id}\"}}")
    }
}
