-- Prints the figures that run.py reads.
function done(summary, latency)
    local errors = summary.errors
    print(string.format("figure requests %d", summary.requests))
    print(string.format("figure errors %d", errors.connect + errors.read + errors.write + errors.status + errors.timeout))
    print(string.format("figure per_s %.2f", summary.requests / summary.duration * 1e6))
    print(string.format("figure p50_ms %.3f", latency:percentile(50) / 1e3))
    print(string.format("figure p99_ms %.3f", latency:percentile(99) / 1e3))
    local acknowledged = 0
    for _, thread in ipairs(threads or {}) do acknowledged = acknowledged + thread:get("acked") end
    print(string.format("figure acknowledged_per_s %.2f", acknowledged / summary.duration * 1e6))
end
