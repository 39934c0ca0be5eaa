//! The ids of the trace and the span in each log line (RS-34).

use opentelemetry::Context;
use opentelemetry::trace::TraceContextExt as _;
use std::fmt;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// A format of lines, with the ids of the trace and the span at their end.
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
        let span = Context::map_current(|context| context.span().span_context().clone());
        if !span.is_valid() {
            return self.0.format_event(ctx, writer, event);
        }
        let mut line = String::new();
        self.0.format_event(ctx, Writer::new(&mut line), event)?;
        let (trace, id) = (span.trace_id(), span.span_id());
        let line = line.trim_end_matches('\n');
        match line.strip_suffix('}').filter(|_| line.starts_with('{')) {
            Some(object) => writeln!(writer, "{object},\"trace_id\":\"{trace}\",\"span_id\":\"{id}\"}}"),
            None => writeln!(writer, "{line} trace_id={trace} span_id={id}"),
        }
    }
}
